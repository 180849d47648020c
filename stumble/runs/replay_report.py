"""Report of replays, as plain data and as lines of text."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from recorder.agent.blocked_connections import BlockedConnection
from replay.matching.diff import describe_matches
from stumble.errors import ExitCode
from stumble.runs.isolation import IsolationMode, IsolationPlan, isolation_exit_code
from stumble.runs.types import RunResult
from traces.tape.reader import read_tape

NOT_CONTACTED = "tools were not contacted: this says nothing about recovery"

CUT_RECORDING_NOTE = (
    "the recording was cut at exchange {}: a replay can follow it up to there, and ends an agent "
    "that asks for more"
)

EXIT_CODE_WORDS: Mapping[ExitCode, str] = {
    ExitCode.OK: "followed the recording",
    ExitCode.NOTHING_FIRED: "without a fired fault",
    ExitCode.FINDING: "tried to reach the network",
    ExitCode.DIVERGED: "diverged",
    ExitCode.BUDGET: "out of budget",
}
"""What a replay can come to, from the best to the worst."""
_BEST_TO_WORST = tuple(EXIT_CODE_WORDS)
_MAX_DIVERGENCES_SHOWN = 3
"""Number of divergences shown in full."""


class ReplayOptions(Struct, frozen=True, kw_only=True):
    """Options that all replays of a command share."""

    tape: Path
    isolation_plan: IsolationPlan
    cut_at: int | None = None
    """The exchange at which the recording was cut; None for one with an end."""
    recorded_exit: int | None = None
    """The exit status of the recorded agent; None if it is not on the tape."""
    zone: str | None = None
    """The recording's time zone, where this machine has another."""
    isolation: IsolationMode = "auto"
    struck: bool = False
    """Whether a fault is to be injected."""
    contacts: bool = False
    """Whether tools are live."""
    explain: bool = False
    output: Path | None = None
    """File for the agents' output; None passes it through."""


class ReplayReport(Struct, frozen=True, kw_only=True):
    """One replay that is over."""

    options: ReplayOptions
    played: RunResult
    answered: int
    """Requests answered from the tape."""
    upstream: int
    matching: tuple[str, ...]
    """Of each request what it matched; nothing where that was not asked for."""

    @property
    def code(self) -> ExitCode:
        """The exit code of the replay."""
        code = compute_replay_exit_code(
            self.played, struck=not self.options.struck or self.played.fired > 0
        )
        if code == ExitCode.OK and self.ends_otherwise:
            code = ExitCode.DIVERGED
        return isolation_exit_code(self.options.isolation, self.played.attempts, code)

    @property
    def ends_otherwise(self) -> bool:
        """Whether the agent got the recorded answers alone, and exited with another status."""
        is_recorded_alone = not (self.options.struck or self.options.contacts or self.upstream)
        recorded = self.options.recorded_exit
        return is_recorded_alone and recorded not in (None, self.played.exit.code)

    def to_dict(self) -> dict[str, object]:
        """The replay as plain data."""
        played, why = self.played, {"matching": list(self.matching)}
        return (
            (why if self.options.explain else {})
            | {
                "recording": str(self.options.tape),
                "cut_at": self.options.cut_at,
                "run": played.id,
                "tape": str(played.path),
                "agent_exit": played.exit.code,
                "recorded_exit": self.options.recorded_exit,
                "agent_output": str(self.options.output) if self.options.output else None,
                "answered": self.answered,
                "upstream": self.upstream,
                "injected": played.fired,
                "diverged": list(played.diverged),
                "unasked": list(played.unasked),
                "unasked_more": played.unasked_more,
                "not_compared": list(played.background),
                "tools_contacted": self.options.contacts,
                "kept_workspace": str(played.kept) if played.kept else None,
            }
            | self.options.isolation_plan.to_dict(played.attempts)
        )

    def to_line(self) -> str:
        """Return one of several replays as a line of text."""
        how, diverged, unasked = (
            EXIT_CODE_WORDS[self.code],
            self.played.diverged,
            self.played.unasked,
        )
        if diverged:
            how = f"diverged: {diverged[0]}"
        elif unasked and not self.played.went_live:
            minimum = "at least " if self.played.unasked_more else ""
            how = (
                f"left early: the first of {minimum}{len(unasked)} that never came is {unasked[0]}"
            )
        elif self.ends_otherwise:
            how = self._describe_exit()
        return f"{how}; {self.answered} answered from the tape, {self.upstream} upstream"

    def to_lines(self) -> Iterator[str]:
        """Yield the only replay of a command as lines of text."""
        yield from self.matching
        diverged, unasked = self.played.diverged, self.played.unasked
        yield (
            f"replayed {self.options.tape}: {self.answered} answered from the tape"
            + (f", {self.played.fired} faulted" if self.options.struck else "")
            + f", {self.upstream} upstream, {len(diverged)} diverged"
        )
        if self.options.cut_at is not None:
            yield CUT_RECORDING_NOTE.format(self.options.cut_at)
        if self.options.zone is not None:
            yield f"time zone of the agent: {self.options.zone}, as recorded"
        if self.played.background:
            yield f"not compared, by a rule of the recording: {', '.join(self.played.background)}"
        yield from (f"diverged: {why}" for why in diverged[:_MAX_DIVERGENCES_SHOWN])
        if len(diverged) > _MAX_DIVERGENCES_SHOWN:
            yield (
                f"and {len(diverged) - _MAX_DIVERGENCES_SHOWN} "
                f"more; `stumble show {self.played.path}` has all"
            )
        if diverged and self.played.exit.out_of_budget:
            yield "it went on after it was refused; --on-miss halt ends an agent there"
        count = f"{len(unasked)} recorded request{'' if len(unasked) == 1 else 's'}"
        count = f"at least {count}" if self.played.unasked_more else count
        if unasked and not diverged and self.played.went_live:
            yield f"after it went live {count} never came, the first is {unasked[0]}"
        elif unasked and not diverged:
            yield (
                f"left early: {count} never came, the first is {unasked[0]}; "
                f"the agent exited {self.played.exit.code}"
            )
        elif self.ends_otherwise and not diverged:
            yield self._describe_exit()

    def _describe_exit(self) -> str:
        return (
            f"the agent exited {self.played.exit.code}, in the recording"
            f" {self.options.recorded_exit}"
        )


