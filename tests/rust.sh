#!/usr/bin/env bash
# Runs `cargo [options] test` with all its tests, also after a failure, and runs the tests that failed once more, by themselves: on a
# machine that others use too, a process may get no CPU for seconds. A test that fails twice fails.
#
#   tests/rust.sh CARGO... -- TEST-OPTION...
set -uo pipefail
MOST=5 # more failures than this have another cause than a busy machine

cargo=()
while [ "$1" != -- ]; do
	cargo+=("$1")
	shift
done
log=$(mktemp)
trap 'rm -f "$log"' EXIT

"${cargo[@]}" --no-fail-fast "$@" 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
[ "$status" -eq 0 ] && exit 0

# Cargo ends with a line `-p PACKAGE --test TARGET` for each failed target. The package is left out: for one package alone, features
# differ, and crates would be compiled again. libtest ends with a list of the names of failed tests.
mapfile -t targets < <(sed -n '/^error: [0-9]* targets\? failed:$/,$ s/^ *`\(-p [^ ]* \)\?\(-.*\)`$/\2/p' "$log")
mapfile -t tests < <(awk '/^failures:$/ { names = "" } /^    [a-z0-9_:]+$/ { names = names $1 "\n" } /^test result: FAILED/ { printf "%s", names }' "$log")
if [ ${#targets[@]} -eq 0 ] || [ ${#tests[@]} -eq 0 ] || [ ${#tests[@]} -gt $MOST ]; then
	exit "$status"
fi
# A test program that was killed has no such list.
[ "$(grep -c '^test result: FAILED' "$log")" -eq ${#targets[@]} ] || exit "$status"
passed=0
for target in "${targets[@]}"; do
	# shellcheck disable=SC2086 # a target is several words
	"${cargo[@]}" $target -- --test-threads 1 --exact "${tests[@]}" 2>&1 | tee "$log" || exit "$status"
	passed=$((passed + $(awk '/^test result: ok/ { passed += $4 } END { print passed + 0 }' "$log")))
done
[ "$passed" -ge ${#tests[@]} ] || exit "$status"
echo "${#tests[@]} failed beside other tests and passed alone: ${tests[*]}"
