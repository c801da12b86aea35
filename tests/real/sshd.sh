#!/bin/sh
# Prepares an sshd on the loopback interface in the current directory: keys, its configuration (sshd.conf) and the client's
# (ssh.conf).
set -eu
port=$1
ssh-keygen -q -t ed25519 -N '' -f host
ssh-keygen -q -t ed25519 -N '' -f user
cp user.pub authorized
[ "$(id -u)" -ne 0 ] || mkdir -p /run/sshd
cat >sshd.conf <<END
Port $port
ListenAddress 127.0.0.1
HostKey $PWD/host
AuthorizedKeysFile $PWD/authorized
PidFile $PWD/sshd.pid
StrictModes no
UsePAM no
PermitRootLogin yes
Ciphers +3des-cbc
END
cat >ssh.conf <<END
Host there
	HostName 127.0.0.1
	Port $port
	IdentityFile $PWD/user
	UserKnownHostsFile /dev/null
	StrictHostKeyChecking no
	LogLevel ERROR
END
