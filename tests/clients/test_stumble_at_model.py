"""`--at model`: a real SDK tries again by itself, and what it swallowed is told from what it gave.

The program is tests/agents/openai_bash.py on openai 3, which tries a 429 twice more by default.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agents.third_party_agents import (
    LIMIT,
    Workplace,
    workplace,
)
from tests.support.practice_shop import shop
from traces.conversation.derived_steps import derive_tape_steps
from traces.tape.reader import Tape, read_tape

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(LIMIT * 4)]

RATES = (
    "select persist, fired, absorbed, consumed, recovery_rate, handled_rate"
    " from recovery_by_site where op = 'http_status' order by persist desc"
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workplace]:
    with workplace(tmp_path_factory.mktemp("openai3"), "openai3") as opened:
        result = opened.stumble("record", "-o", str(opened.tape), *opened.hosts)
        assert result.code == 0, result.err
        yield opened


def struck(place: Workplace, *more: str) -> tuple[dict[str, object], Tape]:
    fault = ("--fault", "http_status:code=429,retry_after=1", "--at", "model", "--nth", "2")
    result = place.stumble(
        "fork", str(place.tape), *fault, *more, "--twins", "0", *place.hosts, "--json"
    )
    found = json.loads(result.out.splitlines()[-1])
    return found, read_tape(Path(found["tape"]))


def test_a_retry_of_the_sdk_is_absorbed_and_what_outlasts_it_is_consumed(place: Workplace) -> None:
    once, tape = struck(place)
    assert (once["fired"], once["consumed"], once["unreached_reason"]) == (1, False, "absorbed")
    (injection,) = tape.injections
    assert (injection.place, injection.error_channel, injection.detect) == ("model", "http", "D0")
    first, again = attempts(tape, injection.seq)
    assert (first, again) == (("fault", 429), ("live", 200))
    assert once["agent_exit"] == 0

    always, tape = struck(place, "--persist", "burst:n=1")
    assert (always["fired"], always["consumed"], always["outcome"]) == (3, True, "crashed")
    assert attempts(tape, tape.injections[0].seq) == [("fault", 429)] * 3
    result = place.shop.stumble("sql", "--json", RATES)
    assert result.code == 0, result.err
    agent, system = [row["recovery_rate"] for row in result.json], result.json[0]["handled_rate"]
    assert [(row["fired"], row["absorbed"], row["consumed"]) for row in result.json] == [
        (1, 1, 0),
        (1, 0, 1),
    ]
    assert agent == [None, None], "of what the SDK swallowed the agent's own rate knows nothing"
    assert system == 1.0


def attempts(tape: Tape, seq: int) -> list[tuple[str, int]]:
    """Who answered each attempt of a turn, and with what."""
    placed = derive_tape_steps(tape).contexts
    tries = [x for x in tape.exchanges if seq in (x.seq, placed[x.seq].attempt_of)]
    return [(x.answered_by, x.response.status if x.response else 0) for x in tries]


def test_a_live_run_is_struck_at_the_model(tmp_path: Path) -> None:
    with shop(tmp_path) as world:
        result = world.stumble(
            "record", "-o", "a.tape", *world.host_options(), "--fault", "cut:how=sse_error",
            "--at", "model", "--nth", "2", "--", *world.agent("practice/retries", "--stream"),
        )  # fmt: skip
        asked = world.asked()
    tape = read_tape(tmp_path / "a.tape")
    (injection,) = tape.injections
    assert "faulted an answer at model with cut" in result.err
    second = next(x for x in tape.exchanges if x.seq == injection.seq)
    assert second.response is not None
    assert b'"server_error"' in second.response.chunks[-1].data
    assert injection.original is not None
    kept = second.response.body[: -len(second.response.chunks[-1].data)]
    assert injection.original.startswith(kept), "what was let through is the model's own"
    assert len(asked) >= 2


@pytest.mark.parametrize(
    ("agent", "transport", "says"),
    [
        ("claude-code", "http", b'{"type":"error","error":{"type":"api_error"'),
        ("codex", "websocket", b'{"type": "error", "status": 500, "error": {"message"'),
    ],
)
def test_a_real_agent_is_told_in_its_own_dialect_and_its_retry_is_folded(
    tmp_path: Path, agent: str, transport: str, says: bytes
) -> None:
    """Codex goes from its WebSocket to HTTP; Claude Code has asked for a title on the side."""
    with workplace(tmp_path, agent) as place:
        result = place.stumble("record", "-o", str(place.tape), *place.hosts)
        assert result.code == 0, result.err
        fault = ("--fault", "http_status:code=500", "--at", "model", "--nth", "2")
        result = place.stumble(
            "fork", str(place.tape), *fault, "--twins", "0", *place.hosts, "--json"
        )
        found = json.loads(result.out.splitlines()[-1])
    assert (found["fired"], found["unreached_reason"]) == (1, "absorbed"), result.err
    assert found["agent_exit"] == 0
    tape = read_tape(Path(found["tape"]))
    (injection,) = tape.injections
    first, again = attempts(tape, injection.seq)
    assert (first[0], again) == ("fault", ("live", 200))
    injected = next(x for x in tape.exchanges if x.seq == injection.seq)
    assert injected.transport == transport
    assert injected.response is not None
    assert injected.response.body.startswith(says)
    assert derive_tape_steps(tape).contexts[injection.seq].offers
