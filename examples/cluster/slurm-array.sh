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

status=0
stumble campaign "$pack" --shard auto --jobs "${SLURM_CPUS_PER_TASK:-2}" || status=$?
if [ -d .stumble ]; then
  rm -rf "$kept.part"
  cp -r .stumble "$kept.part"
  rm -rf "$kept"
  mv "$kept.part" "$kept"
fi

# 3, 4 and 5 are findings of one shard; the merged campaign decides.
case $status in 3 | 4 | 5) status=0 ;; esac
exit "$status"
