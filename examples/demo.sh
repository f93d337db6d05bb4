#!/usr/bin/env bash
# ATP at work, on one suite of each format and without any API key. `make demo` runs it with the project's own atp.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

reports=.atp/demo
mkdir -p "$reports"

say() {
    printf '\n'
    printf '# %s\n' "$@"
}

# Run a command and see that it ends as it should.
run() {
    local expected=$1 code=0
    shift
    printf '\n$ %s\n' "$*"
    "$@" || code=$?
    if [ "$code" -ne "$expected" ]; then
        printf '\nThe demo is broken: exit code %s, expected %s.\n' "$code" "$expected" >&2
        exit 1
    fi
}

say "What is wrong with the test files? Nothing." "All three formats are read: YAML, Markdown and JSONL."
run 0 atp validate .

say "A YAML suite. Its agent is a command that makes files." \
    "The last test fails on purpose: the agent has a fault, and the test finds it. The exit code is 1."
run 1 atp test files.yaml -o "$reports/files.json"

say "A JSONL file. Its agent is a Python function that is given the conversation so far." \
    "Each case runs three times, four at a time, to see whether the answers are stable."
run 0 atp test expense.jsonl -n expenses.py:answer --runs 3 --parallel 4 -o "$reports/expense.jsonl"

say "A Markdown file. Its expectations are in words and need a judge, which ATP does not have yet." \
    "So it is not run here, but shown as it is understood."
run 0 atp show ocean.test.md

say "Every run has a journal, which --resume goes on from."
run 0 atp runs

say "Reports: $PWD/$reports/files.json, $PWD/$reports/expense.jsonl" "Journals: $PWD/.atp/runs" \
    "One test failed above, and it was meant to. The demo itself went well."
