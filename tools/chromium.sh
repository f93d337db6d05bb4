#!/usr/bin/env bash
# Installs Debian's own Chromium, which the browser tests drive. Does nothing where there is one, or where it can't.
set -euo pipefail

if command -v chromium >/dev/null || [ -n "${ATP_CHROMIUM:-}" ]; then
    exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "No Chromium here: the browser tests are skipped. As root on Debian: apt-get install chromium" >&2
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends chromium fonts-liberation >/dev/null
