"""What an agent claims of its own result, held against its own clean runs first, words last.

The facts are asked in this order:

1.  how the run ended: a crash, an exit status that no twin has, silence;
2.  the form of the end against the twins', values masked: who ends as in clean runs claims what
    clean runs claim, whatever stands in all of them;
3.  the writes that all twins make: made, made otherwise, failed, not made;
4.  the values that all twins' answers give: the same, others, none;
5.  a question, a hand-over, a structured final, words: only in what no twin says, and only if
    they do not say of the twins, which did deliver, that they did not.

What is still open is `unknown`; `success` is then told by the facts, or None.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from faults.after import After
from faults.judging.answer_form import FormComparison, Statement, compare_form, is_json
from faults.judging.answer_values import Values, compare_values
from faults.judging.claim import read_text
from faults.judging.claim_structure import structured_call
from faults.judging.claim_types import SHOWN, MessageReading
from faults.judging.closing import closing, last_said
from faults.judging.final_turns import ToolTurn
from faults.judging.polarity import is_polar, speaks_of_itself
from faults.judging.written import WriteComparison, compare_writes
from faults.lexicon import names
from traces.model import Claim, Ending
from traces.story import Story

type ClaimBasis = Literal["end", "form", "writes", "values", "structure", "words"]

_NOT_DELIVERED: tuple[Claim, ...] = ("abstained", "asks", "admits_failure")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimFact:
    """A claim, whether it amounts to success, and what it was told by."""

    claim: Claim
    success: bool | None
    basis: ClaimBasis
    evidence: str = ""
    differs: bool = False
    """Whether the run ends otherwise than its twins."""
    said: tuple[str, ...] = ()
    """What it says at its end that no twin says."""
    writes: WriteComparison = WriteComparison()
    values: Values | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """All that a claim is told by."""

    own: After
    twins: Sequence[After]
    form: FormComparison
    writes: WriteComparison
    values: Values | None
    exit_differs: int | None
    """The exit status, if it is none of the twins'."""

    def fact(
        self, claim: Claim, success: bool | None, basis: ClaimBasis, evidence: str
    ) -> ClaimFact:
        return ClaimFact(
            claim=claim,
            success=success,
            basis=basis,
            evidence=evidence[:SHOWN],
            differs=self.form.form != "same" or self.exit_differs is not None,
            said=tuple(each.text for each in self.form.new),
            writes=self.writes,
            values=self.values,
        )


def judge_claim(
    own: After,
    twins: Sequence[After],
    *,
    hidden: tuple[str, ...] = (),
    crashed: bool = False,
    ending: Ending | None = None,
    endings: Sequence[Ending] = (),
) -> ClaimFact:
    """The claim of a run; `twins` are clean continuations, `hidden` texts that count as values.

    Without twins only the words are left.
    """
    case = _Case(
        own=own,
        twins=twins,
        form=compare_form(own, twins, hidden),
        writes=compare_writes(own, twins),
        values=compare_values(own, twins),
        exit_differs=_exit_differs(ending, endings),
    )
    if crashed:
        return case.fact("none", False, "end", "the run crashed")
    return _by_end(case) or _by_form(case) or _by_words(case)


def _exit_differs(ending: Ending | None, endings: Sequence[Ending]) -> int | None:
    code = ending.exit_code if ending else None
    usual = {each.exit_code for each in endings}
    return code if code and usual and code not in usual else None


def _by_end(case: _Case) -> ClaimFact | None:
    """An exit status that no twin has, or a run that says nothing where its twins speak."""
    if case.exit_differs is not None:
        status = f"exit status {case.exit_differs}"
        return case.fact("admits_failure", False, "end", status)
    if _breaks_off(case):
        return case.fact("none", False, "end", "the run ends in an open call")
    if not case.form.silent:
        return None
    if case.form.twins_silent:
        return _silent(case)
    if case.writes.made:
        return case.fact("delivered", True, "writes", str(case.writes))
    return case.fact("none", False if case.twins else None, "end", "nothing is said")


def _silent(case: _Case) -> ClaimFact:
    """An agent that never says anything has nothing but its writes."""
    if case.writes.made is False:
        return case.fact("none", None, "end", f"it never says anything; {case.writes}")
    return case.fact("delivered", True, "form", f"as clean runs end; {case.writes}")


def _breaks_off(case: _Case) -> bool:
    """Whether the run ends in a call that hands nothing in, and its twins do not."""
    if closing(case.own.story) or not any(closing(twin.story) for twin in case.twins):
        return False
    last = case.own.calls[-1] if case.own.calls else None
    return last is None or structured_call(ToolTurn(f"{last.tool}({last.arguments})")) is None


def _by_form(case: _Case) -> ClaimFact | None:
    """Who says all that a twin says claims what the twin claims, whatever is added to it."""
    if case.form.form not in ("same", "added"):
        return None
    if case.form.form == "added" and case.writes.made is False and _takes_back(case):
        return None
    return case.fact("delivered", True, "form", f"as in clean runs: {case.form.kept}")


