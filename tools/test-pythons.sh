#!/bin/sh
# Run the tests with other versions of Python, each in an environment of its own: .venv/envs/python3.12 …
# A version that isn't installed is left out; with CI=true it is an error.
set -eu
cd "$(dirname "$0")/.."
uv=$(command -v uv || echo .venv/tools/bin/uv)

for version in "$@"; do
    if ! "python$version" --version >/dev/null 2>&1; then
        echo "python$version is not installed: the tests are not run with it" >&2
        [ "${CI:-}" != true ] || exit 1
        continue
    fi
    env=.venv/envs/python$version
    stamp=$env/.installed
    if ! cmp -s requirements-dev.lock "$stamp"; then
        rm -rf "$env"
        if [ -x "$uv" ]; then
            "$uv" venv --quiet --python "python$version" "$env"
            "$uv" pip install --quiet --compile-bytecode --python "$env/bin/python" --require-hashes -r requirements-dev.lock
            "$uv" pip install --quiet --python "$env/bin/python" --no-deps --no-build-isolation -e .
        else
            "python$version" -m venv "$env"
            "$env/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
            "$env/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
        fi
        cp requirements-dev.lock "$stamp"
    fi
    echo "== Python $version"
    "$env/bin/python" -m pytest -q -n 3 --dist loadfile -m "not slow and not fuzz"
done
