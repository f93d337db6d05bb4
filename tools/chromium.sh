#!/usr/bin/env bash
# Installs Debian's own Chromium, which the browser tests drive, without its windows: a page takes a third of the time.
# Does nothing where it is, or where it can't; then the tests take a whole Chromium, if there is one.
set -euo pipefail

if command -v chromium-headless-shell >/dev/null || [ -n "${ATP_CHROMIUM:-}" ]; then
    exit 0
fi
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    if apt-get install -y -qq --no-install-recommends chromium-headless-shell fonts-liberation >/dev/null; then
        exit 0
    fi
fi
if ! command -v chromium >/dev/null; then
    echo "No Chromium here: the browser tests are skipped. On Debian: apt-get install chromium-headless-shell" >&2
fi
