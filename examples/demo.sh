#!/usr/bin/env bash
# What atp understands of one suite in each format. `make demo` runs it with the project's own atp.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

suites=(files.yaml ocean.test.md expense.jsonl)

run() {
    printf '\n$ %s\n' "$*"
    "$@"
}

run atp validate "${suites[@]}"
for suite in "${suites[@]}"; do
    run atp show "$suite"
done
