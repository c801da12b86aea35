#!/bin/sh
# Installs the libraries of the links in this directory from packages: Debian's and Ubuntu's, and the crates of iceoryx2.
set -eu
cd "$(dirname "$0")"
packages="gcc g++ pkg-config libzmq3-dev libnng-dev libboost-dev libsystemd-dev libhiredis-dev redis-server libgrpc++-dev libprotobuf-dev
	protobuf-compiler protobuf-compiler-grpc python3"
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "install with your package manager (on Debian and Ubuntu as root):" $packages
else
	apt-get update -q
	DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $packages
fi
command -v cargo >/dev/null && cargo fetch --locked --manifest-path iceoryx2/Cargo.toml
command -v node >/dev/null || echo "node-ipc needs Node 18.1 or later"
