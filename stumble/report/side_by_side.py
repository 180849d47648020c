"""Clean and faulted steps side by side, from the faulted call on, with differences marked."""

from collections.abc import Iterator, Mapping, Sequence
from copy import replace
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from msgspec import Struct

from stumble.report.text_diff import (
    DiffMark,
    TextPiece,
    find_replaced_words,
    mark_differences,
    mark_known_words,
)
from traces.conversation.derived_steps import (
    DerivedSteps,
    ToolUse,
    TrajectoryStep,
    derive_tape_steps,
)
from traces.conversation.tracker import canonicalize_arguments
from traces.model import Injection
from traces.tape.reader import Tape, read_tape

SHOWN_STEP_ROWS = 7
"""Most rows of steps after the faulted one, not counting the last step."""

type KnownWords = Mapping[str, DiffMark]


class StepLine(Struct, frozen=True, kw_only=True):
    """One message, tool call or tool result of an agent."""

    kind: Literal["says", "calls", "told", "failed"]
    text: str
    struck: bool = False
    """Whether it is the faulted result, or the true one in the clean run."""
    pieces: tuple[TextPiece, ...] = ()


class ShownStep(Struct, frozen=True, kw_only=True):
    """One step of an agent as shown."""

    number: int
    lines: tuple[StepLine, ...]
    struck: bool = False


class StepPair(Struct, frozen=True, kw_only=True):
    """A clean step and a faulted one; None if only the other run has this step.

    `skipped` counts the omitted steps before this one, `alike` those that are equal in both runs.
    """

    clean: ShownStep | None
    faulted: ShownStep | None
    skipped: int = 0
    alike: int = 0


class RunsSideBySide(Struct, frozen=True, kw_only=True):
    """The two runs from the faulted call on; without tapes, only the result from the index."""

    rows: tuple[StepPair, ...]
    twin: str | None
    missing: str | None = None
    """Why there is only the faulted result or run to show."""


