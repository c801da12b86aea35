#!/usr/bin/perl
# Enlarges the pipe on standard input to 1 MiB and runs a command: the fix for a pipe that is too small.
use strict;
use warnings;
fcntl(STDIN, 1031, 1 << 20) or die "F_SETPIPE_SZ: $!\n";
exec @ARGV or die "$ARGV[0]: $!\n";
