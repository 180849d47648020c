"""A fork in a run with helpers: who is live at once, who by a cascade, and who not at all."""

import json
from collections.abc import Iterator
from copy import replace
from itertools import count
from pathlib import Path

import pytest

from replay.fork_state import Fork
from replay.player import PlaybackOptions, TapePlayer
from traces.conversation.tracker import ConversationTap
from traces.dialects import openai_chat
from traces.dialects.types import ModelAnswer, ToolCall
from traces.model import Exchange, Response, Trajectory
from traces.model import Request as Asked
from traces.store.rows import build_tape_rows
from traces.store.schema import SCHEMAS
from traces.tape.reader import Tape, read_tape
from traces.tape.writer import TapeWriter
from traces.taps import TapChain

URL = "http://m/v1/chat/completions"
BRIEF = "read north.txt and say the sum of its numbers"

type Message = dict[str, object]


class Talk:
    """One conversation as its agent sees it."""

    def __init__(self, prompt: str) -> None:
        self.messages: list[Message] = [{"role": "user", "content": prompt}]

    def request(self) -> Asked:
        body = json.dumps({"model": "m", "messages": self.messages}).encode()
        return Asked(method="POST", url=URL, body=body)

    def hears(self, *calls: ToolCall, message: str = "") -> Response:
        """What the model answers, which is part of the talk from now on."""
        answer = ModelAnswer(message=message, calls=calls, model="m")
        made = [
            {"id": each.id, "function": {"name": each.name, "arguments": each.arguments}}
            for each in calls
        ]
        self.messages.append({"role": "assistant", "content": message, "tool_calls": made})
        headers, chunks = openai_chat.write_model_answer(answer, stream=False, id="x", created=0)
        return Response(status=200, headers=headers, chunks=chunks, ended=0.0)

    def tells(self, call: ToolCall, result: str) -> None:
        self.messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def call(id: str, tool: str, **arguments: str) -> ToolCall:
    return ToolCall(id=id, name=tool, arguments=json.dumps(arguments))


LOOK, HELP = call("c1", "look", where="north"), call("c2", "help", brief=BRIEF)
READ, CHECK = call("c3", "read", path="north.txt"), call("c4", "check", total="155534")


class Office:
    """A lead that looks and then has a helper read, while a clerk beside it keeps the minutes."""

    def __init__(self, looked: str = "a file", read: str = "155534") -> None:
        self.looked, self.read = looked, read
        self.lead, self.helper, self.clerk = Talk("do it"), Talk(f"Brief: {BRIEF}"), Talk("note")

    def work(self) -> Iterator[tuple[str, Asked, Response]]:
        """(who, request, what its model answers), in the order in which things happen."""
        yield "clerk", self.clerk.request(), self.clerk.hears(CHECK)
        yield "lead", self.lead.request(), self.lead.hears(LOOK)
        self.lead.tells(LOOK, self.looked)
        yield "lead", self.lead.request(), self.lead.hears(HELP)
        yield "helper", self.helper.request(), self.helper.hears(READ)
        self.helper.tells(READ, self.read)
        yield "helper", self.helper.request(), self.helper.hears(message=f"sum {self.read}")
        self.lead.tells(HELP, f"sum {self.read}")
        yield "lead", self.lead.request(), self.lead.hears(message="done")
        self.clerk.tells(CHECK, f"lead saw {self.looked}")
        yield "clerk", self.clerk.request(), self.clerk.hears(message="noted")


class Anew(Office):
    """A lead whose client counts its ids anew, and looks again under the same one."""

    def work(self) -> Iterator[tuple[str, Asked, Response]]:
        for _ in range(2):
            yield "lead", self.lead.request(), self.lead.hears(LOOK)
            self.lead.tells(LOOK, self.looked)
        yield "lead", self.lead.request(), self.lead.hears(message="done")


def recorded(office: Office) -> Tape:
    exchanges = tuple(
        Exchange(seq=seq, started=float(seq), request=request, response=moved(answer, float(seq)))
        for seq, (_, request, answer) in enumerate(office.work())
    )
    run = Trajectory(id="r", recorded_at=0.0)
    return Tape(path=Path("a.tape"), trajectory=run, exchanges=exchanges, spans={})


def moved(answer: Response, at: float) -> Response:
    chunks = tuple(replace(chunk, at=at) for chunk in answer.chunks)
    return replace(answer, at=at, ended=at, chunks=chunks)


