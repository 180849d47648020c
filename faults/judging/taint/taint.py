"""Taint analysis: where a wrong value was used, in what form, and with what effect.

The steps of the method: tokens, sources, background, sinks, levels of similarity, propagation,
omission (control taint), and one result per injection; cases that rules cannot decide are confirmed
by forks (`counterfactual`). Fields that need clean twins are None if there are too few.

A value is traced if the changed result introduced it, no earlier message contains it, and no clean
twin ever does. Booleans, small numbers and omissions leave no value to trace; then only the course
of the run counts, and only if all clean twins took the same course.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from msgspec import Struct, field

from faults.judging.identifiers import is_specific_token
from faults.judging.injected_change import InjectedChange
from faults.judging.post_injection import RunContinuation
from faults.judging.taint.sinks import FINAL, CallKey, SinkSlot, TaintSink, make_call_key
from faults.judging.taint.source import TaintSource, make_taint_source
from faults.judging.trouble_words import find_trouble_word, remove_quoted_values, split_sentences
from faults.judging.value_tokens import extract_field_pairs, extract_tokens
from traces.model import ValueSimilarity

DEAD = "dead_in_twins"
LEVELS: tuple[ValueSimilarity, ...] = ("exact", "format", "rounded", "derived")


class TaintUse(Struct, frozen=True, kw_only=True):
    """One place where a wrong value was used."""

    step: int
    slot: SinkSlot
    level: ValueSimilarity
    quote: str
    writes: bool | None = False
    """Whether it was a write; None if the tool's side is unknown."""

    def describe(self) -> str:
        """Return `issue_refund: 1259.4 (exact)`."""
        where = {FINAL: "the final answer", "text": "words", "state": "the final state"}
        return f"{where.get(self.slot[0], self.slot[0])}: {self.quote} ({self.level})"


class TaintResult(Struct, frozen=True, kw_only=True):
    """The taint analysis of one injection; None is unknown."""

    uses: tuple[TaintUse, ...] = ()
    """In the order of the run."""
    used_in_write: bool | None = None
    used_in_final: bool | None = None
    level: ValueSimilarity | None = None
    """The closest of all uses."""
    first_use_step: int | None = None
    """The event of the survival analysis: the first use, or the first deviation from the twins."""
    truth_reobserved: int | None = None
    reported: bool = False
    corrected: bool | None = None
    control_only: bool | None = None
    dead: bool | None = None
    blast_radius: int | None = None
    rejected: tuple[int, str] | None = None
    """N8: step and text where the twins used the true value, and this run no wrong one."""
    explained: bool | None = None
    """Whether all writes are those of the twins, or the same with the wrong value: then the end is
    right if the wrong value is true."""
    reasons: Mapping[str, str] = field(default_factory=dict)


def is_final_answer_wrong(taint: TaintResult) -> bool:
    """Return whether the last answer gives the wrong value and the agent did not correct it."""
    return bool(taint.used_in_final) and not taint.corrected


def analyze_taint(
    change: InjectedChange,
    after: RunContinuation,
    twins: tuple[RunContinuation, ...],
    *,
    enough: bool,
    spoken: bool = False,
    state: str = "",
) -> TaintResult:
    """Analyze the use of an injected value.

    `spoken`: the agent reported in words that something is wrong with the result. `state` is the
    verifier's description of the final state.
    """
    case = _TaintAnalysis(change=change, after=after, twins=twins, spoken=spoken, state=state)
    return case.analyze(enough=enough)


