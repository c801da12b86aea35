#!/bin/sh
# Compares the commands A and B with `pipemark ab`, for the action: prints tables to the job's summary and the result as an annotation,
# and exits with the code of --catch or --fail-on. Runs anywhere:
#
#   A='sort words | uniq' B='sort -u words' packaging/action/ab.sh
set -eu
: "${A:?the first command}" "${B:?the second command}"
directory=$(mktemp -d)
json=$directory/ab.json
ended=0
# This script writes the annotations, because pipemark writes no annotation for a job that succeeds.
if [ "${CATCH:-}" ]; then
	set -- --catch "$CATCH" --budget "${BUDGET:-3min}"
else
	set -- --sessions "${SESSIONS:-10}" --runs "${RUNS:-5}" --threshold "${THRESHOLD:-3%}" ${FAIL_ON:+--fail-on "$FAIL_ON"}
fi
env -u GITHUB_ACTIONS -u GITHUB_STEP_SUMMARY "${PIPEMARK:-pipemark}" ab "$@" --json "$json" --markdown "$directory/ab.md" -q -- "$A" -- "$B" || ended=$?
if [ ! -s "$json" ]; then
	echo "::error title=pipemark ab::no comparison was made (exit code $ended)"
	exit "$ended"
fi
cat "$directory/ab.md" >>"${GITHUB_STEP_SUMMARY:-/dev/stdout}"
python3 - "$json" "$ended" <<'END'
import json, os, sys

report = json.load(open(sys.argv[1]))
judged = report["commands"][1]["figures"].get(report["by"]) or {}
found = judged.get("comparison") or {}
verdict, change = judged.get("verdict") or "inconclusive", found.get("change")
verdict = verdict.replace("cant-tell", "inconclusive")
text = judged.get("why") or ""
if change is not None:
    low, high = found.get("judged_low"), found.get("judged_high")
    interval = "" if low is None or high is None else f" ({100 * low:+.1f} to {100 * high:+.1f} %)"
    more = "more" if change > 0 else "less"
    text = f"B takes {100 * abs(change):.1f} % {more} {report['by']} than A{interval}. {text}".strip()
catch = report.get("catch")
if catch:
    verdict, text = catch["answer"], catch["sentence"]
level = {"10": "error", "12": "error", "13": "error", "14": "error", "0": "notice"}.get(sys.argv[2], "error")
text = text.replace("%", "%25").replace("\n", "%0A")
print(f"::{level} title=pipemark ab: {verdict}::{text}")
with open(os.environ.get("GITHUB_OUTPUT", "/dev/null"), "a") as out:
    print(f"verdict={verdict}", f"change={'' if change is None else change}", f"json={sys.argv[1]}", sep="\n", file=out)
END
exit "$ended"
