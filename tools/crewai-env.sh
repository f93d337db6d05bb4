#!/bin/sh
# Make the environment that the tests of CrewAI agents run in: .venv/envs/crewai, about 1 GB.
# It is made once, and again when its requirements change. With --lock, pin the newest CrewAI instead (needs uv).
set -eu
cd "$(dirname "$0")/.."
pins=tests/agents/support/crewai-requirements.txt
env=.venv/envs/crewai
stamp=$env/.installed
uv=$(command -v uv || echo .venv/tools/bin/uv)

if [ "${1:-}" = --lock ]; then
    {
        echo "# CrewAI for the tests, in an environment of its own: made by tools/crewai-env.sh into .venv/envs/crewai."
        echo "# Pinned anew by: tools/crewai-env.sh --lock"
        echo "crewai>=1" | "$uv" pip compile --no-config --quiet --upgrade --universal --python-version 3.11 \
            --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header -
    } > "$pins.new"
    mv "$pins.new" "$pins"
    exit
fi

if [ -f "$stamp" ] && cmp -s "$pins" "$stamp"; then
    exit
fi
rm -rf "$env"
if [ -x "$uv" ]; then
    "$uv" venv --no-config --quiet --python .venv/bin/python "$env"
    "$uv" pip install --no-config --quiet --compile-bytecode --python "$env/bin/python" --require-hashes -r "$pins"
else
    .venv/bin/python -m venv --without-pip "$env"
    .venv/bin/python -m pip --python "$env/bin/python" install --quiet --disable-pip-version-check \
        --require-hashes -r "$pins"
fi
cp "$pins" "$stamp"
