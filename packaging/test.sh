#!/bin/sh
# Installs each package of build/dist in a clean root and runs `pipemark bw`, `pipemark why` and `pipemark run quick` there. Needs root,
# debootstrap and lintian; keeps the roots in build/roots.
#
#   tarball  an empty root: no libc, no shell
#   wheel    Debian 11 (glibc 2.31) with pip
#   deb      Debian 12 (glibc 2.36), the oldest supported, and Debian 13
#   rpm      an empty root, with rpm --root
#   oci      the image: with crun, if crun may create namespaces, and with chroot into the layers of the image
#   arm64    the tarball for aarch64 in an empty root, with qemu-aarch64-static: only commands that need no second process
#   crates   a program of twenty lines that uses the packed crate
set -eu
cd "$(dirname "$0")/.."
umask 022

dist=$PWD/build/dist
roots=$PWD/build/roots
export USER_AND_GROUP=
mkdir -p "$roots"
(cd "$dist" && sha256sum --quiet -c SHA256SUMS)

# Runs in new mount and process namespaces, so that nothing remains. As root, or as USER_AND_GROUP.
inside() { # ROOT COMMAND...
	root=$1
	shift
	unshare --mount --pid --fork sh -euc '
		root=$1; shift
		mkdir -p "$root/proc" "$root/dev" "$root/tmp" "$root/sys"
		mount -t proc proc "$root/proc"
		mount --rbind /dev "$root/dev"
		mount -t tmpfs tmpfs "$root/tmp"
		mount --rbind /sys "$root/sys"
		exec env -i HOME=/tmp PATH=/usr/local/bin:/usr/bin:/bin:/sbin:/usr/sbin LC_ALL=C chroot --userspec="${USER_AND_GROUP:-0:0}" "$root" "$@"
	' sh "$root" "$@"
}

