"""Track which lanes of a fork are live: the forked one, those it starts, and those it affected."""

from msgspec import Struct

from traces.conversation.model_turn import ModelTurn, to_model_turn
from traces.conversation.tracker import ConversationTracker, ExchangeContext


class Fork(Struct, frozen=True):
    """Where a replay leaves the recording: at a call, whose result goes live, or at a turn."""

    call_id: str
    prefix: str | None
    """Address of the conversation before the call; None if the call's id alone identifies it."""
    world: bool
    """True if tools run live in a fresh world; False if they too are answered from the tape."""
    turn: ModelTurn | None = None
    """The model turn that is itself live; None if the fork is at a call's result."""

    def is_at_call(self, placed: ExchangeContext) -> bool:
        """Return whether a tool's request serves the forked call."""
        call = placed.call
        if self.turn is not None or call is None or call.id != self.call_id:
            return False
        return self.prefix in (None, call.prefix)

    @property
    def name(self) -> str:
        """Identifies it among the forks of its recording."""
        return self.call_id if self.turn is None else f"exchange {self.turn.seq}"


class ForkLanes:
    """The lanes of one run; false until the fork.

    A lane started by a live one is live from its first request, because nothing that led to it was
    recorded. A lane that began earlier stays recorded until it makes a request that is not on the
    tape: then the fork has cascaded to it.
    """

    def __init__(self, fork: Fork | None, conversations: ConversationTracker) -> None:
        self._fork, self._conversations = fork, conversations
        self._live: dict[int, bool] = {}
        """Live lanes; True for those that are live through a cascade."""
        self._seen: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._live)

    @property
    def cascade_count(self) -> int:
        """How many lanes are live through a cascade."""
        return sum(self._live.values())

    def is_live(self, placed: ExchangeContext) -> bool:
        """Return whether a model request is live; call this for each request, in order."""
        lane = placed.lane
        if self._fork is None or lane is None:
            return False
        if lane not in self._live:
            parent = self._conversations.parent_lane(lane) if lane not in self._seen else None
            if self._is_at_fork(self._fork, placed, lane):
                self._live[lane] = False
            elif parent in self._live:
                self._live[lane] = self._live[parent]
        self._seen.add(lane)
        return lane in self._live

    def mark_cascade(self, lane: int | None) -> None:
        """Mark a lane as affected by the fork: it is live from now on."""
        self._live[lane or 0] = True

    def is_live_by_cascade(self, placed: ExchangeContext) -> bool:
        """Return whether a model request is live through a cascade."""
        return placed.kind == "model" and self._live.get(placed.lane or 0, False)

    def _is_at_fork(self, fork: Fork, placed: ExchangeContext, lane: int) -> bool:
        """Return whether the request carries the forked call's result, or is the forked turn."""
        if fork.turn is not None:
            turn = to_model_turn(0, placed)
            return turn is not None and fork.turn.is_same_turn(turn)
        call = self._conversations.find_call(lane, fork.call_id)
        carried = call if call is not None and call.result_seq is not None else None
        return carried is not None and fork.prefix in (None, carried.prefix)
