# Sourced by tools/check and .ci/run: named steps, each with a header, its time and its verdict.
# A failed step does not stop the later ones.

STEP_LINES=()
FAILED_STEPS=0

# step NAME COMMAND...: run the command and remember how it went. Returns the command's status.
step() {
  local name=$1 status=0 verdict=ok started=$SECONDS line
  shift
  printf '\n=== %s\n' "$name"
  "$@" || status=$?
  if [ "$status" -ne 0 ]; then
    verdict="FAILED (exit $status)"
    FAILED_STEPS=$((FAILED_STEPS + 1))
  fi
  printf -v line '%5ss  %s: %s' "$((SECONDS - started))" "$name" "$verdict"
  STEP_LINES+=("$line")
  printf '=== %s\n' "$line"
  return "$status"
}

# skip NAME REASON: remember that a step was left out, and why.
skip() {
  local line="    -   $1: skipped, $2"
  STEP_LINES+=("$line")
  printf '\n=== %s\n' "$line"
}

# report_steps: list what was done; fail if a step failed.
report_steps() {
  printf '\n=== all steps\n'
  printf '%s\n' "${STEP_LINES[@]}"
  [ "$FAILED_STEPS" -eq 0 ]
}