class StoreTapeCache:
    """Cache of the tapes of a store."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._told: dict[str, tuple[Tape, DerivedSteps] | None] = {}

    def tape_path(self, id: str) -> Path:
        """Return the path of the tape of a run, which may not exist."""
        return self._folder / f"{id}.tape"

    def load_run(self, id: str) -> tuple[Tape, DerivedSteps] | None:
        """Return the tape with its derived steps; None if it is missing or unreadable."""
        if id not in self._told:
            self._told[id] = self._load_tape(self.tape_path(id))
        return self._told[id]

    def load_run_uncached(self, id: str) -> tuple[Tape, DerivedSteps] | None:
        """Like `load_run`, for a tape that is not needed again."""
        return self._load_tape(self.tape_path(id))

    @staticmethod
    def _load_tape(path: Path) -> tuple[Tape, DerivedSteps] | None:
        try:
            tape = read_tape(path)
        except (ValueError, OSError):
            return None
        return tape, derive_tape_steps(tape)


def build_side_by_side(
    shelf: StoreTapeCache,
    trajectory: str,
    injection: str,
    twins: Sequence[str],
    kept: tuple[str, str],
) -> RunsSideBySide:
    """Align the faulted run with its first existing clean twin.

    `kept` are the true and the faulted result from the index, used if a tape is missing.
    """
    faulted = shelf.load_run_uncached(trajectory)
    injected = faulted and next((i for i in faulted[0].injections if i.id == injection), None)
    if faulted is None or injected is None:
        return _build_without_tapes(
            kept, f"the tape {shelf.tape_path(trajectory).name} is gone or cannot be read"
        )
    use = faulted[1].find_use(injected.call_id or "")
    if use is None:
        return _build_without_tapes(kept, "the faulted exchange belongs to no tool call of a model")
    words = find_replaced_words(*kept)
    injections = {i.call_id: i for i in faulted[0].injections if i.call_id}
    faulted_steps = _list_shown_steps(faulted[1], use, injections)
    twin = next(((id, run) for id in twins if (run := shelf.load_run(id)) is not None), None)
    if twin is None:
        rows = tuple(_pair_steps(None, turn, words) for turn in faulted_steps)
        return RunsSideBySide(
            rows=_cap_step_pairs(rows), twin=None, missing="no clean twin is there to compare"
        )
    clean_steps = _list_shown_steps(twin[1][1], use, {})
    return RunsSideBySide(
        rows=_cap_step_pairs(tuple(_align_steps(clean_steps, faulted_steps, words))), twin=twin[0]
    )


def align_runs(one: DerivedSteps, two: DerivedSteps) -> tuple[StepPair, ...]:
    """Align all steps of two runs, by tool and arguments; differences are marked."""
    sides = [
        [_build_shown_step(step, story, None, {}) for step in story.agent_steps]
        for story in (one, two)
    ]
    return tuple(_align_steps(sides[0], sides[1], {}))


def align_whole_runs(
    faulted: DerivedSteps,
    clean: DerivedSteps | None,
    injection: Injection,
    injections: Sequence[Injection],
    kept: tuple[str, str],
) -> tuple[StepPair, ...]:
    """Align two runs from their first step, all steps of the lane of the faulted call.

    Up to the faulted call by step, if the clean run made that call at the same step; else, and
    after it, by tool and arguments. Empty if the injection belongs to no tool call of a model.
    `kept` are the true and the faulted result.
    """
    use = faulted.find_use(injection.call_id or "")
    if use is None:
        return ()
    strikes = {each.call_id: each for each in injections if each.call_id}
    faulted_steps = _list_shown_steps(faulted, use, strikes, whole=True)
    clean_steps = _list_shown_steps(clean, use, {}, whole=True) if clean else []
    words, shared = find_replaced_words(*kept), 0
    if clean is not None and _find_position(clean, use) == (at := _find_position(faulted, use)):
        shared = at + 1
    pairs = zip(clean_steps[:shared], faulted_steps[:shared], strict=True)
    return (
        *(_pair_steps(one, two, words) for one, two in pairs),
        *_align_steps(clean_steps[shared:], faulted_steps[shared:], words),
    )


def _find_position(derived_steps: DerivedSteps, use: ToolUse) -> int:
    """Return the position of the step of a call among those of its lane; -1 without one."""
    lane_steps = (step for step in derived_steps.agent_steps if step.lane == use.lane)
    return next((at for at, step in enumerate(lane_steps) if use.call_id in step.calls), -1)


def _build_without_tapes(kept: tuple[str, str], why: str) -> RunsSideBySide:
    turns = [
        ShownStep(number=0, lines=(StepLine(kind="told", text=text, struck=True),)) for text in kept
    ]
    return RunsSideBySide(rows=(_pair_steps(turns[0], turns[1], {}),), twin=None, missing=why)


def _list_shown_steps(
    derived_steps: DerivedSteps,
    use: ToolUse,
    injections: Mapping[str, Injection],
    *,
    whole: bool = False,
) -> list[ShownStep]:
    """Return the steps from the faulted call on, or with `whole` all, in its lane."""
    lane_steps = [step for step in derived_steps.agent_steps if step.lane == use.lane]
    positions = (at for at, step in enumerate(lane_steps) if use.call_id in step.calls)
    first = 0 if whole else next(positions, 0)
    return [_build_shown_step(step, derived_steps, use, injections) for step in lane_steps[first:]]


def _build_shown_step(
    step: TrajectoryStep,
    derived_steps: DerivedSteps,
    use: ToolUse | None,
    injections: Mapping[str, Injection],
) -> ShownStep:
    lines = [StepLine(kind="says", text=step.message)] if step.message else []
    calls = [each for each in derived_steps.tool_uses if each.call_id in step.calls]
    for call in calls:
        lines.append(StepLine(kind="calls", text=f"{call.tool}({call.arguments})"))
        is_faulted_call = use is not None and call.call_id == use.call_id
        lines.append(_build_result_line(call, injections.get(call.call_id), is_faulted_call))
    is_faulted = any(call.call_id in injections for call in calls)
    return ShownStep(number=step.number, lines=tuple(lines), struck=is_faulted)


def _build_result_line(call: ToolUse, injection: Injection | None, injected: bool) -> StepLine:
    """Return the result as the model got it; at the model boundary, the mutated one."""
    text = call.result
    if injection and injection.place == "model-boundary" and injection.mutated is not None:
        text = injection.mutated.decode("utf-8", "replace")
    if text is None:
        return StepLine(kind="failed", text="no result was ever sent", struck=injected)
    return StepLine(kind="failed" if call.is_error else "told", text=text, struck=injected)


def _make_calls_key(turn: ShownStep) -> tuple[str, ...]:
    """Return the canonical calls of a step, for alignment of two runs."""
    return tuple(canonicalize_arguments(line.text) for line in turn.lines if line.kind == "calls")


def _align_steps(
    left: Sequence[ShownStep], right: Sequence[ShownStep], known: KnownWords
) -> Iterator[StepPair]:
    keys = [_make_calls_key(turn) for turn in left], [_make_calls_key(turn) for turn in right]
    for _, a, b, c, d in SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        for clean, faulted in zip_longest(left[a:b], right[c:d]):
            yield _pair_steps(clean, faulted, known)


def _pair_steps(clean: ShownStep | None, faulted: ShownStep | None, known: KnownWords) -> StepPair:
    """Mark two steps: differences if they have the same kinds of lines, else known values."""
    if clean and faulted and _list_line_kinds(clean) == _list_line_kinds(faulted):
        pairs = [
            _mark_line_pair(*line_pair, known)
            for line_pair in zip(clean.lines, faulted.lines, strict=True)
        ]
        return StepPair(
            clean=replace(clean, lines=tuple(line for line, _ in pairs)),
            faulted=replace(faulted, lines=tuple(line for _, line in pairs)),
        )
    return StepPair(
        clean=_mark_single_step(clean, known), faulted=_mark_single_step(faulted, known)
    )


def _list_line_kinds(turn: ShownStep) -> list[str]:
    return ["told" if line.kind == "failed" else line.kind for line in turn.lines]


def _mark_line_pair(
    clean: StepLine, faulted: StepLine, known: KnownWords
) -> tuple[StepLine, StepLine]:
    marks: tuple[DiffMark, DiffMark] = ("truth", "lie") if clean.struck else ("differs", "differs")
    clean_pieces, faulted_pieces = (
        mark_known_words(clean.text, known),
        mark_known_words(faulted.text, known),
    )
    if clean.struck or not any(piece.mark for piece in (*clean_pieces, *faulted_pieces)):
        clean_pieces, faulted_pieces = mark_differences(clean.text, faulted.text, marks)
    return replace(clean, pieces=clean_pieces), replace(faulted, pieces=faulted_pieces)


def _mark_single_step(turn: ShownStep | None, known: KnownWords) -> ShownStep | None:
    if turn is None:
        return None
    lines = (replace(line, pieces=mark_known_words(line.text, known)) for line in turn.lines)
    return replace(turn, lines=tuple(lines))


def _cap_step_pairs(rows: tuple[StepPair, ...]) -> tuple[StepPair, ...]:
    """Return the faulted step, differing steps after it, and the last; count the others."""
    shown, equal, skipped = list[StepPair](), 0, 0
    for at, row in enumerate(rows):
        is_last, is_full = at == len(rows) - 1, len(shown) > SHOWN_STEP_ROWS
        if at and not is_last and (is_full or is_same_step(row)):
            skipped, equal = skipped + is_full, equal + (not is_full)
            continue
        shown.append(StepPair(clean=row.clean, faulted=row.faulted, skipped=skipped, alike=equal))
        skipped = equal = 0
    return tuple(shown)


def is_same_step(row: StepPair) -> bool:
    """Return whether both runs have the step, with the same texts, and without a fault."""
    if row.clean is None or row.faulted is None or row.faulted.struck:
        return False
    return [line.text for line in row.clean.lines] == [line.text for line in row.faulted.lines]