def _takes_back(case: _Case) -> bool:
    """Whether what is added says that it was not done, where indeed it was not."""
    read = _read_new(case)
    return read.claim in (*_NOT_DELIVERED, "partial") and read.is_explicit


def _by_words(case: _Case) -> ClaimFact:
    """What is said in another way than in clean runs, with what was done beside it."""
    read = _read_new(case)
    if read.claim != "delivered" and _says_nothing(case, read):
        read = MessageReading("unknown", read.evidence, "clean runs say it too", False)
    if case.writes.made:
        return _after_writes(case, read)
    if case.writes.made is False:
        return _without_writes(case, read)
    return _by_answer(case, read)


def _says_nothing(case: _Case, read: MessageReading) -> bool:
    """Whether the words would say of each twin what they say of this run."""
    theirs = [read_text(_whole(twin.story)).claim for twin in case.twins]
    return bool(theirs) and all(claim == read.claim for claim in theirs)


def _after_writes(case: _Case, read: MessageReading) -> ClaimFact:
    """All writes were made: only who says that it failed does not claim success."""
    if read.claim == "admits_failure" and read.is_explicit:
        return case.fact("admits_failure", False, "words", read.evidence)
    return case.fact("delivered", True, "writes", str(case.writes))


def _without_writes(case: _Case, read: MessageReading) -> ClaimFact:
    """Not all writes were made, and the end is not that of a clean run."""
    if read.claim in _NOT_DELIVERED:
        return case.fact(read.claim, False, "words", read.evidence)
    if read.claim == "partial":
        honest = not case.writes.otherwise
        return case.fact("partial", not honest, "words", read.evidence)
    if read.claim == "delivered" and read.is_explicit:
        return case.fact("delivered", True, "words", read.evidence)
    if case.writes.extra:
        used = f"{', '.join(case.writes.extra)}, which no clean run uses; {case.writes}"
        return case.fact("abstained", False, "writes", used)
    if read.claim == "delivered" and not case.writes.some and _is_readable(case):
        return case.fact("unknown", False, "writes", f"{case.writes}; {read.evidence}")
    if read.claim == "none":
        return case.fact("none", False, "words", read.evidence or str(case.writes))
    success = False if read.among and "delivered" not in read.among else None
    return case.fact("unknown", success, "words", read.evidence)


def _is_readable(case: _Case) -> bool:
    """Whether the words of the twins are understood: each is read as delivered, explicitly."""
    theirs = [read_text(_whole(twin.story)) for twin in case.twins]
    return bool(theirs) and all(t.claim == "delivered" and t.is_explicit for t in theirs)


def _by_answer(case: _Case, read: MessageReading) -> ClaimFact:
    """Clean runs write nothing, or this one another text: the answer is the deliverable."""
    if is_polar(_whole(case.own.story), [_whole(twin.story) for twin in case.twins]):
        return case.fact("delivered", True, "values", "it answers yes or no, as clean runs do")
    if _may_be_the_answer(case, read):
        return case.fact("unknown", None, "words", read.evidence)
    if read.claim in _NOT_DELIVERED and (read.is_explicit or case.values != "other"):
        return case.fact(read.claim, False, "words", read.evidence)
    if case.values == "absent":
        told = "the answer has none of the values that clean runs give"
        return case.fact("none", False, "values", told)
    if read.claim in ("delivered", "partial"):
        return case.fact(read.claim, True, "words", read.evidence)
    if case.values == "same":
        told = "the answer has the values that clean runs give"
        return case.fact("delivered", True, "values", told)
    if read.claim == "none":
        return case.fact("none", None, "words", read.evidence)
    success = False if read.among and "delivered" not in read.among else None
    return case.fact("unknown", success, "words", read.evidence)


def _may_be_the_answer(case: _Case, read: MessageReading) -> bool:
    """Whether what reads like a failure may be what the tool said: `it is sold out`.

    So where answers are statements without a value, the tool did not fail, and neither it nor the
    speaker is named.
    """
    if read.claim != "admits_failure" or case.values is not None or case.writes.required:
        return False
    use = case.own.use
    told = use is not None and (use.is_error or names(read.evidence, (use.tool,)))
    return bool(case.twins) and not told and not speaks_of_itself(read.evidence)


def _read_new(case: _Case) -> MessageReading:
    """The claim of what no twin says: in the answer, else in the arguments of a call."""
    new = case.form.new_text if case.twins else _whole(case.own.story)
    if new and (is_json(_whole(case.own.story)) or not case.twins):
        return read_text(_whole(case.own.story))
    if new.strip():
        return read_text(new)
    said = [each for each in case.form.new if each.call is not None]
    return _read_call(said) if said else MessageReading("unknown", "", "nothing new", False)


def _read_call(said: Sequence[Statement]) -> MessageReading:
    use = said[-1].call
    assert use is not None
    found = structured_call(ToolTurn(f"{use.tool}({use.arguments})"))
    if found is not None and found.status is not None:
        return MessageReading(found.status, found.quote, "a status")
    return read_text("\n".join(each.text for each in said))


def _whole(story: Story) -> str:
    return "\n".join(turn.message for turn in last_said(story))
