#!/bin/sh
# Fetch what the tests of agents in containers need: dockerd and a static busybox. They start the engine themselves,
# with everything of its own, and stop it. Where it can't be had, those tests are skipped; with CI=true they fail.
set -eu

missing=""
command -v dockerd >/dev/null 2>&1 || missing="$missing docker.io"
command -v busybox >/dev/null 2>&1 || missing="$missing busybox-static"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "tests of agents in containers need$missing, and root to start the engine" >&2
    exit 0
fi
echo "fetching$missing for the tests of agents in containers" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086  # several packages, several words
apt-get install -y -qq --no-install-recommends $missing >/dev/null
