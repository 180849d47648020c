"""What replays found, as plain data and as a few lines for a person."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from recorder.attempts import Attempt
from replay.difference import matching
from stumble.exits import Exits
from stumble.runs import Played
from stumble.stagecraft import Apart, Isolation, found_out
from traces.tape import read

NOT_CONTACTED = "tools were not contacted: this says nothing about recovery"

HOW: Mapping[Exits, str] = {
    Exits.OK: "followed the recording",
    Exits.NOTHING_FIRED: "never struck",
    Exits.FINDING: "tried to reach the network",
    Exits.DIVERGED: "diverged",
    Exits.BUDGET: "out of budget",
}
"""What a replay can come to, from the best to the worst."""
_WORSE = tuple(HOW)
_SHOWN = 3
"""Divergences that are told at length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked of all replays of a command."""

    tape: Path
    apart: Apart
    isolation: Isolation = "auto"
    struck: bool = False
    """Whether a fault is to strike."""
    contacts: bool = False
    """Whether tools are live."""
    explain: bool = False
    output: Path | None = None
    """Where the agents print to; None passes it through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One replay that is over."""

    asked: Asked
    played: Played
    answered: int
    """Requests answered from the tape."""
    upstream: int
    matching: tuple[str, ...]
    """Of each request what it matched; nothing where that was not asked for."""

    @property
    def code(self) -> Exits:
        """What it ends with."""
        code = exit_code(self.played, struck=not self.asked.struck or self.played.fired > 0)
        return found_out(self.asked.isolation, self.played.attempts, code)

    def said(self) -> dict[str, object]:
        """The replay as plain data."""
        played, why = self.played, {"matching": list(self.matching)}
        return (
            (why if self.asked.explain else {})
            | {
                "recording": str(self.asked.tape),
                "run": played.id,
                "tape": str(played.path),
                "agent_exit": played.exit.code,
                "agent_output": str(self.asked.output) if self.asked.output else None,
                "answered": self.answered,
                "upstream": self.upstream,
                "struck": played.fired,
                "diverged": list(played.diverged),
                "unasked": list(played.unasked),
                "tools_contacted": self.asked.contacts,
                "kept_workspace": str(played.kept) if played.kept else None,
            }
            | self.asked.apart.said(played.attempts)
        )

    def line(self) -> str:
        """One of several, in words."""
        how, diverged, unasked = HOW[self.code], self.played.diverged, self.played.unasked
        if diverged:
            how = f"diverged: {diverged[0]}"
        elif unasked:
            how = f"left early: the first of {len(unasked)} that never came is {unasked[0]}"
        return f"{how}; {self.answered} answered from the tape, {self.upstream} upstream"

    def report(self) -> Iterator[str]:
        """The one replay of a command, in words."""
        yield from self.matching
        diverged, unasked = self.played.diverged, self.played.unasked
        yield (
            f"replayed {self.asked.tape}: {self.answered} answered from the tape"
            + (f", {self.played.fired} struck" if self.asked.struck else "")
            + f", {self.upstream} upstream, {len(diverged)} diverged"
        )
        yield from (f"diverged: {why}" for why in diverged[:_SHOWN])
        if len(diverged) > _SHOWN:
            yield f"and {len(diverged) - _SHOWN} more; `stumble show {self.played.path}` has all"
        if diverged and self.played.exit.budget:
            yield "it went on after it was refused; --on-miss halt ends an agent there"
        if unasked and not diverged:
            count = f"{len(unasked)} recorded request{'' if len(unasked) == 1 else 's'}"
            yield (
                f"left early: {count} never came, the first is {unasked[0]}; "
                f"the agent exited {self.played.exit.code}"
            )


def replayed(asked: Asked, played: Played) -> Replayed:
    """What a run was, by its own tape."""
    exchanges = read(played.path).exchanges
    by = [exchange.answered_by for exchange in exchanges]
    return Replayed(
        asked=asked,
        played=played,
        answered=by.count("recorded"),
        upstream=by.count("live"),
        matching=tuple(matching(exchanges, played.matched)) if asked.explain else (),
    )


def exit_code(played: Played, *, struck: bool) -> Exits:
    """What a replay ends with; `struck` is False where a fault was wanted and none fired."""
    if played.exit.budget:
        return Exits.BUDGET
    if played.diverged or played.unasked:
        return Exits.DIVERGED
    return Exits.OK if struck else Exits.NOTHING_FIRED


def worst(runs: Sequence[Replayed]) -> Exits:
    """The exit code of them all."""
    return max((each.code for each in runs), key=_WORSE.index)


def data(runs: Sequence[Replayed], times: int) -> dict[str, object]:
    """All of them as plain data; of a single one that alone."""
    if times == 1:
        return runs[0].said()
    followed = sum(each.code is Exits.OK for each in runs)
    return {"times": times, "followed": followed, "runs": [each.said() for each in runs]}


def words(runs: Sequence[Replayed], times: int) -> Iterator[str]:
    """All of them in words, and where they took place."""
    asked, codes = runs[0].asked, [each.code for each in runs]
    if times == 1:
        yield from runs[0].report()
    else:
        counted = ", ".join(f"{codes.count(each)} {HOW[each]}" for each in _WORSE if each in codes)
        yield f"replayed {asked.tape} {len(runs)} of {times} times: {counted}"
    if not asked.contacts:
        yield NOT_CONTACTED
    yield asked.apart.reached(sum((Counter(x.played.attempts) for x in runs), Counter[Attempt]()))
    if asked.apart.workspace is not None:
        yield asked.apart.where()
    yield from (f"the copy is in {each.played.kept}" for each in runs if each.played.kept)
