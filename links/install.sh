#!/bin/sh
# Installs the libraries of the links in this directory from packages: Debian's and Ubuntu's, the crates of iceoryx2, and Aeron
# from Maven.
set -eu
cd "$(dirname "$0")"
packages="gcc g++ pkg-config libzmq3-dev libnng-dev libboost-dev libsystemd-dev libhiredis-dev redis-server libgrpc++-dev libprotobuf-dev
	protobuf-compiler protobuf-compiler-grpc python3 libnats-dev nats-server openjdk-17-jdk-headless maven"
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	echo "install with your package manager (on Debian and Ubuntu as root):" $packages
else
	apt-get update -q
	DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $packages
fi
command -v cargo >/dev/null && cargo fetch --locked --manifest-path iceoryx2/Cargo.toml
command -v mvn >/dev/null && mvn -q dependency:get -Dartifact=io.aeron:aeron-all:1.44.1 -Dtransitive=false
command -v node >/dev/null || echo "node-ipc needs Node 18.1 or later"
