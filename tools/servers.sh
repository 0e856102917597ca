#!/bin/sh
# Installs the Debian packages that the tests' servers and tools come from when it may, and else says which are missing.
# A further one is a further line: the program that is looked for, and the package that holds it.
set -eu
PATH="$PATH:/usr/sbin:/sbin"
for programs in /usr/lib/postgresql/*/bin; do PATH="$PATH:$programs"; done
missing=
needs() { command -v "$1" >/dev/null || missing="$missing $2"; }
needs redis-server redis-server
needs initdb postgresql
needs mariadbd mariadb-server-core
needs mariadb-install-db mariadb-server-core
needs my_print_defaults mariadb-client-core
needs pgbouncer pgbouncer
# A slow disk is made with the one, certificates with the other.
needs strace strace
needs openssl openssl
[ -n "$missing" ] || exit 0
# shellcheck disable=SC2086
"$(dirname "$0")/apt.sh" $missing && exit 0
echo "NOT PROVEN here: whatever needs$missing. Its tests will be skipped, and say so." >&2
# Where a run decides about a change, what was not proven is an error.
[ -z "${CI:-}" ]