@dataclass(frozen=True, kw_only=True)
class _TaintAnalysis:
    """The inputs and intermediate results of one analysis."""

    change: InjectedChange
    after: RunContinuation
    twins: tuple[RunContinuation, ...]
    spoken: bool
    state: str

    def analyze(self, *, enough: bool) -> TaintResult:
        if not enough:
            unknown = ("used_in_write", "used_in_final", "control_only", DEAD, "blast_radius")
            return TaintResult(
                truth_reobserved=self.truth_step,
                reported=self.reported,
                reasons=dict.fromkeys(unknown, "too few clean twins"),
            )
        uses, control = self.uses, self.control_only
        dead, reason = self._decide_dead()
        sides = {use.writes for use in uses}
        blast = None if None in sides else sum(use.writes is True for use in uses)
        closest = min((LEVELS.index(use.level) for use in uses), default=None)
        reasons = {DEAD: reason} if dead is None else {}
        if blast is None:
            reasons["blast_radius"] = "a tool's name does not say whether it writes"
        if control is None:
            reasons["control_only"] = "the clean twins went different ways"
        return TaintResult(
            uses=uses,
            used_in_write=True if True in sides else None if None in sides else False,
            used_in_final=any(use.slot[0] == FINAL for use in uses),
            level=None if closest is None else LEVELS[closest],
            first_use_step=self._find_first_use(control),
            truth_reobserved=self.truth_step,
            reported=self.reported,
            corrected=bool(uses)
            and self.truth_step is not None
            and all(use.step <= self.truth_step for use in uses),
            control_only=control,
            dead=dead,
            blast_radius=blast,
            rejected=self._find_rejection(),
            explained=self._is_explained(),
            reasons=reasons,
        )

    @cached_property
    def source(self) -> TaintSource:
        return make_taint_source(self.change, self.after, self.twins)

    @property
    def own_sinks(self) -> tuple[TaintSink, ...]:
        return self.after.sinks

    @property
    def twin_sinks(self) -> tuple[tuple[TaintSink, ...], ...]:
        return tuple(twin.sinks for twin in self.twins)

    # Use of the value.

    @cached_property
    def _all_uses(self) -> tuple[tuple[TaintSink, TaintUse], ...]:
        """Each sink with the wrong value, including reports of it as wrong."""
        slots = [{sink.slot: sink for sink in twin} for twin in self.twin_sinks]
        echoed: frozenset[str] = frozenset()
        uses = []
        for sink in self.own_sinks:
            same = [slot[sink.slot] for slot in slots if sink.slot in slot]
            match = self.source.match_sink(sink, same, echoed)
            if match is None:
                continue
            level, quote = match
            writes = None if sink.is_call and sink.side is None else sink.side == "write"
            use = TaintUse(step=sink.step, slot=sink.slot, level=level, quote=quote, writes=writes)
            uses.append((sink, use))
            if sink.result and sink.side != "write":
                # Results of a call with a wrong value are tainted too, except for known tokens.
                echoed |= {
                    a for a in extract_tokens(sink.result) if is_specific_token(a)
                } - self.source.background_tokens
        return tuple(uses)

    @cached_property
    def uses(self) -> tuple[TaintUse, ...]:
        uses = [use for sink, use in self._all_uses if not self._is_report(sink)]
        if shown := sorted(self.source.trackable_tokens & extract_tokens(self.state)):
            last = self.own_sinks[-1].step if self.own_sinks else 0
            use = TaintUse(
                step=last, slot=("state", 0), level="exact", quote=shown[0][2:], writes=True
            )
            if not any(each.writes for each in uses):
                uses.append(use)
        return tuple(uses)

    @cached_property
    def reported(self) -> bool:
        return self.spoken or any(self._is_report(sink) for sink, _ in self._all_uses)

    def _is_report(self, sink: TaintSink) -> bool:
        """Return whether a sink gives the wrong value with the true one, or as a problem."""
        for leaf in sink.leaves:
            tokens = extract_tokens(leaf.value)
            if tokens & self.source.trackable_tokens and tokens & self.source.lost_tokens:
                return True
        if sink.is_call:
            return False
        return any(
            find_trouble_word(remove_quoted_values(sentence, self.change.value_texts))
            and extract_tokens(sentence) & self.source.trackable_tokens
            for sentence in split_sentences(sink.text)
        )

    # The true value.

    @cached_property
    def truth_step(self) -> int | None:
        """The step of the first untainted call whose result contains the true value again."""
        tainted = {use.slot for _, use in self._all_uses}
        target_key, count = self.after.use and make_call_key(self.after.use), dict[str, int]()
        for use in self.after.calls:
            nth = count[use.tool] = count.get(use.tool, 0) + 1
            if use.result is None or (use.tool, nth) in tainted:
                continue
            if self.source.lost_tokens & extract_tokens(use.result):
                return use.step
            removed = self.change.removed_pairs
            if (
                removed
                and make_call_key(use) == target_key
                and removed <= extract_field_pairs(use.result)
            ):
                return use.step
        return None

    def _decide_dead(self) -> tuple[bool | None, str]:
        """Return whether no twin used the replaced value; if unknown, None and why."""
        lost, injection = self.source.lost_tokens, self.change.injection
        if self.uses or self.control_only:
            return False, ""
        if not lost:
            return injection.dead, "what was replaced leaves no value to follow"
        twin_tokens = frozenset[str]().union(
            *(sink.tokens for twin in self.twin_sinks for sink in twin)
        )
        if lost & twin_tokens:
            return False, ""
        new = {
            a for a in twin_tokens - self.after.prior_tokens if a[0] == "n" and is_specific_token(a)
        }
        if new and any(atom[0] == "n" for atom in lost):
            return None, "the clean twins reckon, perhaps with what was replaced"
        followed = all(lost & extract_tokens(was.value) for was, _ in self.change.changed_leaves)
        if injection.family != "V" or not followed:
            return injection.dead, "not all that was replaced can be followed"
        return True, ""

    def _find_rejection(self) -> tuple[int, str] | None:
        if not self.source.trackable_tokens or self.truth_step is not None or self._all_uses:
            return None
        for sink in self.own_sinks:
            for twin in self.twin_sinks:
                for other in twin:
                    used = sorted(self.source.lost_tokens & other.tokens)
                    if used and other.slot == sink.slot:
                        return sink.step, f"{sink.text} (the clean twin says {used[0][2:]} here)"
        return None

    # Course of the run.

    @cached_property
    def _acting_calls(self) -> tuple[tuple[CallKey, ...], tuple[tuple[CallKey, ...], ...]]:
        return _list_acting_calls(self.own_sinks), tuple(
            _list_acting_calls(twin) for twin in self.twin_sinks
        )

    @cached_property
    def control_only(self) -> bool | None:
        """Whether the run deviated from its twins without the wrong value; None if they differ.

        A value that an agent reports as wrong or a task that it reports as not done is no use,
        whatever it omits.
        """
        if self.uses or self.reported:
            return False
        if self._has_omission():
            return True
        own, others = self._acting_calls
        if len(set(others)) > 1:
            return None
        return any(set(own) != set(other) for other in others)

    def _has_omission(self) -> bool:
        """Return whether all twins use a true value that this run does not use."""
        own_tokens = frozenset[str]().union(*(sink.tokens for sink in self.own_sinks))
        used = [
            self.source.lost_tokens & frozenset[str]().union(*(sink.tokens for sink in twin))
            for twin in self.twin_sinks
        ]
        return bool(used) and bool(frozenset.intersection(*used) - own_tokens)

    def _find_first_use(self, control: bool | None) -> int | None:
        if self.uses:
            return min(use.step for use in self.uses)
        if not control:
            return None
        twin_keys = {sink.key for twin in self.twin_sinks for sink in twin}
        for sink in self.own_sinks:
            if sink.is_call and sink.side != "read" and sink.key not in twin_keys:
                return sink.step
        return self.own_sinks[-1].step if self.own_sinks else None

    def _is_explained(self) -> bool | None:
        own, others = self._acting_calls
        if len(set(others)) != 1:
            return None
        tainted = {use.slot for use in self.uses}
        twin = {sink.slot: sink for sink in self.twin_sinks[0] if _is_acting_sink(sink)}
        all_explained = all(
            sink.key in others[0] or (sink.slot in tainted and sink.slot in twin)
            for sink in self.own_sinks
            if _is_acting_sink(sink)
        )
        if all_explained and len(own) == len(others[0]):
            return True
        return False if self.source.trackable_tokens else None


def _list_acting_calls(run: tuple[TaintSink, ...]) -> tuple[CallKey, ...]:
    """Return the calls that may write, each once, in order."""
    return tuple(dict.fromkeys(_walk_acting_calls(run)))


def _walk_acting_calls(run: tuple[TaintSink, ...]) -> Iterator[CallKey]:
    for sink in run:
        if _is_acting_sink(sink) and sink.key is not None:
            yield sink.key


def _is_acting_sink(sink: TaintSink) -> bool:
    return sink.is_call and sink.side != "read"
