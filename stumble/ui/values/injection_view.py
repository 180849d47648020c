"""One injection as shown: the verdict with its words, the change, and both runs aligned."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from faults.judging.injected_change import to_injected_change
from faults.judging.judge import JudgedInjection, classify_outcome
from stumble.report.outcomes import DETECTABILITY_LABELS, NOT_RATED, OUTCOME_LABELS
from stumble.report.side_by_side import StepPair, align_whole_runs, is_same_step
from stumble.report.text_diff import TextPiece, find_replaced_words, mark_differences
from stumble.runs.environment.workspaces import open_store_blobs
from stumble.store.judged_rows import load_judged_injection
from stumble.ui.values.file_view import FilesView, build_files_view
from stumble.verdicts.exclusions import explain_exclusion, find_exclusion
from stumble.verdicts.explain import VerdictExplanation
from stumble.verdicts.file_changes import read_run_files
from stumble.verdicts.outcome_meanings import describe_outcome
from traces.conversation.prefix_changes import find_prefix_changes
from traces.model import Outcome, OutcomeClass, RunEnding
from traces.store.trace_store import TraceStore

LARGEST_RUNS = 1 << 27
"""Bytes of the tapes of one page."""
SIGNS: Mapping[str, str] = {
    "N1": "made the same call again",
    "N2": "made the call again, changed",
    "N3": "asked another tool for the same",
    "N4": "read the same thing back",
    "N5": "named trouble",
    "N6": "put the wrong value beside the true one",
    "N7": "its last answer refuses, asks or says not done",
    "N8": "did not use the value where the twins do",
    "N9": "found the value under another name",
}
"""The signs of notice, in words: see `faults/judging/notice/notice_signals.py`."""
NO_SIGN = (f"none of the {len(SIGNS)} signs was found",)
PLACES: Mapping[str, str] = {
    "says": "its text",
    "calls": "a call",
    "told": "a result",
    "failed": "an error",
}
COUNTED_MARKS = ("lie", "differs")
"""Marks of the faulted run that are linked to one another."""
_LABELS = dict(OUTCOME_LABELS)


class FactRow(Struct, frozen=True, kw_only=True):
    """A fact that decides a verdict: its value, and the words that prove it."""

    name: str
    value: str
    words: tuple[str, ...] = ()


class StepBlock(Struct, frozen=True, kw_only=True):
    """Aligned steps; those that are equal in both runs are folded."""

    rows: tuple[StepPair, ...]
    is_equal: bool


class LaterUse(Struct, frozen=True, kw_only=True):
    """A place after the injection that shows the wrong value; `number` names it on the page."""

    number: int
    step: int | None
    words: str


class EndStateView(Struct, frozen=True, kw_only=True):
    """How one run ended, and the beginning of its end state."""

    run: str
    words: str
    pieces: tuple[TextPiece, ...] = ()


class InjectionView(Struct, frozen=True, kw_only=True):
    """All that the page of one injection shows."""

    id: str
    run: str
    twin: str | None
    title: str
    outcome: str
    label: str
    meaning: str
    excluded: str | None
    about: tuple[tuple[str, str], ...]
    facts: tuple[FactRow, ...]
    counterfactuals: tuple[tuple[str, str, str], ...]
    """(what had been otherwise, outcome, its label)."""
    original: tuple[TextPiece, ...]
    mutated: tuple[TextPiece, ...]
    blocks: tuple[StepBlock, ...]
    uses: tuple[LaterUse, ...]
    marks: int
    """Number of marks of the faulted run that are linked."""
    files: FilesView
    ends: tuple[EndStateView, ...]
    unknown: tuple[tuple[str, str], ...]
    judge: int
    problem: str | None = None


def read_injection_view(store: TraceStore, id: str, run: str) -> InjectionView:
    """Judge an injection again from its tapes. Raises OSError or ValueError without them."""
    size = (store.tapes / f"{run}.tape").stat().st_size
    if size > LARGEST_RUNS:
        raise ValueError(f"its tape has {size / 1e6:,.0f} MB; in a terminal: stumble why {id}")
    judged = load_judged_injection(store, run, id)
    blobs, runs = open_store_blobs(store), (judged.faulted, *judged.twins[:1])
    files = tuple(read_run_files(blobs, each.tape.trajectory) for each in runs)
    return build_injection_view(VerdictExplanation(judged=judged, files=files))


def build_injection_view(explanation: VerdictExplanation) -> InjectionView:
    """Build the view of a judged injection."""
    judged = explanation.judged
    injection, verdict, faulted = judged.injection, judged.verdict, judged.faulted
    twin = next(iter(judged.twins), None)
    ending = faulted.tape.ending
    excluded = find_exclusion(verdict, ending.ended if ending else None)
    texts = _decode(injection.original), _decode(injection.mutated)
    original, mutated = mark_differences(*texts, ("truth", "lie"))
    rows = align_whole_runs(
        faulted.story, twin.story if twin else None, injection, faulted.tape.injections, texts
    )
    outcome = _key_of(verdict)
    own, *others = explanation.files or (None,)
    files = build_files_view(others[0] if others else None, own, find_replaced_words(*texts))
    uses, marks = tuple(_list_uses(rows)), _count_marks(rows)
    return InjectionView(
        id=injection.id,
        run=faulted.tape.trajectory.id,
        twin=twin.tape.trajectory.id if twin else None,
        title=f"{injection.op} in {injection.tool or 'the model'}",
        outcome=outcome,
        label="sham, no change" if injection.sham else _LABELS[outcome],
        meaning=describe_outcome(verdict),
        excluded=None
        if excluded is None
        else f"{excluded}: {explain_exclusion(excluded, verdict)}",
        about=tuple(_list_about(judged)),
        facts=tuple(_list_facts(judged)),
        counterfactuals=tuple(_list_counterfactuals(verdict)),
        original=original,
        mutated=mutated,
        blocks=tuple(_group_steps(rows)),
        uses=(*uses, *_list_file_uses(files, marks)),
        marks=marks + sum(count for _, count in _count_file_marks(files)),
        files=files,
        ends=tuple(_list_ends(judged)),
        unknown=tuple(verdict.reasons.items()),
        judge=verdict.judge_version,
        problem=None if twin else "no clean twin is there to compare",
    )


def _key_of(verdict: Outcome) -> str:
    if verdict.unreached_reason == "absorbed":
        return "absorbed"
    return verdict.outcome if verdict.outcome in _LABELS else "unsettled"


def _list_about(judged: JudgedInjection) -> Iterator[tuple[str, str]]:
    injection = judged.injection
    params = ", ".join(f"{key}={value}" for key, value in injection.params.items())
    step = judged.faulted.find_step(injection)
    yield "fault", f"{injection.op}({params})"
    yield "place", injection.place
    yield "step", "not known" if step is None else str(step)
    yield "persistence", injection.persist
    yield "detectability", DETECTABILITY_LABELS.get(injection.detect or "", NOT_RATED)
    if words := to_injected_change(injection).describe():
        yield "change", words
    if lines := list(find_prefix_changes(judged.faulted.tape).to_lines()):
        yield "before it", "; ".join(lines)


def _list_facts(judged: JudgedInjection) -> Iterator[FactRow]:
    verdict, reasons, why = judged.verdict, judged.verdict.reasons, judged.consumption.why
    yield FactRow(name="The changed value reached the model", value=_yes(verdict.consumed),
                  words=(why,) if why else ())  # fmt: skip
    signs = tuple(
        f"step {sign.step}, {SIGNS.get(sign.code, sign.code)}"
        f"{'' if sign.hard else ' (may mean something else)'}: \u201c{sign.quote}\u201d"
        for sign in verdict.signals
    )
    none = NO_SIGN if verdict.noticed is False else ()
    yield FactRow(name="The agent noticed", value=_yes(verdict.noticed),
                  words=signs or _because(reasons, "noticed") or none)  # fmt: skip
    end = judged.faulted.tape.ending
    detail = (f"{_name_verifier(end)}: {end.detail}",) if end and end.detail else ()
    yield FactRow(name="The end state is right", value=_yes(verdict.passed),
                  words=detail or _because(reasons, "passed"))  # fmt: skip
    claim = (f"\u201c{verdict.claim_evidence}\u201d",) if verdict.claim_evidence else ()
    yield FactRow(name="It claims success", value=_yes(verdict.claims_success),
                  words=claim or _because(reasons, "claims_success"))  # fmt: skip
    yield describe_use(verdict)
    yield FactRow(name="The clean twins end right", value=_yes(verdict.baseline_valid),
                  words=_because(reasons, "baseline_valid"))  # fmt: skip


def _name_verifier(ending: RunEnding) -> str:
    known = {"CommandWorld": "the --verify command", None: "the verifier"}
    return known.get(ending.verifier) or str(ending.verifier)


def describe_use(verdict: Outcome) -> FactRow:
    """Describe whether the wrong value was used: "no" only if nothing can have come of it.

    A value computed from it, as a sum, leaves no trace of it: that is unknown if the end is wrong
    or the run differs from its twins.
    """
    words = verdict.uses
    if not words and verdict.control_only and verdict.first_use_step is not None:
        words = (f"no value of it, but the run left its twins at step {verdict.first_use_step}",)
    used = bool(verdict.uses) if verdict.consumed is not None else None
    if used is False and (verdict.passed is False or verdict.control_only is not False):
        used = None
        words = words or ("no value of it; that something was computed from it is not excluded",)
    value = _yes(used)
    return FactRow(name="The wrong value was used", value=value, words=words)


def _because(reasons: Mapping[str, str], name: str) -> tuple[str, ...]:
    return (reasons[name],) if name in reasons else ()


def _yes(value: bool | None) -> str:
    return "unknown" if value is None else "yes" if value else "no"


_OTHERWISE: Mapping[str, Mapping[bool, str]] = {
    "consumed": {True: "the value had reached the model", False: "the value had not reached it"},
    "noticed": {True: "it had noticed", False: "it had not noticed"},
    "passed": {True: "the end state had been right", False: "the end state had been wrong"},
    "claims": {True: "it had claimed success", False: "it had said that it failed"},
}


def _list_counterfactuals(verdict: Outcome) -> Iterator[tuple[str, str, str]]:
    """Yield the outcome for each single fact that would have given another one."""
    facts: dict[str, bool | None] = {
        "consumed": verdict.consumed,
        "noticed": verdict.noticed,
        "passed": verdict.passed,
        "claims": verdict.claims_success,
    }
    crashed = verdict.outcome == "crashed"
    if verdict.outcome is None or crashed or verdict.consumed is not True:
        return
    for name, words in _OTHERWISE.items():
        if name == "consumed" or facts[name] is None:
            continue
        changed = facts | {name: not facts[name]}
        other = classify_outcome(
            crashed=False,
            consumed=True,
            passed=changed["passed"],
            noticed=changed["noticed"],
            claims=changed["claims"],
        )
        if other is not None and other != verdict.outcome:
            yield words[not facts[name]], other, _label(other)


def _label(outcome: OutcomeClass) -> str:
    return _LABELS.get(outcome, outcome)


def _group_steps(rows: tuple[StepPair, ...]) -> Iterator[StepBlock]:
    """Fold runs of steps that are equal in both."""
    block: list[StepPair] = []
    for row in rows:
        if block and is_same_step(row) != is_same_step(block[-1]):
            yield StepBlock(rows=tuple(block), is_equal=is_same_step(block[-1]))
            block = []
        block.append(row)
    if block:
        yield StepBlock(rows=tuple(block), is_equal=is_same_step(block[-1]))


def _list_uses(rows: tuple[StepPair, ...]) -> Iterator[LaterUse]:
    """Yield each changed text in the faulted run, from the injected one on.

    The numbers count `COUNTED_MARKS` of all its lines, as the page does.
    """
    number, is_reached, last = 0, False, None
    for row in rows:
        for line in row.faulted.lines if row.faulted else ():
            assert row.faulted is not None
            is_reached = is_reached or line.struck
            for piece in line.pieces:
                if piece.mark not in COUNTED_MARKS:
                    continue
                number += 1
                where = "injected" if line.struck else PLACES[line.kind]
                if is_reached and last != (row.faulted.number, where):
                    last = row.faulted.number, where
                    yield LaterUse(number=number, step=row.faulted.number, words=where)


def _count_marks(rows: tuple[StepPair, ...]) -> int:
    lines = (line for row in rows for line in (row.faulted.lines if row.faulted else ()))
    return sum(piece.mark in COUNTED_MARKS for line in lines for piece in line.pieces)


def _count_file_marks(files: FilesView) -> Iterator[tuple[str, int]]:
    """Yield the number of linked marks of each file of the faulted run, in the page's order."""
    for row in files.rows:
        pieces = (piece for line in row.faulted.lines for piece in line.pieces)
        yield row.path, sum(piece.mark in COUNTED_MARKS for piece in pieces)


