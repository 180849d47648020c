"""Taint sinks: the places where a value can end up, in tool arguments and in messages."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from faults.judging.value_tokens import MAX_CACHED_CHARS, JsonLeaf, extract_tokens, find_json_leaves
from faults.targeting.read_or_write import ToolSide, classify_tool_side
from traces.conversation.derived_steps import ToolUse, TrajectoryStep
from traces.conversation.tracker import canonicalize_arguments

type CallKey = tuple[str, str]
"""A tool and its canonical arguments."""
type SinkSlot = tuple[str, int]
"""The tool and the count of its calls since the injection; `final` and an index for the last
answer.

Sinks of two runs correspond if their slots are equal.
"""


@dataclass(frozen=True, kw_only=True)
class TaintSink:
    """The arguments of one call, or one text of the agent."""

    step: int
    slot: SinkSlot
    text: str
    side: ToolSide | None = None
    """Whether the tool reads or writes; None for a text, or if unknown."""
    key: CallKey | None = None
    """The call; None for a text."""
    result: str | None = None

    @property
    def is_final(self) -> bool:
        """True for the last answer."""
        return self.slot[0] == FINAL

    @property
    def is_call(self) -> bool:
        """True for the arguments of a call."""
        return self.key is not None

    @cached_property
    def tokens(self) -> frozenset[str]:
        """The tokens of its text."""
        return extract_tokens(self.text)

    @cached_property
    def leaves(self) -> tuple[JsonLeaf, ...]:
        """Its JSON values; a text is one value."""
        return _cached_leaves(self.text)


FINAL = "final"


@lru_cache(maxsize=1 << 12)
def _cached_leaves(text: str) -> tuple[JsonLeaf, ...]:
    return find_json_leaves(text) or (JsonLeaf("", text, "text"),)


def make_call_key(use: ToolUse) -> CallKey:
    """Return the key of a call: tool and canonical arguments; equal calls have equal keys."""
    arguments = use.arguments
    return use.tool, _cached_arguments(arguments) if len(
        arguments
    ) <= MAX_CACHED_CHARS else canonicalize_arguments(arguments)


_cached_arguments = lru_cache(maxsize=1 << 12)(canonicalize_arguments)


def find_taint_sinks(
    turns: Iterable[TrajectoryStep], uses: Iterable[ToolUse], finals: Sequence[TrajectoryStep]
) -> Iterator[TaintSink]:
    """Yield the messages of these turns, `finals` among them, and the arguments of these calls."""
    calls = {(use.lane, use.call_id): use for use in uses}
    count: dict[str, int] = {}
    for turn in turns:
        if turn.message:
            last = next((at for at, each in enumerate(finals) if each is turn), None)
            slot = ("text", turn.number) if last is None else (FINAL, last)
            yield TaintSink(step=turn.number, slot=slot, text=turn.message)
        for id in turn.calls:
            if use := calls.get((turn.lane, id)):
                nth = count[use.tool] = count.get(use.tool, 0) + 1
                yield TaintSink(
                    step=turn.number,
                    slot=(use.tool, nth),
                    text=use.arguments,
                    side=classify_tool_side(use.tool),
                    key=make_call_key(use),
                    result=use.result,
                )
