#!/bin/sh
# Builds what people without Rust install, into build/dist: a tarball and a Python wheel with a static program, a Debian
# package with the ordinary one, the three crates, and checksums. Needs Rust 1.90 or newer, whose linker is lld, dpkg-deb, objdump and maturin
# (pip install maturin).
#
# The static program has glibc within it, so its memcpy and malloc are those of the ordinary program, and only the last
# step differs. bench/static.py compares their figures.
set -eu
cd "$(dirname "$0")/.."
umask 022

cargo=${CARGO:-cargo}
dist=$PWD/build/dist
stage=$PWD/build/stage
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
rm -rf "$dist" "$stage"
mkdir -p "$dist" "$stage"

# PROGRAM ROOT PREFIX: the program, its man pages and completions, what it is licensed under, and the programs that it measures
# in other languages.
lay_out() {
	make -s files PIPEMARK="$1" DESTDIR="$2" PREFIX="$3"
	gzip -9n "$2$3"/share/man/man1/*
	install -d "$2$3/share/pipemark" "$2$3/share/doc/pipemark"
	git ls-files entrants | grep -v "/[.]git" | xargs cp --parents -t "$2$3/share/pipemark"
	install -m 644 README.md docs/install.md "$2$3/share/doc/pipemark"
}

# Small: no tables for unwinding (a panic ends the program), relocations in the packed form (glibc 2.36 and newer), and functions
# with the same code only once; the profile optimises all crates as one program. The target is named so that this isn't asked of build scripts.
target=x86_64-unknown-linux-gnu
built=target/$target/dist/pipemark
export CFLAGS="-fno-asynchronous-unwind-tables"
export RUSTFLAGS="-C force-unwind-tables=no -C link-arg=-Wl,-z,pack-relative-relocs -C link-arg=-Wl,--icf=safe"
$cargo build --profile dist --locked --target "$target" -p pipemark
cp "$built" "$stage/ordinary"
# From its folder maturin reads pyproject.toml. It calls cargo with what follows --.
(cd packaging && maturin build -q --profile dist --locked --target "$target" --target-dir ../target --compatibility manylinux2014 --out "$dist" \
	-- -C target-feature=+crt-static)
cp "$built" "$stage/static"
if objdump -p "$stage/static" | grep NEEDED; then
	echo "the static program needs libraries" >&2
	exit 1
fi

name=pipemark-$version-x86_64-linux
lay_out "$stage/static" "$stage/$name" ""
install -m 644 LICENSE-* "$stage/$name"
tar -C "$stage" --owner=0 --group=0 --sort=name --mtime="@$(git log -1 --format=%ct)" -czf "$dist/$name.tar.gz" "$name"

# Who answers for the package, as Debian's tools name it.
maintainer="${DEBFULLNAME:-The pipemark authors} <${DEBEMAIL:-pipemark@example.com}>"
deb=$stage/deb
lay_out "$stage/ordinary" "$deb" /usr
cat packaging/copyright >"$deb/usr/share/doc/pipemark/copyright"
{
	printf 'pipemark (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md in the source.\n\n' "$version"
	printf ' -- %s  %s\n' "$maintainer" "$(git log -1 --format=%cD)"
} | gzip -9n >"$deb/usr/share/doc/pipemark/changelog.gz"
# The newest version of a symbol that it needs is the oldest glibc that it starts on; none older than Debian 12's is tried.
glibc=$({ echo 2.36; objdump -T "$stage/ordinary" | grep -o 'GLIBC_[0-9.]*' | sed s/GLIBC_//; } | sort -Vu | tail -n 1)
install -d "$deb/DEBIAN"
sed -e "s/@VERSION@/$version/" -e "s/@GLIBC@/$glibc/" -e "s/@MAINTAINER@/$maintainer/" \
	-e "s/@SIZE@/$(du -sk "$deb/usr" | cut -f 1)/" packaging/control >"$deb/DEBIAN/control"
(cd "$deb" && find usr -type f | LC_ALL=C sort | xargs md5sum) >"$deb/DEBIAN/md5sums"
dpkg-deb --root-owner-group --build "$deb" "$dist/pipemark_${version}_amd64.deb" >/dev/null

$cargo package --locked --workspace --no-verify -q
cp target/package/pipeio-"$version".crate target/package/pipeio-harness-"$version".crate target/package/pipemark-"$version".crate "$dist"
(cd "$dist" && sha256sum -- * >SHA256SUMS)
ls -l "$dist"
