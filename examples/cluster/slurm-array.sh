#!/bin/bash
# One shard of a campaign per task of a Slurm array; no folder in common but the one for results.
#
#   stumble pack nightly.toml -o nightly.stumble
#   sbatch --array=1-16 slurm-array.sh /shared/nightly.stumble /shared/results
#   stumble campaign merge /shared/results/*
#
#SBATCH --job-name=stumble
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --time=04:00:00
#SBATCH --signal=B:INT@60
set -euo pipefail
pack=$(realpath "$1")
results=$(realpath "$2")

work=$(mktemp -d "${TMPDIR:-/tmp}/stumble-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
export HOME=$work XDG_CACHE_HOME=$work/cache STUMBLE_STORE=$work/.stumble

# A task that was requeued goes on from the runs of its first try.
kept=$results/shard-$SLURM_ARRAY_TASK_ID
if [ -d "$kept" ]; then cp -r "$kept" .stumble; fi

# Copy the store out, so that no finished run is lost with this node.
save() {
  part=$results/.shard-$SLURM_ARRAY_TASK_ID.$1
  [ -d .stumble ] || return 0
  rm -rf "$part"
  cp -r .stumble "$part"
  rm -rf "$kept"
  mv "$part" "$kept"
}

# bash keeps a signal until its foreground child has ended, so stumble runs in the background.
stumble campaign "$pack" --trust --shard auto --jobs "${SLURM_CPUS_PER_TASK:-2}" &
campaign=$!
trap 'kill -TERM "$campaign" 2>/dev/null || true' INT TERM
while sleep "${SAVE_SECONDS:-60}"; do save meanwhile || true; done &
saver=$!

status=0
while kill -0 "$campaign" 2>/dev/null; do
  status=0
  wait "$campaign" || status=$? # a signal ends this wait, not the campaign
done
kill "$saver" 2>/dev/null || true
wait "$saver" 2>/dev/null || true
save at-end

# 3, 4 and 5 are findings of one shard; the merged campaign decides.
case $status in 3 | 4 | 5) status=0 ;; esac
exit "$status"
