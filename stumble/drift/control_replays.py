"""Control replays right after a recording, to learn which values differ from run to run.

A strict replay is a clean twin without cost or side effects: model and tools give the recorded
answers, so differences in the agent's requests are its own clocks, ids or counts. What differs in
live answers is not seen here: twins of a fork see it, and `stumble accept --answers` learns it.
"""

import json
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field

from recorder.agent.isolation import find_missing_capabilities
from replay.matching.run_values import find_run_values
from stumble.drift.background_requests import ended_alike, find_background_candidates
from stumble.drift.volatile_rules import (
    LearnedRules,
    learn_beside_background,
    learn_volatile_rules,
    shorten_value,
)
from stumble.errors import ExitCode
from traces.tape.appended_rules import add_rules
from traces.tape.reader import Tape, read_tape

MAX_CONTROL_ROUNDS = 8
"""Most replays for one control: a refused request hides those after it."""
MAX_CHANCES = 1
"""How many replays that differ by no volatile value are made again: an agent may race."""


MAX_OWN_SECONDS = 60.0
"""Longest time that an agent may work by itself for a control that nobody asked for."""
MAX_TYPING_SECONDS = 10.0
LEARN_HINT = "`stumble record --times 2` learns what differs from run to run"


def run_control_replays(tape: Path, count: int) -> Iterator[str]:
    """Replay a tape `count` times, append learnt rules to it, and yield lines about each replay."""
    for number in range(1, count + 1):
        yield from (f"control {number}: {line}" for line in _run_control(tape).lines)


def run_unasked_control(tape: Path) -> Iterator[str]:
    """Make a control replay where a recording has values of its run; yield lines about it.

    Does nothing where an agent would not be isolated in a copy of its folder, and leaves no tape.
    """
    recording = read_tape(tape)
    found = next(find_run_values(recording.exchanges, recording.trajectory), None)
    if found is None:
        return
    where, value = found
    what = f"{value.type} {shorten_value(value.text, 40)} in {where or 'a body'}"
    lacking = find_missing_capabilities()
    own = measure_own_seconds(recording)
    if recording.trajectory.snapshot is None or lacking.processes or lacking.room:
        yield f"{what} may be another in the next run; {LEARN_HINT}"
    elif own > MAX_OWN_SECONDS:
        yield f"{what} may be another in the next run of {own:.0f} s; {LEARN_HINT}"
    else:
        began = time.monotonic()
        control = _run_control(tape, ("--isolation", "require", "--budget", f"{own * 3 + 20:.0f}"))
        for run in control.runs:
            run.unlink(missing_ok=True)
        yield from (f"control replay: {line}" for line in control.lines)
        yield f"control replay: {time.monotonic() - began:.1f} s, since {what} may be of this run"


def measure_own_seconds(recording: Tape) -> float:
    """Return how long an agent worked while no request was being answered.

    A time in which a user typed counts MAX_TYPING_SECONDS at most, as a replay waits no longer.
    """
    own = last = 0.0
    keys = [event.at for event in (recording.input.events if recording.input else ())]
    for each in sorted(recording.exchanges, key=lambda each: each.started):
        is_typed = any(last <= at < each.started for at in keys)
        time_between = max(0.0, each.started - last)
        own += min(time_between, MAX_TYPING_SECONDS) if is_typed else time_between
        ended = each.response.ended if each.response else None
        last = max(last, each.started if ended is None else ended)
    return own


class _Control(Struct):
    lines: list[str] = field(default_factory=list)
    runs: list[Path] = field(default_factory=list)


def _run_control(tape: Path, options: Sequence[str] = ()) -> _Control:
    control = _Control()
    control.lines += _learn_until_it_follows(tape, options, control.runs)
    return control


class _Trial(Struct):
    """Rules for whole endpoints that no replay has proven yet.

    The order of an agent's parallel requests is not known: what it sends for itself may be refused
    before its first request to the model, or after the last.
    """

    background: dict[str, None] = field(default_factory=dict)
    refused: Tape | None = None
    """The last replay without these rules."""
    answered: Tape | None = None
    """The first replay with them."""

    def learn(self, recording: Tape, run: Tape) -> LearnedRules:
        """Learn values of the run from a replay that did not follow."""
        if not self.background or self.refused is None:
            self.refused = run
            return learn_volatile_rules(recording, run)
        if self.answered is None:
            return LearnedRules()
        pair = self.answered, run
        return learn_beside_background(recording, self.refused, pair, self.background)

    def is_extended(self, found: Iterable[str], run: Tape) -> bool:
        """Whether another replay shows more: it has further rules, or is the second with these."""
        new = [rule for rule in found if rule not in self.background]
        if not new and (not self.background or self.answered is not None):
            return False
        self.background |= dict.fromkeys(new)
        self.answered = None if new else run
        return True


def _learn_until_it_follows(tape: Path, options: Sequence[str], runs: list[Path]) -> Iterator[str]:
    """Replay until nothing differs; rules for whole endpoints are kept only if that is reached."""
    trial, chances = _Trial(), MAX_CHANCES
    for _ in range(MAX_CONTROL_ROUNDS):
        matching = [word for rule in trial.background for word in ("--match", rule)]
        code, path = _replay_strictly(tape, (*options, *matching))
        if path is None:
            yield f"the replay ended with {code}; `stumble replay {tape}` says why"
            return
        runs.append(path)
        recording, run = read_tape(tape), read_tape(path)
        if code == 0 and (not trial.background or ended_alike(recording, run)):
            if trial.background:
                add_rules(tape, trial.background)
            yield from (f"accepted {rule}" for rule in trial.background)
            yield "followed the recording"
            return
        if code == ExitCode.BUDGET and all(x.answered_by != "refused" for x in run.exchanges):
            yield f"slower than the recording, and ended in the middle; {LEARN_HINT}"
            return
        lesson = trial.learn(recording, run)
        if lesson.rules:
            yield from (f"accepted {rule}" for rule in lesson.rules)
            add_rules(tape, map(str, lesson.rules))
            trial = _Trial()
        elif trial.is_extended(find_background_candidates(recording, run), run):
            continue
        elif chances:
            chances -= 1
        else:
            yield from lesson.to_lines()
            yield f"diverged; `stumble replay {tape}` says where"
            return
    yield f"diverged again and again; `stumble replay {tape}` says where"


def _replay_strictly(tape: Path, options: Sequence[str] = ()) -> tuple[int, Path | None]:
    """Replay strictly; return the exit code, and the tape of the run if there is one."""
    command = [sys.executable, "-m", "stumble", "replay", "--json", *options, str(tape)]
    completed = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False
    )
    try:
        return completed.returncode, Path(json.loads(completed.stdout)["tape"])
    except (ValueError, KeyError):
        return completed.returncode, None
