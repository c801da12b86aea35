#!/bin/sh
# The report's stress.sh (docs/sources.md, pipelines): perf stat of each program after zcat, and a flame graph of each
# program. What isn't installed or allowed here is skipped, and the reason is printed.
#
#     entrants/lines/stress.sh [SIZE]      the size of the log [128m]; flame graphs go to build/stress
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
programs=$root/build/entrants/lines
out=$root/build/stress
log=$out/log.gz
pipemark=${PIPEMARK:-pipemark}

cargo build --quiet --release --locked --manifest-path "$root/entrants/lines/Cargo.toml" --target-dir "$programs"
mkdir -p "$out"
"$pipemark" gen log:3 --total "${1:-128m}" | gzip -1 > "$log"

if ! command -v perf > /dev/null; then
    echo "skipped: perf is missing (Debian and Ubuntu: linux-perf)" >&2
    exit 0
fi
if ! reason=$(perf stat -e task-clock true 2>&1); then
    echo "skipped: perf is refused: $(echo "$reason" | head -n 1); see /proc/sys/kernel/perf_event_paranoid" >&2
    exit 0
fi
graphs=yes
if ! command -v inferno-collapse-perf > /dev/null || ! command -v inferno-flamegraph > /dev/null; then
    echo "flame graphs skipped: inferno is missing (cargo install inferno)" >&2
    graphs=no
fi

for program in baseline std-baseline pipeline streamer; do
    binary=$programs/release/$program
    perf stat --repeat=5 bash -c "zcat '$log' | '$binary' > /dev/null"
    [ "$graphs" = yes ] || continue
    # Machines without hardware counters count CPU time instead.
    zcat "$log" | perf record --quiet --output="$out/$program.data" --call-graph dwarf "$binary" > /dev/null 2>&1 ||
        zcat "$log" | perf record --quiet -e cpu-clock --output="$out/$program.data" --call-graph dwarf "$binary" > /dev/null
    perf script --input="$out/$program.data" 2> /dev/null | inferno-collapse-perf > "$out/$program.folded"
    inferno-flamegraph < "$out/$program.folded" > "$out/$program.svg"
    echo "$out/$program.svg"
done
