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
need pv pv
need g++ g++
need gfortran gfortran
need perl perl
need mawk mawk
need gawk gawk
need sed sed
need pv pv
need chromium chromium
need node nodejs
need npm npm
python3 -m pip --version >/dev/null 2>&1 || need pip3 python3-pip
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

# The Zig entrants are for one release, which comes as a Python package. A distribution's own Python refuses to take
# packages without the flag, and an old pip does not know it.
zig=ziglang==0.17.1
python3 -m ziglang version >/dev/null 2>&1 ||
	python3 -m pip install -q "$zig" ||
	python3 -m pip install -q --break-system-packages "$zig"

# Not every distribution has a Java or a Node that the entrants are written for: these tests are left out there.
want() {
	command -v "$1" >/dev/null || [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null ||
		DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$2" ||
		echo "tests/tools.sh: no package $2 here; its entrants are not tested" >&2
}
want javac openjdk-17-jdk-headless
want node nodejs
want go golang-go

# What is here in a version that the entrants take has to be detected by the tests.
mkdir -p build
printf '%s\n' c cpp fortran python rust zig >build/toolchains
version() {
	! command -v "$2" >/dev/null || ! "$2" "$3" 2>&1 | grep -Eq "$4" || echo "$1" >>build/toolchains
}
version java javac -version 'javac 17'
version javascript node --version '^v(18\.[1-9]|18\.[3-9]|19|[2-9][0-9])'
version go go version 'go1\.(2[1-9]|[3-9][0-9])'

# The report is looked at in a browser. Chromium is the distribution's: nothing is downloaded but the two packages.
installed=tests/browser/node_modules/.package-lock.json
if [ ! -f "$installed" ] || [ tests/browser/package.json -nt "$installed" ]; then
	(cd tests/browser && npm install --no-package-lock --ignore-scripts --no-audit --no-fund --silent)
	touch "$installed"
fi
