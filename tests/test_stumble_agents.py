"""Five agents that others wrote: each is recorded, replayed without the network, and forked.

All of them do one task (scenarios/practice/workspace.py) in a folder with two files. The model
is scripted and knows its own answers, so what was recorded is held against the provider's log.
Not tried here: a real provider. What these agents ask only of one (thinking blocks, prompt
caches, tools that a provider runs, compaction of a long conversation) is not in these tapes.
"""

from collections.abc import Iterator
from hashlib import sha256

import pytest

from scenarios.practice.shell import verify
from tests.workplace import AGENTS, LIMIT, TASK, Workplace, workplace
from traces.dialects import lens
from traces.encoding import plain
from traces.model import Exchange
from traces.story import Step, Story, tell
from traces.tape import read

FAILS = {"codex": 500}
"""The status that each client takes for worth another try; Codex gives up at a 429 over HTTP."""

pytestmark = pytest.mark.timeout(LIMIT * 6)

COMMANDS = (
    "ls -l --time-style=full-iso",
    "cat north.txt",
    "cat south.txt",
    "cat east.txt",
    "echo stock 233511 > stock.txt",
    "cat stock.txt",
)


@pytest.fixture(params=AGENTS)
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workplace]:
    """A workplace whose provider fails the second time that the model is to speak."""
    status = FAILS.get(request.param, 429)
    folder = tmp_path_factory.mktemp(request.param)
    with workplace(folder, request.param, "--fail-step", f"2={status}") as opened:
        yield opened


def recorded(place: Workplace) -> tuple[tuple[Exchange, ...], Story]:
    options = ("-o", str(place.tape), *place.hosts, *place.agent.record)
    said = place.stumble("record", *options)
    assert said.code == 0, said.err
    tape = read(place.tape)
    assert tape.dropped == 0
    return tape.exchanges, tell(tape)


def test_an_agent_is_recorded_replayed_and_forked(place: Workplace) -> None:
    exchanges, told = recorded(place)
    holds_what_the_provider_answered(place, exchanges, told)
    tells_the_tools_as_they_ran(place, told)
    folds_the_retry(told)
    assert verify(place.folder, TASK).passed

    place.shop.stop("model")
    said = place.stumble("replay", str(place.tape))
    assert said.code == 0, said.err
    assert ", 0 upstream, 0 diverged" in said.err
    assert verify(place.folder, TASK).passed


def holds_what_the_provider_answered(
    place: Workplace, exchanges: tuple[Exchange, ...], told: Story
) -> None:
    """The tape has just the calls of the provider's log, byte for byte; the rest is noise."""
    assert {placed.kind for placed in told.placed.values()} <= {"model", "other"}
    model = {x.seq: x for x in exchanges if lens(x.request) is not None}
    log = {line["request"]: line for line in place.shop.asked() if line["status"] == 200}
    asked = [digest(x) for x in model.values()]
    assert sorted(asked) == sorted(line["request"] for line in place.shop.asked())
    for seq, answer in told.answers.items():
        line, response = log[digest(model[seq])], model[seq].response
        assert response is not None
        assert line["id"].encode() in response.body
        assert answer.message == line["message"]
        assert [call.id for call in answer.calls] == line["call_ids"]
    # Side requests run beside the conversation; within it the order is the provider's.
    ours = [digest(model[seq]) for step in turns(told) for seq in step.seqs]
    assert ours == [line["request"] for line in place.shop.asked() if line["request"] in ours]


def digest(exchange: Exchange) -> str:
    """A model request by the bytes that the provider read."""
    body = plain(exchange.request.headers, exchange.request.body) or b""
    return sha256(body).hexdigest()


def turns(told: Story) -> list[Step]:
    """What the model said in the lane in which tools are called."""
    (lane,) = {use.lane for use in told.uses}
    return [step for step in told.turns if step.lane == lane]


def tells_the_tools_as_they_ran(place: Workplace, told: Story) -> None:
    """Each call has its result, whatever ran first, and none of them went over the network."""
    uses = [use for use in told.uses if "COMPLETE_TASK" not in use.arguments]
    assert {(use.tool, use.place) for use in uses} == {(place.agent.tool, "local")}
    assert len(uses) == len(COMMANDS)
    for use, command in zip(uses, COMMANDS, strict=True):
        assert command in use.arguments
        assert use.result is not None
    listing, north, south, east, _, stock = (use.result or "" for use in uses)
    assert "north.txt" in listing
    assert ("48271" in north, "59713" in south, "233511" in stock) == (True, True, True)
    assert "No such file" in east
    assert uses[1].step == uses[2].step, "these two were called together"


def folds_the_retry(told: Story) -> None:
    """The failed attempt and the next are one call of the model."""
    tried = [step for step in turns(told) if len(step.seqs) > 1]
    assert [len(step.seqs) for step in tried] == [2]
    first, second = tried[0].seqs
    assert told.placed[second].attempt_of == first