def _list_file_uses(files: FilesView, marks: int) -> Iterator[LaterUse]:
    """Yield the first mark of each file, numbered after the `marks` of the steps."""
    for path, count in _count_file_marks(files):
        if count:
            yield LaterUse(number=marks + 1, step=None, words=path)
        marks += count


def _list_ends(judged: JudgedInjection) -> Iterator[EndStateView]:
    """Yield the end of the first twin and of the faulted run, differences marked; other twins."""
    runs = [*judged.twins[:1], judged.faulted]
    endings = [each.tape.ending for each in runs]
    texts = [ending.state_text if ending else "" for ending in endings]
    pieces: tuple[tuple[TextPiece, ...], ...] = ((), ())
    if len(texts) == 2:
        pieces = mark_differences(texts[0], texts[1], ("truth", "lie"))
    for each, ending, some in zip(runs, endings, pieces[-len(runs) :], strict=True):
        words = "no end" if ending is None else f"ended {ending.ended}, exit {ending.exit_code}"
        if ending is not None and ending.passed is not None:
            words += f", {'right' if ending.passed else 'wrong'} by {_name_verifier(ending)}"
        yield EndStateView(run=each.tape.trajectory.id, words=words, pieces=some)
    for each in judged.twins[1:]:
        passed = each.tape.ending.passed if each.tape.ending else None
        yield EndStateView(
            run=each.tape.trajectory.id,
            words={True: "right", False: "wrong", None: "not known"}[passed],
        )


def _decode(data: bytes | None) -> str:
    return "" if data is None else data.decode("utf-8", "replace")
