#!/bin/sh
# Installs what the tests need beyond Rust and the usual build tools. Says what is missing where it may not install.
set -eu

if ! command -v rustfmt >/dev/null || ! command -v cargo-clippy >/dev/null; then
	rustup component add rustfmt clippy
fi

missing=
need() {
	command -v "$1" >/dev/null || missing="$missing $2"
}
need cc gcc
need python3 python3
need setpriv util-linux
need taskset util-linux
need prlimit util-linux
need unshare util-linux
need strace strace
need groff groff
# Prometheus's own parser reads what --openmetrics writes.
/usr/bin/python3 -c 'import prometheus_client' 2>/dev/null || missing="$missing python3-prometheus-client"

if [ -n "$missing" ]; then
	if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
		echo "tests/tools.sh: install these packages first:$missing" >&2
		exit 1
	fi
	apt-get update -q
	# The list is words on purpose.
	# shellcheck disable=SC2086
	DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $missing
fi