def forked(
    call_id: str, office: Office, path: Path, *, tries: int = 1
) -> tuple[list[tuple[str, str, bool]], TapePlayer]:
    """(who, who answered, whether by a cascade) for each request of a fork, and its player."""
    watch, seqs = ConversationTap(), count()
    said = list[tuple[str, str, bool]]()
    player = TapePlayer(
        recorded(type(office)()),
        watch,
        options=PlaybackOptions(fork=Fork(call_id, None, world=True)),
    )
    began = Trajectory(id="f", recorded_at=0.0, forked_at=call_id, source="fork")
    with TapeWriter(path, began) as tape:
        taps = TapChain([watch, player, tape])
        for who, request, answer in office.work():
            for _ in range(tries):
                seq = next(seqs)
                x = taps.request(Exchange(seq=seq, request=request, started=float(seq)))
                if x.response is None:
                    x = replace(x, response=moved(answer, float(seq)))
                assert x.response is not None
                taps.head(x)
                for chunk in x.response.chunks:
                    taps.chunk(x, chunk)
                taps.done(x)
                said.append((who, x.answered_by, x.cascade))
                if x.answered_by != "refused":
                    break
    return said, player


def test_a_helper_that_a_live_lane_begins_is_live_at_once_and_nobody_else_is(
    tmp_path: Path,
) -> None:
    """Nothing differs from the recording, so all of it could be played: the helper must not be."""
    said, player = forked("c1", Office(), tmp_path / "f.tape")
    assert said == [
        ("clerk", "recorded", False),
        ("lead", "recorded", False),
        ("lead", "live", False),
        ("helper", "live", False),
        ("helper", "live", False),
        ("lead", "live", False),
        ("clerk", "recorded", False),
    ]
    assert player.diverged == []


def test_a_call_whose_id_came_before_is_forked_at_its_own_result(tmp_path: Path) -> None:
    said, player = forked("c1#2", Anew(), tmp_path / "f.tape")
    assert [who for _, who, _ in said] == ["recorded", "recorded", "live"]
    said, player = forked("c1", Anew(), tmp_path / "g.tape")
    assert [who for _, who, _ in said] == ["recorded", "live", "live"]
    assert player.diverged == []


def test_a_lane_that_feels_the_fork_goes_live_and_is_marked(tmp_path: Path) -> None:
    """What was struck is in the helper's lane: its lead is told otherwise, the clerk is not."""
    path = tmp_path / "f.tape"
    said, player = forked("c3", Office(read="999"), path)
    assert said == [
        ("clerk", "recorded", False),
        ("lead", "recorded", False),
        ("lead", "recorded", False),
        ("helper", "recorded", False),
        ("helper", "live", False),
        ("lead", "live", True),
        ("clerk", "recorded", False),
    ]
    assert player.diverged == []
    tape = read_tape(path)
    assert [x.cascade for x in tape.exchanges] == [cascade for _, _, cascade in said]
    found = build_tape_rows(tape)
    run = dict(zip(SCHEMAS["trajectories"].names, found["trajectories"][0], strict=True))
    assert (run["cascades"], run["drifted"]) == (1, 0), "one lane felt it, and no result was pinned"
    cascade_at = SCHEMAS["exchanges"].names.index("cascade")
    assert [row[cascade_at] for row in found["exchanges"]] == [cascade for _, _, cascade in said]


def test_a_lane_feels_what_another_one_was_told(tmp_path: Path) -> None:
    said, _ = forked("c1", Office(looked="another file"), tmp_path / "f.tape")
    assert [who for who, _, cascade in said if cascade] == ["clerk"]
    assert [who for who, by, cascade in said if by == "live" and not cascade] == [
        "lead",
        "helper",
        "helper",
        "lead",
    ]


def test_one_divergence_is_one_however_often_the_client_tries(tmp_path: Path) -> None:
    """Codex sends what is refused six times."""
    office = Office()
    office.lead = Talk("do something else")
    said, player = forked("c1", office, tmp_path / "f.tape", tries=6)
    refused = [who for who, by, _ in said if by == "refused"]
    assert refused == ["lead"] * 18
    assert len(player.diverged) == 3, "it asked three things, six times each"


def test_tries_that_differ_in_what_does_not_count_are_one_divergence(tmp_path: Path) -> None:
    """Codex gives each try another id of its turn and another second at which it began."""
    watch, seqs = ConversationTap(), count()
    player = TapePlayer(recorded(Office()), watch)
    taps = TapChain([watch, player])
    for turn in ("one", "two", "two"):
        said = {"role": "user", "content": "go"}
        body = {"model": "m", "input": [said], "client_metadata": {"turn": turn}}
        request = Asked(method="POST", url="http://m/v1/responses", body=json.dumps(body).encode())
        seq = next(seqs)
        x = taps.request(Exchange(seq=seq, request=request, started=float(seq)))
        assert x.answered_by == "refused"
        taps.done(x)
    assert len(player.diverged) == 1


def test_a_lane_says_which_one_began_it_where_a_text_of_the_call_is_told() -> None:
    watch = ConversationTap()
    taps = TapChain([watch])
    for seq, (_, request, answer) in enumerate(Office().work()):
        x = taps.request(Exchange(seq=seq, request=request, started=float(seq)))
        taps.done(replace(x, response=moved(answer, float(seq))))
    lanes = watch.conversations
    assert [lanes.parent_lane(lane) for lane in range(3)] == [None, None, 1]
    with pytest.raises(IndexError):
        lanes.parent_lane(3)
