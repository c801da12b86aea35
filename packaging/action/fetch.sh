#!/bin/sh
# Writes the path of the program to $GITHUB_OUTPUT. Unless $PROGRAM is set, first downloads the static program of this version from
# $RELEASES and verifies it.
set -eu
if [ -z "${PROGRAM:-}" ]; then
	cd "$(dirname "$0")/../.."
	. packaging/about.sh
	name=pipemark-$version-$(uname -m)-linux.tar.gz
	directory=$(mktemp -d)
	cd "$directory"
	for file in "$name" SHA256SUMS; do
		curl --fail --silent --show-error --location --retry 3 --output "$file" "$RELEASES/v$version/$file"
	done
	grep " $name\$" SHA256SUMS | sha256sum --check --quiet
	tar -xzf "$name" --strip-components=1
	PROGRAM=$directory/bin/pipemark
fi
"$PROGRAM" --version
echo "program=$PROGRAM" >>"$GITHUB_OUTPUT"
