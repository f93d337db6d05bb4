#!/bin/sh
# Fetch what the tests of a history in PostgreSQL need: the server's programs. The tests start a server of their own, with
# everything in a temporary folder, and stop it. Where it can't be had, those tests are skipped; with CI=true they fail.
set -eu

if command -v postgres >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1; then
    exit 0
fi
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "tests of a history in PostgreSQL need its server. On Debian: apt-get install postgresql" >&2
    exit 0
fi
echo "fetching postgresql for the tests of a history in PostgreSQL" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends postgresql-common >/dev/null
# Debian would make a database for the machine and start its server: the tests have their own.
mkdir -p /etc/postgresql-common/createcluster.d
echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.d/no-main-cluster.conf
apt-get install -y -qq --no-install-recommends postgresql >/dev/null
