"""Control replays right after a recording, to learn which values differ from run to run.

A strict replay is a clean twin without cost or side effects: model and tools give the recorded
answers, so differences in the agent's requests are its own clocks, ids or counts.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from stumble.drift.volatile_rules import learn_volatile_rules
from traces.tape import add_rules, read_tape

MAX_CONTROL_ROUNDS = 8
"""Most replays for one control: a refused request hides those after it."""


def run_control_replays(tape: Path, count: int) -> Iterator[str]:
    """Replay a tape `count` times, append learnt rules to it, and yield lines about each replay."""
    for number in range(1, count + 1):
        yield from (f"control {number}: {line}" for line in _run_control(tape))


def _run_control(tape: Path) -> Iterator[str]:
    for _ in range(MAX_CONTROL_ROUNDS):
        code, run = _replay_strictly(tape)
        if code == 0:
            yield "followed the recording"
            return
        if run is None:
            yield f"the replay ended with {code}; `stumble replay {tape}` says why"
            return
        lesson = learn_volatile_rules(read_tape(tape), read_tape(run))
        yield from lesson.to_lines()
        if lesson.left or not lesson.rules:
            yield f"diverged; `stumble replay {tape}` says where"
            return
        add_rules(tape, map(str, lesson.rules))
    yield f"diverged again and again; `stumble replay {tape}` says where"


def _replay_strictly(tape: Path) -> tuple[int, Path | None]:
    """Replay strictly; return the exit code, and the tape of the run if there is one."""
    command = [sys.executable, "-m", "stumble", "replay", "--json", str(tape)]
    completed = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    try:
        return completed.returncode, Path(json.loads(completed.stdout)["tape"])
    except (ValueError, KeyError):
        return completed.returncode, None
