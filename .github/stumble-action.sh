#!/usr/bin/env bash
# The work of the action in action.yml: replay, campaign, gate, summary. Its inputs are variables.
# Exit code: 0 pass, or inconclusive with INCONCLUSIVE=warn; 1 fail; 2 a wrong set-up; 5 inconclusive.
set -euo pipefail

summary=stumble-summary.md
name="ci-${GITHUB_RUN_ID:-local}-${GITHUB_RUN_ATTEMPT:-1}"
: >"$summary"

finish() { # finish VERDICT EXIT MESSAGE
  {
    echo "### stumble: $1"
    echo
    echo "$3"
    echo
    cat "$summary"
  } >"$summary.new"
  mv "$summary.new" "$summary"
  [[ -z ${GITHUB_STEP_SUMMARY-} ]] || cat "$summary" >>"$GITHUB_STEP_SUMMARY"
  [[ -z ${GITHUB_OUTPUT-} ]] || echo "verdict=$1" >>"$GITHUB_OUTPUT"
  echo "$3"
  exit "$2"
}

inconclusive() {
  if [[ ${INCONCLUSIVE:-warn} == fail ]]; then
    finish inconclusive 5 "$1"
  fi
  echo "::warning title=stumble::$1"
  finish inconclusive 0 "$1"
}

if ! command -v stumble >/dev/null; then
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 13))' ||
    finish error 2 "stumble needs Python 3.13 or newer: add actions/setup-python before it."
  [[ -z ${STUMBLE_PIP_CACHE-} ]] || export PIP_CACHE_DIR="$STUMBLE_PIP_CACHE"
  venv="${RUNNER_TEMP:-$PWD}/.stumble-venv"
  python3 -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet -r "$STUMBLE_SOURCE/requirements.lock"
  "$venv/bin/python" -m pip install --quiet --no-deps "$STUMBLE_SOURCE"
  export PATH="$venv/bin:$PATH"
fi

if [[ -n ${TAPES-} ]]; then
  shopt -s nullglob
  # The pattern is meant to be expanded, and a path may hold spaces only as the pattern does.
  # shellcheck disable=SC2206
  tapes=($TAPES)
  ((${#tapes[@]})) || finish error 2 "no recording fits $TAPES"
  {
    echo "| recording | replay |"
    echo "| --- | --- |"
  } >>"$summary"
  for tape in "${tapes[@]}"; do
    code=0
    stumble replay --in-place "$tape" >replay.log 2>&1 || code=$?
    cat replay.log
    case $code in
      0) echo "| $tape | as recorded |" >>"$summary" ;;
      3) echo "| $tape | the agent asks for something else now |" >>"$summary" ;;
      *) finish error 2 "the replay of $tape ended with exit code $code: $(tail -n 1 replay.log)" ;;
    esac
  done
  echo >>"$summary"
fi

[[ -n ${CAMPAIGN-} ]] || finish pass 0 "No campaign was asked for."

for variable in ${NEEDS-}; do
  [[ -n ${!variable-} ]] ||
    inconclusive "$variable is not set, so no fault was injected (pull requests of forks get no secrets)."
done

options=(--in-place --name "$name")
limit=(--max-cost "${MAX_COST-}")
[[ -n ${MAX_COST-} ]] || limit=()
[[ ${MAX_COST-} != auto ]] || limit=(--max-cost 5)
run_campaign() {
  code=0
  stumble campaign "$CAMPAIGN" "${options[@]}" "$@" 2>&1 | tee stumble-campaign.log || code=$?
}
run_campaign "${limit[@]}"
if [[ ${MAX_COST-} == auto ]] && grep -q '^stumble: no price is known of ' stumble-campaign.log; then
  run_campaign --max-time 3600
fi
# 1: some runs failed, which the gate counts; 124: the budget is spent, and the gate says what is known.
case $code in
  0 | 1 | 5 | 124) ;;
  3) inconclusive "No fault was injected: all runs diverged from their recordings. Record them again." ;;
  4) inconclusive "No fault was injected. $(grep -m 3 '^no site: ' stumble-campaign.log || true)" ;;
  *)
    why=$(grep '^stumble: ' stumble-campaign.log | tail -n 1 || true)
    finish error 2 "stumble campaign ended with exit code $code. $why"
    ;;
esac

code=0
# shellcheck disable=SC2086
stumble gate --campaign "$name" ${GATE-} --junit stumble-gate.xml --summary "$summary" \
  --sarif stumble-gate.sarif --source "$(git rev-parse --show-prefix 2>/dev/null || true)$CAMPAIGN" || code=$?
worst=$(stumble sql worst_injections "campaign=$name" --format markdown)
if (($(wc -l <<<"$worst") > 2)); then
  printf '\n#### Worst injections\n\n%s\n' "$worst" >>"$summary"
fi
stumble report --campaign "$name" -o stumble-report.html >/dev/null || true

case $code in
  0) finish pass 0 "All limits are met." ;;
  1) finish fail 1 "A limit is violated." ;;
  5) inconclusive "The evidence decides nothing: more injections would." ;;
  *) finish error 2 "stumble gate ended with exit code $code; its messages are in the log." ;;
esac
