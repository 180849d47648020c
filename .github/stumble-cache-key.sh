#!/usr/bin/env bash
# Outputs of the action's first step: folder and key of pip's cache, for actions/cache. The key is of
# what the action installs. Nothing is cached if a stumble is there, or without a runner.
set -euo pipefail

[[ -n ${GITHUB_OUTPUT-} && -n ${RUNNER_TEMP-} ]] || exit 0
! command -v stumble >/dev/null || exit 0

python=$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
hash=$(cat "$STUMBLE_SOURCE/pyproject.toml" "$STUMBLE_SOURCE/requirements.lock" | sha256sum | cut -c1-16)
prefix="stumble-${RUNNER_OS:-any}-${RUNNER_ARCH:-any}-python$python-"
{
  echo "folder=$RUNNER_TEMP/stumble-pip"
  echo "prefix=$prefix"
  echo "key=$prefix$hash"
} >>"$GITHUB_OUTPUT"
