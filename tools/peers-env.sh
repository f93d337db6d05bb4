#!/bin/sh
# Make the environment of the peer that bench/bench_peers.py measures ATP beside: .venv/envs/peers.
set -eu
cd "$(dirname "$0")/.."
peer="pydantic-evals>=2.62"
env=.venv/envs/peers
[ -f "$env/.installed" ] && [ "$(cat "$env/.installed")" = "$peer" ] && exit
rm -rf "$env"
.venv/bin/python -m venv "$env"
"$env/bin/python" -m pip install --quiet --disable-pip-version-check "$peer"
echo "$peer" > "$env/.installed"