def summarize_replay(asked: ReplayOptions, played: RunResult) -> ReplayReport:
    """Return the report of a replay; its tape is read only to explain its matches."""
    exchanges = read_tape(played.path).exchanges if asked.explain else ()
    return ReplayReport(
        options=asked,
        played=played,
        answered=played.answered_by.get("recorded", 0),
        upstream=played.answered_by.get("live", 0),
        matching=tuple(describe_matches(exchanges, played.matched)) if asked.explain else (),
    )


def compute_replay_exit_code(played: RunResult, *, struck: bool) -> ExitCode:
    """Return a replay's exit code; `struck` is False if a fault was requested and none fired."""
    if played.exit.out_of_budget:
        return ExitCode.BUDGET
    if played.diverged or (played.unasked and not played.went_live):
        return ExitCode.DIVERGED
    return ExitCode.OK if struck else ExitCode.NOTHING_FIRED


def find_worst_exit_code(runs: Sequence[ReplayReport]) -> ExitCode:
    """The exit code of them all."""
    return max((each.code for each in runs), key=_BEST_TO_WORST.index)


def replays_to_dict(runs: Sequence[ReplayReport], times: int) -> dict[str, object]:
    """All of them as plain data; of a single one that alone."""
    if times == 1:
        return runs[0].to_dict()
    followed = sum(each.code is ExitCode.OK for each in runs)
    return {"times": times, "followed": followed, "runs": [each.to_dict() for each in runs]}


def replays_to_lines(runs: Sequence[ReplayReport], times: int) -> Iterator[str]:
    """All of them in words, and where they took place."""
    asked, codes = runs[0].options, [each.code for each in runs]
    if times == 1:
        yield from runs[0].to_lines()
    else:
        counted = ", ".join(
            f"{codes.count(each)} {EXIT_CODE_WORDS[each]}"
            for each in _BEST_TO_WORST
            if each in codes
        )
        yield f"replayed {asked.tape} {len(runs)} of {times} times: {counted}"
    if not asked.contacts:
        yield NOT_CONTACTED
    yield asked.isolation_plan.describe_attempts(
        sum((Counter(x.played.attempts) for x in runs), Counter[BlockedConnection]())
    )
    if asked.isolation_plan.workspace is not None:
        yield asked.isolation_plan.describe_workspace(runs[0].played.temporary)
    yield from (f"the copy is in {each.played.kept}" for each in runs if each.played.kept)
