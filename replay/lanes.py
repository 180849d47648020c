"""Which lanes of a fork are live: the one it was made in, what that starts, and what felt it."""

from dataclasses import dataclass

from traces.conversation import Conversations, Placed
from traces.turn import Turn, turn


@dataclass(frozen=True, slots=True)
class Fork:
    """Where a replay leaves the recording: the call whose result makes its lane live, or a turn."""

    call_id: str
    prefix: str | None
    """Address of the conversation before the call; None where its id alone names it."""
    world: bool
    """True if tools run live in a fresh world; False if they too come from the tape."""
    turn: Turn | None = None
    """The model's turn that is live itself; None where it is a call's result that makes it so."""

    @property
    def name(self) -> str:
        """What tells it from the other forks of its recording."""
        return self.call_id if self.turn is None else f"exchange {self.turn.seq}"


class Lanes:
    """The lanes of one run; False until the fork.

    A lane that a live one begins is live from its first request, since nothing of what made it
    was recorded. One that began before stays recorded until it asks for what the tape does not
    hold: that is how far the fork has cascaded.
    """

    def __init__(self, fork: Fork | None, conversations: Conversations) -> None:
        self._fork, self._conversations = fork, conversations
        self._live: dict[int, bool] = {}
        """Live lanes, True for those that are so by a cascade."""
        self._seen: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._live)

    @property
    def cascades(self) -> int:
        """How many lanes are live by a cascade."""
        return sum(self._live.values())

    def live(self, placed: Placed) -> bool:
        """Whether a model request is live; to be asked of each, in order."""
        lane = placed.lane
        if self._fork is None or lane is None:
            return False
        if lane not in self._live:
            began = self._conversations.parent(lane) if lane not in self._seen else None
            if self._at_fork(self._fork, placed, lane):
                self._live[lane] = False
            elif began in self._live:
                self._live[lane] = self._live[began]
        self._seen.add(lane)
        return lane in self._live

    def cascade(self, lane: int | None) -> None:
        """This lane felt the fork: it is live from now on."""
        self._live[lane or 0] = True

    def felt(self, placed: Placed) -> bool:
        """Whether a model request is live by a cascade."""
        return placed.kind == "model" and self._live.get(placed.lane or 0, False)

    def _at_fork(self, fork: Fork, placed: Placed, lane: int) -> bool:
        """True for the request that carries the struck call's result, or is the struck turn."""
        if fork.turn is not None:
            found = turn(0, placed)
            return found is not None and fork.turn.again(found)
        call = self._conversations.call(lane, fork.call_id)
        carried = call if call is not None and call.result_seq is not None else None
        return carried is not None and fork.prefix in (None, carried.prefix)
