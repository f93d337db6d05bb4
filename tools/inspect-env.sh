#!/bin/sh
# Make the environment of Inspect, whose viewer bench/bench_view.py measures ATP's beside: .venv/envs/inspect.
set -eu
cd "$(dirname "$0")/.."
peer="inspect-ai>=0.3.150"
env=.venv/envs/inspect
[ -f "$env/.installed" ] && [ "$(cat "$env/.installed")" = "$peer" ] && exit
rm -rf "$env"
.venv/bin/python -m venv "$env"
"$env/bin/python" -m pip install --quiet --disable-pip-version-check "$peer"
echo "$peer" > "$env/.installed"
