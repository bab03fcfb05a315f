#!/bin/bash
# Run the cases: NAME.in goes through the report that NAME.cmd names, and must give NAME.want.
# NAME.cmd holds: REPORT UNIT. With -v the lines are shown, not only whether they agree.
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
verbose=
if [ "${1:-}" = -v ]; then
  verbose=yes
  shift
fi
passed=0
failed=0
for file in "$here"/tests/cases/*.cmd; do
  name=$(basename "$file" .cmd)
  if [ $# -gt 0 ]; then
    case " $* " in *" $name "*) ;; *) continue ;; esac
  fi
  read -r report unit < "$file"
  found=$(awk -v station=TEST -v unit="$unit" -f "$here/lib/common.awk" -f "$here/lib/$report.awk" \
    < "$here/tests/cases/$name.in" 2>&1)
  wanted=$(cat "$here/tests/cases/$name.want")
  if [ "$found" = "$wanted" ]; then
    passed=$((passed + 1))
    echo "ok   $name"
    [ -z "$verbose" ] || printf '%s\n' "$found" | sed 's/^/     /'
  else
    failed=$((failed + 1))
    echo "FAIL $name"
    printf '%s\n' "$wanted" | sed 's/^/     wanted: /'
    printf '%s\n' "$found" | sed 's/^/     found:  /'
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
