#!/bin/sh
# Builds packages for people without Rust, into build/dist. For each processor: a tarball, a Python wheel and an .rpm with a static
# program, a Debian package with a dynamic program, and a list of components (SBOM). For all processors: an OCI image of the static
# programs, the crates in the order of publishing, and checksums.
#
#   packaging/dist.sh                both processors; skips a processor whose compiler is missing, with a message
#   packaging/dist.sh x86_64         one processor
#
# Needs Rust 1.90 or newer, dpkg-deb, readelf and maturin (pip install maturin); for the .rpm rpmbuild; for aarch64 on x86-64
# gcc-aarch64-linux-gnu and `rustup target add aarch64-unknown-linux-gnu`.
#
# The static program contains glibc, so it has the memcpy and malloc of the dynamic program; only linking differs.
# bench/static.py compares the figures that the two programs measure.
set -eu
cd "$(dirname "$0")/.."
umask 022
. packaging/about.sh

cargo=${CARGO:-cargo}
dist=$PWD/build/dist
stage=$PWD/build/dist-stage
here=$(uname -m)
# All packed files get the time of the commit.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
rm -rf "$dist" "$stage"
mkdir -p "$dist" "$stage"

# ROOT PREFIX PROGRAM: installs the program, its man pages and completions, and the entrants and links.
lay_out() {
	make -s files PIPEMARK="$3" DESTDIR="$1" PREFIX="$2"
	gzip -9n "$1$2"/share/man/man1/*
	install -d "$1$2/share/pipemark" "$1$2/share/doc/pipemark"
	git ls-files entrants links | grep -v "/[.]git" | xargs cp --parents -t "$1$2/share/pipemark"
	install -m 644 README.md docs/install.md "$1$2/share/doc/pipemark"
}

# The result doesn't depend on the directory: names of source files are relative to the source, and files have the commit's time.
remap="--remap-path-prefix=$PWD=/pipemark --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
touch_all() {
	find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

build() { # PROCESSOR
	target=$1-unknown-linux-gnu
	built=target/$target/dist/pipemark
	# To make the program small: no unwind tables (a panic ends the program), packed relocations (glibc 2.36 and newer), and one copy
	# of identical functions. The profile optimizes all crates together. With --target, these flags don't apply to build scripts.
	export CFLAGS="-fno-asynchronous-unwind-tables"
	flags="-C force-unwind-tables=no -C link-arg=-Wl,-z,pack-relative-relocs -C link-arg=-Wl,--icf=safe $remap"
	if [ "$1" != x86_64 ]; then
		# Rust uses its own lld by default only for x86-64.
		linkers=$(rustc --print sysroot)/lib/rustlib/$here-unknown-linux-gnu/bin/gcc-ld
		flags="$flags -C link-arg=-fuse-ld=lld -C link-arg=-B$linkers"
	fi
	if [ "$1" != "$here" ]; then
		export "CARGO_TARGET_$(echo "$target" | tr a-z- A-Z_)_LINKER=$1-linux-gnu-gcc" "CC_$(echo "$target" | tr - _)=$1-linux-gnu-gcc"
	fi
	export RUSTFLAGS="$flags"
	$cargo build --profile "${PROFILE:-dist}" --locked --target "$target" -p pipemark
	built=target/$target/${PROFILE:-dist}/pipemark
	cp "$built" "$stage/$1-ordinary"
	# maturin reads pyproject.toml in its directory, and passes the words after -- to cargo.
	(cd packaging && maturin build -q --profile "${PROFILE:-dist}" --locked --target "$target" --target-dir ../target \
		--compatibility manylinux2014 --out "$dist" -- -C target-feature=+crt-static)
	cp "$built" "$stage/$1-static"
	unset RUSTFLAGS CFLAGS
	if readelf -d "$stage/$1-static" | grep NEEDED; then
		echo "the static program needs libraries" >&2
		exit 1
	fi
	if readelf -SW "$stage/$1-static" "$stage/$1-ordinary" | grep '[.]symtab'; then
		echo "the programs have symbols" >&2
		exit 1
	fi
}

tarball() { # PROCESSOR
	name=pipemark-$version-$1-linux
	lay_out "$stage/$name" "" "$stage/$1-static"
	install -m 644 LICENSE-* "$stage/$name"
	tar -C "$stage" --owner=0 --group=0 --numeric-owner --sort=name --mtime="@$SOURCE_DATE_EPOCH" -cf - "$name" | gzip -9n >"$dist/$name.tar.gz"
}

deb() { # PROCESSOR ARCHITECTURE
	deb=$stage/deb-$2
	# Debian's tools require an address. This address belongs to nobody.
	by=$maintainer
	case $by in *@*) ;; *) by="$by <pipemark@example.com>" ;; esac
	lay_out "$deb" /usr "$stage/$1-ordinary"
	sed -e "s/@LICENCE@/$(echo "$licence" | sed s/OR/or/)/" -e "s|@REPOSITORY@|$repository|" packaging/copyright |
		sed '/^Source: $/d' >"$deb/usr/share/doc/pipemark/copyright"
	{
		printf 'pipemark (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md in the source.\n\n' "$version"
		printf ' -- %s  %s\n' "$by" "$(git log -1 --format=%cD)"
	} | gzip -9n >"$deb/usr/share/doc/pipemark/changelog.gz"
	# The program needs the newest glibc version among its symbols, and at least the glibc of Debian 12, the oldest tested version.
	glibc=$({ echo 2.36; readelf -W -V "$stage/$1-ordinary" | grep -o 'GLIBC_[0-9.]*' | sed s/GLIBC_//; } | sort -Vu | tail -n 1)
	install -d "$deb/DEBIAN"
	sed -e "s/@VERSION@/$version/" -e "s/@GLIBC@/$glibc/" -e "s/@MAINTAINER@/$by/" -e "s/@ARCHITECTURE@/$2/" \
		-e "s|@HOMEPAGE@|$repository|" -e "s/@SIZE@/$(du -sk --apparent-size "$deb/usr" | cut -f 1)/" packaging/control |
		sed '/^Homepage: $/d' >"$deb/DEBIAN/control"
	(cd "$deb" && find usr -type f | LC_ALL=C sort | xargs md5sum) >"$deb/DEBIAN/md5sums"
	touch_all "$deb"
	dpkg-deb --root-owner-group --build "$deb" "$dist/pipemark_${version}_$2.deb" >/dev/null
}

rpm() { # PROCESSOR
	rpm=$stage/rpm-$1
	lay_out "$rpm" /usr "$stage/$1-static"
	install -m 644 LICENSE-* "$rpm/usr/share/doc/pipemark"
	touch_all "$rpm"
	rpmbuild --quiet -bb --target "$1-linux" --define "about_version $version" --define "about_licence $licence" \
		${repository:+--define "about_repository $repository"} --define "about_maintainer $maintainer" --define "staged $rpm" \
		--define "_topdir $stage/rpmbuild" --define "_rpmdir $dist" --define "_rpmfilename %{NAME}-%{VERSION}-1.%{ARCH}.rpm" \
		--define "_buildhost localhost" --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" \
		--define "_build_id_links none" --define "__os_install_post %{nil}" --define "debug_package %{nil}" packaging/pipemark.spec
}

image=
for processor in ${*:-x86_64 aarch64}; do
	if [ "$processor" != "$here" ] && ! command -v "$processor-linux-gnu-gcc" >/dev/null; then
		echo "skipped: $processor (no $processor-linux-gnu-gcc)" >&2
		continue
	fi
	build "$processor"
	case $processor in x86_64) architecture=amd64 ;; aarch64) architecture=arm64 ;; *) architecture=$processor ;; esac
	tarball "$processor"
	deb "$processor" "$architecture"
	if command -v rpmbuild >/dev/null; then rpm "$processor"; else echo "skipped: .rpm (no rpmbuild)" >&2; fi
	packaging/sbom.py "$processor-unknown-linux-gnu" "$dist/pipemark-$version-$processor-linux.cdx.json"
	image="$image $architecture=$stage/$processor-static"
done
# shellcheck disable=SC2086 # a word for each processor
packaging/oci.py "$dist/pipemark-$version-oci.tar" "$version" "$licence" "$repository" $image

$cargo package --locked --workspace --no-verify -q ${ALLOW_DIRTY:+--allow-dirty}
packaging/crates.py >"$dist/CRATES"
while read -r crate; do
	cp "target/package/$crate-$version.crate" "$dist"
done <"$dist/CRATES"
(cd "$dist" && sha256sum -- * >SHA256SUMS)
ls -l "$dist"
