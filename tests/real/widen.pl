#!/usr/bin/perl
# Runs a command with its standard input, a pipe, enlarged to 1 MiB: the fix for a pipe too small.
use strict;
use warnings;
fcntl(STDIN, 1031, 1 << 20) or die "F_SETPIPE_SZ: $!\n";
exec @ARGV or die "$ARGV[0]: $!\n";
