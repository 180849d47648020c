"""Clean and faulted steps side by side, from the struck call on, the struck value marked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from stumble.report.marks import Mark, Piece, compared, marked, words
from traces.conversation import canonical_arguments
from traces.model import Injection
from traces.story import Step, Story, ToolUse, tell
from traces.tape import Tape, read

MOST = 7
"""How many rows of steps are shown after the struck one, the last step besides."""

type Words = Mapping[str, Mark]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One thing an agent said, asked for or was told."""

    kind: Literal["says", "calls", "told", "failed"]
    text: str
    struck: bool = False
    """Whether it is the struck result, or the true one in the clean run."""
    pieces: tuple[Piece, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One step of an agent, as it is shown."""

    number: int
    lines: tuple[Line, ...]
    struck: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A clean step and a faulted one; None where the other run has one step more.

    `skipped` counts steps that are not shown before this one, `alike` such that both runs share.
    """

    clean: Turn | None
    faulted: Turn | None
    skipped: int = 0
    alike: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The two runs from the struck call on; without tapes only what the index kept of it."""

    rows: tuple[Beside, ...]
    twin: str | None
    missing: str | None = None
    """Why there is nothing but the struck result to show."""


class Shelf:
    """The tapes of a store, each read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._told: dict[str, tuple[Tape, Story] | None] = {}

    def path(self, id: str) -> Path:
        """Where the tape of a run is, or would be."""
        return self._folder / f"{id}.tape"

    def run(self, id: str) -> tuple[Tape, Story] | None:
        """The tape with its story; None where it is gone or cannot be read."""
        if id not in self._told:
            self._told[id] = self._read(self.path(id))
        return self._told[id]

    def once(self, id: str) -> tuple[Tape, Story] | None:
        """As `run`, for a tape that nobody will ask for again."""
        return self._read(self.path(id))

    @staticmethod
    def _read(path: Path) -> tuple[Tape, Story] | None:
        try:
            tape = read(path)
        except (ValueError, OSError):
            return None
        return tape, tell(tape)


def sides(
    shelf: Shelf, trajectory: str, injection: str, twins: Sequence[str], kept: tuple[str, str]
) -> Sides:
    """The faulted run beside its first clean twin that is there.

    `kept` is what the index has of the true and the struck result, for when a tape is gone.
    """
    faulted = shelf.once(trajectory)
    strike = faulted and next((i for i in faulted[0].injections if i.id == injection), None)
    if faulted is None or strike is None:
        return _without(kept, f"the tape {shelf.path(trajectory).name} is gone or cannot be read")
    use = faulted[1].use(strike.call_id or "")
    if use is None:
        return _without(kept, "the struck exchange belongs to no tool call of a model")
    known = words(*kept)
    strikes = {i.call_id: i for i in faulted[0].injections if i.call_id}
    right = _turns(faulted[1], use, strikes)
    found = next(((id, run) for id in twins if (run := shelf.run(id)) is not None), None)
    if found is None:
        rows = tuple(_beside(None, turn, known) for turn in right)
        return Sides(rows=_capped(rows), twin=None, missing="no clean twin is there to compare")
    left = _turns(found[1][1], use, {})
    return Sides(rows=_capped(tuple(_aligned(left, right, known))), twin=found[0])


def _without(kept: tuple[str, str], why: str) -> Sides:
    turns = [Turn(number=0, lines=(Line(kind="told", text=text, struck=True),)) for text in kept]
    return Sides(rows=(_beside(turns[0], turns[1], {}),), twin=None, missing=why)


def _turns(story: Story, use: ToolUse, strikes: Mapping[str, Injection]) -> list[Turn]:
    """The steps from the struck call on, in its lane."""
    mine = [step for step in story.turns if step.lane == use.lane]
    calling = (at for at, step in enumerate(mine) if use.call_id in step.calls)
    return [_turn(step, story, use, strikes) for step in mine[next(calling, 0) :]]


def _turn(step: Step, story: Story, use: ToolUse, strikes: Mapping[str, Injection]) -> Turn:
    lines = [Line(kind="says", text=step.message)] if step.message else []
    calls = [each for each in story.uses if each.call_id in step.calls]
    for call in calls:
        lines.append(Line(kind="calls", text=f"{call.tool}({call.arguments})"))
        lines.append(_returned(call, strikes.get(call.call_id), call.call_id == use.call_id))
    struck = any(call.call_id in strikes for call in calls)
    return Turn(number=step.number, lines=tuple(lines), struck=struck)


def _returned(call: ToolUse, strike: Injection | None, struck: bool) -> Line:
    """What the model was told; at the model boundary that is not what its agent sent."""
    text = call.result
    if strike and strike.place == "model-boundary" and strike.mutated is not None:
        text = strike.mutated.decode("utf-8", "replace")
    if text is None:
        return Line(kind="failed", text="no result was ever sent", struck=struck)
    return Line(kind="failed" if call.is_error else "told", text=text, struck=struck)


def _key(turn: Turn) -> tuple[str, ...]:
    """What a step asks for, so that steps of two runs can be told to be the same."""
    return tuple(canonical_arguments(line.text) for line in turn.lines if line.kind == "calls")


def _aligned(left: Sequence[Turn], right: Sequence[Turn], known: Words) -> Iterator[Beside]:
    keys = [_key(turn) for turn in left], [_key(turn) for turn in right]
    for _, a, b, c, d in SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        for clean, faulted in zip_longest(left[a:b], right[c:d]):
            yield _beside(clean, faulted, known)


def _beside(clean: Turn | None, faulted: Turn | None, known: Words) -> Beside:
    """Two steps with marks: of the same lines on what differs, else on the known values."""
    if clean and faulted and _kinds(clean) == _kinds(faulted):
        pairs = [_pair(*both, known) for both in zip(clean.lines, faulted.lines, strict=True)]
        return Beside(
            clean=replace(clean, lines=tuple(line for line, _ in pairs)),
            faulted=replace(faulted, lines=tuple(line for _, line in pairs)),
        )
    return Beside(clean=_alone(clean, known), faulted=_alone(faulted, known))


def _kinds(turn: Turn) -> list[str]:
    return ["told" if line.kind == "failed" else line.kind for line in turn.lines]


def _pair(clean: Line, faulted: Line, known: Words) -> tuple[Line, Line]:
    marks: tuple[Mark, Mark] = ("truth", "lie") if clean.struck else ("differs", "differs")
    left, right = marked(clean.text, known), marked(faulted.text, known)
    if clean.struck or not any(piece.mark for piece in (*left, *right)):
        left, right = compared(clean.text, faulted.text, marks)
    return replace(clean, pieces=left), replace(faulted, pieces=right)


def _alone(turn: Turn | None, known: Words) -> Turn | None:
    if turn is None:
        return None
    lines = (replace(line, pieces=marked(line.text, known)) for line in turn.lines)
    return replace(turn, lines=tuple(lines))


def _capped(rows: tuple[Beside, ...]) -> tuple[Beside, ...]:
    """The struck step, those that differ after it, and the last; the others are counted."""
    shown, alike, skipped = list[Beside](), 0, 0
    for at, row in enumerate(rows):
        last, full = at == len(rows) - 1, len(shown) > MOST
        if at and not last and (full or _same(row)):
            skipped, alike = skipped + full, alike + (not full)
            continue
        shown.append(Beside(clean=row.clean, faulted=row.faulted, skipped=skipped, alike=alike))
        skipped = alike = 0
    return tuple(shown)


def _same(row: Beside) -> bool:
    if row.clean is None or row.faulted is None or row.faulted.struck:
        return False
    return [line.text for line in row.clean.lines] == [line.text for line in row.faulted.lines]
