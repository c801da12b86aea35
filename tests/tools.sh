#!/bin/sh
# Installs what the tests need beyond Rust and the usual build tools. Stops if a required tool is missing and can't be
# installed; missing optional ones are listed in build/skipped. As root on Debian, also stops if a browser, Fortran or Prometheus's
# parser can't be installed.
set -eu

if ! command -v rustfmt >/dev/null || ! command -v cargo-clippy >/dev/null; then
	rustup component add rustfmt clippy
fi

mkdir -p build
: >build/skipped
may_install() {
	[ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null
}
report_skip() {
	echo "$1" >>build/skipped
}

missing=
need() {
	command -v "$1" >/dev/null || missing="$missing $2"
}
need cc gcc
need g++ g++
need python3 python3
need setpriv util-linux
need taskset util-linux
need prlimit util-linux
need unshare util-linux
need perl perl
need mawk mawk
need gawk gawk
need sed sed
need pv pv
need strace strace
need groff groff

# Optional: some distributions have no such package, or too old a version.
optional=
want() {
	command -v "$1" >/dev/null || optional="$optional $2"
}
want gfortran gfortran
want javac openjdk-17-jdk-headless
want go golang-go
want node nodejs
want npm npm
want chromium chromium
# Prometheus's parser checks the output of --openmetrics.
/usr/bin/python3 -c 'import prometheus_client' 2>/dev/null || optional="$optional python3-prometheus-client"
python3 -m pip --version >/dev/null 2>&1 || optional="$optional python3-pip"

# Runs a command up to three times, because downloads fail now and then.
thrice() {
	"$@" || { sleep 5 && "$@"; } || { sleep 20 && "$@"; }
}

# Runs apt-get, and waits up to ten minutes while another apt or dpkg runs. DPkg::Lock::Timeout doesn't cover the lists of packages.
apt_get() {
	waited=0
	while ! DEBIAN_FRONTEND=noninteractive apt-get -qy -o DPkg::Lock::Timeout=10 -o Acquire::Retries=3 "$@" 2>build/apt-errors; do
		cat build/apt-errors >&2
		if ! grep -Eq 'Could not get lock|Unable to (acquire|lock)' build/apt-errors || [ "$waited" -ge 600 ]; then
			return 1
		fi
		[ "$waited" -gt 0 ] || echo "tests/tools.sh: another apt is running; waiting until it has ended, for up to ten minutes" >&2
		waited=$((waited + 20))
		sleep 10
	done
}

if may_install && [ -n "$missing$optional" ]; then
	thrice apt_get update
	# The list must be split into words.
	# shellcheck disable=SC2086
	[ -z "$missing" ] || thrice apt_get install --no-install-recommends $missing
	for package in $optional; do
		# Some distributions have no such package.
		if apt-cache show "$package" >/dev/null 2>&1; then
			thrice apt_get install --no-install-recommends "$package" || true
		fi
	done
elif [ -n "$missing" ]; then
	echo "tests/tools.sh: install these packages first:$missing" >&2
	exit 1
fi

# A distribution's Python installs packages only with this flag, which an old pip doesn't know.
python_package() {
	python3 -c "$2" 2>/dev/null ||
		python3 -m pip install -q --retries 3 "$1" ||
		thrice python3 -m pip install -q --break-system-packages "$1" ||
		true
}
# The Zig entrants need this release, which is available as a Python package.
python_package ziglang==0.17.1 'import ziglang'
# One of the engines that run the line job.
python_package dask==2026.8.0 'from dask import delayed'

# build/toolchains lists languages with suitable versions; tests fail if pipemark doesn't detect one of them.
printf '%s\n' c cpp rust >build/toolchains
language() {
	if sh -c "$2" 2>&1 | grep -Eq "$3"; then
		echo "$1" >>build/toolchains
	else
		report_skip "the programs in $4: their tools are not here, or too old"
	fi
}
language python 'python3 --version' 'Python 3' Python
language fortran 'gfortran --version' 'GNU Fortran' Fortran
language zig 'python3 -m ziglang version' '^0\.17' Zig
language java 'javac -version' 'javac 17' Java
language javascript 'node --version' '^v(18\.[1-9]|18\.[3-9]|19|[2-9][0-9])' JavaScript
language go 'go version' 'go1\.(2[1-9]|[3-9][0-9])' Go

# Reports are tested in a browser. Chromium is the distribution's; npm downloads only the two packages.
installed=tests/browser/node_modules/.package-lock.json
if ! command -v chromium >/dev/null || ! command -v npm >/dev/null; then
	report_skip "reports in a browser: no Chromium, or no npm"
elif [ ! -f "$installed" ] || [ tests/browser/package.json -nt "$installed" ]; then
	if thrice npm install --prefix tests/browser --no-package-lock --ignore-scripts --no-audit --no-fund --silent; then
		touch "$installed"
	else
		report_skip "reports in a browser: npm could not install its packages"
	fi
fi

# Debian has these packages, so there they can be installed: without them, most of what the tests check of pages would be skipped.
if may_install && grep -qx 'ID=debian' /etc/os-release; then
	absent=
	command -v chromium >/dev/null && [ -f "$installed" ] || absent="$absent chromium with playwright-core,"
	command -v gfortran >/dev/null || absent="$absent gfortran,"
	/usr/bin/python3 -c 'import prometheus_client' 2>/dev/null || absent="$absent python3-prometheus-client,"
	if [ -n "$absent" ]; then
		echo "tests/tools.sh: could not install${absent%,}; see the errors above" >&2
		exit 1
	fi
fi