# Makes a new system for a test, as a copy of a system that is made once.
fresh() { # SUITE PACKAGES NAME
	if [ ! -f "$roots/$1.tar" ]; then
		rm -rf "$roots/$1"
		debootstrap --variant=minbase --include="$2" "$1" "$roots/$1" >"$roots/$1.log"
		tar -C "$roots/$1" -cf "$roots/$1.part" --exclude=./var/cache/apt/archives/*.deb .
		mv "$roots/$1.part" "$roots/$1.tar"
		rm -rf "$roots/$1"
	fi
	rm -rf "$roots/$3"
	mkdir "$roots/$3"
	tar -C "$roots/$3" -xf "$roots/$1.tar"
}

measure() { # WHAT ROOT PROGRAM
	inside "$2" "$3" --version
	inside "$2" "$3" bw --time 0.2s --runs 5
	if [ -x "$2/bin/sh" ]; then
		inside "$2" "$3" why 'head -c 300M /dev/zero | gzip | cat > /dev/null' 2>"$roots/out"
		grep '^2 gzip' "$roots/out"
	else
		inside "$2" "$3" why -- "$3" gen 300m 2>"$roots/out" | wc -c | grep -x 314572800
		grep '^1 pipemark' "$roots/out"
	fi
	# A user without a name and without a home directory of its own.
	USER_AND_GROUP=65533:65533
	inside "$2" "$3" bw --time 0.2s --runs 5 2>"$roots/out"
	inside "$2" "$3" why -- "$3" gen 300m 2>"$roots/out" | wc -c | grep -x 314572800
	grep '^1 pipemark' "$roots/out"
	USER_AND_GROUP=
	[ -n "${SKIP_QUICK:-}" ] || {
		inside "$2" "$3" run quick >"$roots/out"
		grep -q '^Summary' "$roots/out"
	}
	echo "ok  $1: bw, why${SKIP_QUICK:- and run quick}; bw and why as another user"
}

tarball() {
	rm -rf "$roots/empty"
	mkdir "$roots/empty"
	tar -C "$roots/empty" --strip-components=1 -xzf "$dist"/pipemark-*-x86_64-linux.tar.gz
	measure "tarball in an empty root" "$roots/empty" /bin/pipemark
	for file in share/man/man1/pipemark.1.gz share/bash-completion/completions/pipemark LICENSE-MIT share/pipemark/entrants/README.md; do
		[ -s "$roots/empty/$file" ] || { echo "the tarball has no $file" >&2; exit 1; }
	done
}

deb() {
	lintian --fail-on error,warning "$dist"/pipemark_*_amd64.deb
	for suite in bookworm trixie; do
		fresh $suite python3,python3-venv deb
		cp "$dist"/pipemark_*_amd64.deb "$roots/deb/root/pipemark.deb"
		inside "$roots/deb" dpkg -i /root/pipemark.deb
		measure "deb in Debian $suite" "$roots/deb" pipemark
		inside "$roots/deb" dpkg -r pipemark
	done
}

wheel() {
	fresh bullseye python3,python3-pip wheel
	cp "$dist"/pipemark-*x86_64.whl "$roots/wheel/root"
	inside "$roots/wheel" sh -c 'pip3 install -q --no-index /root/pipemark-*.whl'
	measure "wheel in Debian 11" "$roots/wheel" pipemark
	inside "$roots/wheel" python3 -c 'import pipemark; print(pipemark.why("yes | head -c 100m | wc -c").verdict.text)'
}

rpm() {
	rm -rf "$roots/rpm"
	mkdir "$roots/rpm"
	command rpm --root "$roots/rpm" --initdb
	command rpm --root "$roots/rpm" -i "$dist"/pipemark-*.x86_64.rpm
	measure "rpm in an empty root" "$roots/rpm" /usr/bin/pipemark
	command rpm --root "$roots/rpm" -e pipemark
	[ ! -e "$roots/rpm/usr/bin/pipemark" ]
}

# Unpacks the image's layers for this processor, like a container runtime.
oci() {
	rm -rf "$roots/oci"
	mkdir -p "$roots/oci/image" "$roots/oci/bundle/rootfs"
	tar -C "$roots/oci/image" -xf "$dist"/pipemark-*-oci.tar
	python3 - "$roots/oci/image" "$roots/oci/bundle" <<-'END'
		import hashlib, json, pathlib, subprocess, sys
		image, bundle = map(pathlib.Path, sys.argv[1:])

		def blob(of):
		    path = image / "blobs" / of["digest"].replace(":", "/")
		    assert path.stat().st_size == of["size"]
		    assert "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest() == of["digest"]
		    return path

		index = json.loads((image / "index.json").read_text())
		(manifest,) = [one for one in index["manifests"] if one["platform"]["architecture"] == "amd64"]
		manifest = json.loads(blob(manifest).read_text())
		config = json.loads(blob(manifest["config"]).read_text())
		for layer in manifest["layers"]:
		    subprocess.run(["tar", "-C", bundle / "rootfs", "-xzf", blob(layer)], check=True)
		mounts = [
		    {"destination": "/proc", "type": "proc", "source": "proc"},
		    {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
		    {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev"]},
		]
		spec = {
		    "ociVersion": "1.0.0",
		    "process": {
		        "args": config["config"]["Entrypoint"] + ["why", "--", "/pipemark", "gen", "300m"],
		        "env": config["config"]["Env"],
		        "cwd": config["config"]["WorkingDir"],
		        "user": {"uid": 0, "gid": 0},
		    },
		    "root": {"path": "rootfs", "readonly": True},
		    "mounts": mounts,
		    "linux": {"namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")]},
		}
		(bundle / "config.json").write_text(json.dumps(spec))
	END
	for user in 0 65533; do
		sed -i "s/\"uid\": [0-9]*, \"gid\": [0-9]*/\"uid\": $user, \"gid\": $user/" "$roots/oci/bundle/config.json"
		if command -v crun >/dev/null && crun --cgroup-manager=disabled run --bundle "$roots/oci/bundle" "pipemark-$$" >"$roots/out" 2>"$roots/oci/said"; then
			[ "$(wc -c <"$roots/out")" = 314572800 ]
			grep '^1 pipemark' "$roots/oci/said"
			echo "ok  image by crun, user $user: why"
		else
			echo "crun: $(head -n 1 "$roots/oci/said" 2>/dev/null || echo not here)"
		fi
	done
	measure "image by chroot into its layers" "$roots/oci/bundle/rootfs" /pipemark
}

arm64() {
	rm -rf "$roots/arm64"
	mkdir "$roots/arm64"
	tar -C "$roots/arm64" --strip-components=1 -xzf "$dist"/pipemark-*-aarch64-linux.tar.gz
	cp "$(command -v qemu-aarch64-static)" "$roots/arm64/bin/qemu"
	inside "$roots/arm64" /bin/qemu /bin/pipemark --version
	sum=$(head -c 10000000 /dev/urandom | tee "$roots/random" | sha256sum)
	[ "$(inside "$roots/arm64" /bin/qemu /bin/pipemark relay <"$roots/random" | sha256sum)" = "$sum" ]
	echo "ok  arm64 by qemu: relay"
}

crates() {
	program=$roots/twenty
	rm -rf "$program"
	mkdir -p "$program/src"
	tar -C "$program" -xzf "$dist"/pipeio-[0-9]*.crate
	mv "$program"/pipeio-* "$program/pipeio"
	printf '[package]\nname = "twenty"\nedition = "2024"\n[dependencies]\npipeio = { path = "pipeio", default-features = false }\n[workspace]\n' \
		>"$program/Cargo.toml"
	cp packaging/copy.rs "$program/src/main.rs"
	${CARGO:-cargo} build -q --manifest-path "$program/Cargo.toml" --target-dir "$roots/target"
	said=$(head -c 10M /dev/zero | "$roots/target/debug/twenty" 2>&1 >/dev/null)
	[ "$said" = "10485760 bytes by splice" ] || { echo "the program of twenty lines: $said" >&2; exit 1; }
	echo "ok  twenty lines with pipeio::copy, from the crate"
}

for what in ${*:-crates tarball deb rpm wheel oci arm64}; do
	$what
done
