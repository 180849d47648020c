"""What each model request of a run sent: a reference to an earlier request, and what is new.

The conversation of a request is the first `history` messages of that of the request that it
follows, whose last message is its response, and then `messages`. So a conversation is written once,
however often it was sent, and one that was rewritten, or of a subagent, is its own.
"""

from collections.abc import Sequence
from itertools import takewhile

from msgspec import Struct, field

from traces.conversation.derived_steps import DerivedSteps
from traces.dialects.types import ChatMessage
from traces.shared_sequence import SharedSequence

_ROLES = {"system": "system", "developer": "system", "assistant": "assistant", "tool": "tool"}
_STEPS = ("system", "user")


class SentMessage(Struct, frozen=True, kw_only=True):
    """A message of a request; `role` is system, user, assistant or tool."""

    role: str
    text: str
    call_id: str | None = None
    """The id of the call whose result it is."""
    is_step: bool = True
    """False for a message that stands for an earlier one, or comes from elsewhere."""


class SentMessages(Struct, frozen=True, kw_only=True):
    """The conversation of a request."""

    follows: int | None = None
    """Place in the run of the response that it follows; None if it begins a conversation."""
    history: int = 0
    messages: tuple[SentMessage, ...] = ()


class _LaneState(Struct):
    """The last request of a lane, of which the next one repeats the beginning."""

    follows: int | None = None
    answer: str = ""
    """The text of its response."""
    sent: Sequence[ChatMessage] = ()
    sizes: list[int] = field(default_factory=list)
    """How many exported messages come before each message that was sent."""
    size: int = 0
    """All of these."""


def list_sent_messages(derived: DerivedSteps) -> dict[int, SentMessages]:
    """Return what each response of a recorded run answers, by its place among the steps."""
    lanes: dict[int, _LaneState] = {}
    found: dict[int, SentMessages] = {}
    results: dict[tuple[int, int], list[SentMessage]] = {}
    for use in derived.tool_uses:
        if use.result is not None and use.result_seq is not None:
            result = SentMessage(role="tool", text=use.result, call_id=use.call_id)
            results.setdefault((use.lane, use.result_seq), []).append(result)
    for place, step in enumerate(derived.steps):
        if step.source == "agent":
            new = [each for seq in step.seqs for each in results.get((step.lane, seq), ())]
            context = derived.contexts[step.seqs[-1]]
            if context.missing:
                lanes.pop(step.lane, None)
            lane = lanes.setdefault(step.lane, _LaneState())
            found[place] = _read_request(lane, context.messages, new)
            lane.follows, lane.answer = place, step.message
    return found


def _read_request(
    lane: _LaneState, sent: Sequence[ChatMessage], results: Sequence[SentMessage]
) -> SentMessages:
    """Return what a request sent, and make it the last one of its lane."""
    before, shared = len(lane.sent), _count_shared(lane.sent, sent)
    answered = _skip_answer(lane, sent) if shared == before else shared
    history = lane.sizes[shared] if shared < before else lane.size + (answered > before)
    del lane.sizes[shared:]
    lane.sizes += [lane.size] * (answered - shared)
    messages, to_come = list[SentMessage](), len(results)
    for place in range(answered, len(sent)):
        is_new, role = place >= before, sent[place].role
        if is_new and role != "assistant" and to_come == len(results):
            messages += results
        if is_new and role == "tool" and results:
            lane.sizes.append(history + len(messages) - to_come)
            to_come = max(to_come - 1, 0)
            continue
        to_come = 0 if is_new and role != "assistant" else to_come
        lane.sizes.append(history + len(messages))
        messages.append(_to_sent_message(sent[place], is_new=is_new))
    follows, lane.sent, lane.size = lane.follows, sent, history + len(messages)
    return SentMessages(follows=follows, history=history, messages=tuple(messages))


def _skip_answer(lane: _LaneState, sent: Sequence[ChatMessage]) -> int:
    """Return where the response ends that follows the last request, if it is as it was."""
    before = position = len(lane.sent)
    while lane.follows is not None and position < len(sent) and sent[position].role == "assistant":
        position += 1
    is_same = "".join(each.content for each in sent[before:position]) == lane.answer
    return position if is_same else before


def _count_shared(before: Sequence[ChatMessage], sent: Sequence[ChatMessage]) -> int:
    """Return how many of the first messages are the same, without a look at those known to be."""
    known = 0
    if isinstance(before, SharedSequence) and isinstance(sent, SharedSequence):
        known = sent.count_shared(before)
    pairs = zip(before[known:], sent[known:], strict=False)
    return known + sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _to_sent_message(message: ChatMessage, *, is_new: bool) -> SentMessage:
    role = _ROLES.get(message.role, "user")
    return SentMessage(role=role, text=message.content, is_step=is_new and role in _STEPS)
