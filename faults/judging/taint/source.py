"""Taint source: how a wrong value is recognized in a sink."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from faults.judging.identifiers import is_specific_token
from faults.judging.injected_change import VALUE_FAMILIES, InjectedChange
from faults.judging.post_injection import RunContinuation
from faults.judging.taint.similarity import (
    NumberChange,
    aggregate_columns,
    find_number_changes,
    find_rounded_tokens,
    is_derived_number,
    is_same_aggregate,
    parse_text_numbers,
)
from faults.judging.taint.sinks import TaintSink
from faults.judging.value_tokens import extract_tokens, find_json_leaves, to_number_token
from traces.model import ValueSimilarity

MAX_NUMBER_CHANGES = 32
"""Maximum changed numbers of one result that are searched for derived values."""
MAX_ALIGNED_NUMBERS = 12
"""Maximum numbers of a last answer, of those not in the twin's, compared with the twin's."""


@dataclass(frozen=True, kw_only=True)
class TaintSource:
    """The value to be traced."""

    change: InjectedChange
    prior_tokens: frozenset[str]
    """The tokens of all messages before the injection."""
    background_tokens: frozenset[str]
    """Those, and all tokens of the clean twins: none of them indicates the fault."""

    @property
    def is_followed(self) -> bool:
        """Whether the injected change is a value that can be copied."""
        return self.change.injection.family in VALUE_FAMILIES

    @cached_property
    def trackable_tokens(self) -> frozenset[str]:
        """The tokens that identify the wrong value."""
        if not self.is_followed:
            return frozenset()
        return (
            frozenset(filter(is_specific_token, self.change.introduced_tokens))
            - self.background_tokens
        )

    @cached_property
    def lost_tokens(self) -> frozenset[str]:
        """The tokens that identify the true value: none occurred before."""
        return frozenset(filter(is_specific_token, self.change.removed_tokens)) - self.prior_tokens

    @cached_property
    def number_changes(self) -> tuple[NumberChange, ...]:
        """The changed numbers."""
        return (
            find_number_changes(self.change.changed_leaves)[:MAX_NUMBER_CHANGES]
            if self.is_followed
            else ()
        )

    @cached_property
    def rounded_tokens(self) -> frozenset[str]:
        """The tokens of their rounded forms."""
        return find_rounded_tokens(self.number_changes) - self.background_tokens

    @cached_property
    def context_numbers(self) -> tuple[Decimal, ...]:
        """The numbers available for arithmetic, sorted."""
        tokens = self.prior_tokens | extract_tokens(self.change.original)
        return tuple(sorted({Decimal(atom[2:]) for atom in tokens if atom[0] == "n"}))

    @cached_property
    def column_aggregates(
        self,
    ) -> tuple[dict[str, tuple[Decimal, ...]], dict[str, tuple[Decimal, ...]]]:
        """Column aggregates of the true and of the changed result."""
        if not self.is_followed:
            return {}, {}
        return (
            aggregate_columns(find_json_leaves(self.change.original)),
            aggregate_columns(find_json_leaves(self.change.mutated)),
        )

    def match_sink(
        self, sink: TaintSink, same: Sequence[TaintSink], echoed: frozenset[str]
    ) -> tuple[ValueSimilarity, str] | None:
        """Return how a sink contains the wrong value, and the value; `same`: the twins' sinks."""
        if not self.is_followed:
            return None
        if matches := sorted(self.trackable_tokens & sink.tokens):
            exact = next((a for a in matches if self._is_spelled(a, sink.text)), None)
            return ("exact", exact[2:]) if exact else ("format", matches[0][2:])
        if matches := sorted(self.rounded_tokens & sink.tokens):
            return "rounded", matches[0][2:]
        if matches := sorted(echoed & sink.tokens):
            return "derived", matches[0][2:]
        if any(other.text == sink.text for other in same):
            return None
        value = next(
            (v for other in same if (v := self._find_derived(sink, other)) is not None), None
        )
        return None if value is None else ("derived", str(value))

    def _is_spelled(self, atom: str, text: str) -> bool:
        spelling = self.change.token_spellings.get(atom)
        return spelling is None or spelling in text

    def _find_derived(self, sink: TaintSink, other: TaintSink) -> Decimal | None:
        """Return the first number derived from the wrong value as the twin's from the true one."""
        if not self.number_changes and self.column_aggregates[0] == self.column_aggregates[1]:
            return None
        for twin, used in _align_numbers(sink, other):
            known = to_number_token(str(used)) in self.background_tokens
            if (
                not known
                and is_derived_number(self.number_changes, twin, used, self.context_numbers)
            ) or is_same_aggregate(*self.column_aggregates, twin, used):
                return used
        return None


def _align_numbers(sink: TaintSink, other: TaintSink) -> list[tuple[Decimal, Decimal]]:
    """Pair the numbers of a twin's slot with the corresponding ones of this sink.

    Pairs are formed by path and order; in texts with different counts, every number with every
    other.
    """
    pairs: list[tuple[Decimal, Decimal]] = []
    theirs = {leaf.path: leaf.value for leaf in other.leaves}
    for leaf in sink.leaves:
        twin_text = theirs.get(leaf.path)
        if twin_text is None or twin_text == leaf.value:
            continue
        own_numbers, twins = parse_text_numbers(leaf.value), parse_text_numbers(twin_text)
        if len(own_numbers) == len(twins):
            pairs += [(a, b) for a, b in zip(twins, own_numbers, strict=True) if a != b]
        else:
            unmatched = [n for n in own_numbers if n not in twins][:MAX_ALIGNED_NUMBERS]
            missing = [n for n in twins if n not in own_numbers][:MAX_ALIGNED_NUMBERS]
            pairs += [(a, b) for a in missing for b in unmatched]
    return pairs


def make_taint_source(
    change: InjectedChange, after: RunContinuation, twins: tuple[RunContinuation, ...]
) -> TaintSource:
    """Return the taint source of an injection."""
    background = after.prior_tokens.union(*(twin.all_tokens for twin in twins))
    return TaintSource(change=change, prior_tokens=after.prior_tokens, background_tokens=background)
