"""Further providers, by their own SDKs: recorded, shown, faulted and replayed.

The programs and their settings are those of provider_table.py; all reach the practice model under
the built-in names of their hosts.
"""

import json
import os
import re
from pathlib import Path

import pytest

from scenarios.practice.tasks.shell import verify_shell_task
from tests.support.agents.provider_table import PROVIDERS, SIGNED
from tests.support.agents.third_party_agents import LIMIT, Workplace, workplace
from tests.support.servers.provider_log import asks, digest
from traces.conversation.derived_steps import derive_tape_steps
from traces.dialects import find_dialect
from traces.tape.reader import Tape, read_tape

REPLAYED = re.compile(r"(\d+) answered from the tape, 0 upstream, 0 diverged")

pytestmark = [pytest.mark.thorough, pytest.mark.agents, pytest.mark.timeout(LIMIT * 3)]


CHOSEN = (
    tuple(PROVIDERS)
    if "STUMBLE_CLIENTS" in os.environ
    else ("ollama", "cohere", "bedrock", "anthropic-bedrock")
)
"""All of them in `make test-clients`; else one for each dialect that no other client speaks."""


@pytest.mark.parametrize("name", CHOSEN)
def test_a_provider_is_recorded_faulted_and_replayed(name: str, tmp_path: Path) -> None:
    with workplace(tmp_path, name) as place:
        result = place.stumble("record", "-o", str(place.tape), *place.hosts)
        assert result.code == 0, result.err
        assert verify_shell_task(place.folder, place.task).passed
        has_what_the_model_answered(place, read_tape(place.tape))
        has_no_secret(place)
        a_result_is_changed_unless_it_is_signed(place, signed=name in SIGNED)

        place.shop.stop("model")
        result = place.stumble("replay", str(place.tape))
        assert result.code == 0, result.err
        assert REPLAYED.search(result.err), result.err


def has_what_the_model_answered(place: Workplace, tape: Tape) -> None:
    """Every request is the provider's, and every step has its text, calls, results and tokens."""
    told, log = derive_tape_steps(tape), place.shop.asked()
    model = [x for x in tape.exchanges if asks(x.request)]
    assert [digest(x) for x in model] == [line["request"] for line in log]
    assert {find_dialect(x.request).NAME for x in model} == {place.agent.dialect}  # type: ignore[union-attr]
    for x, line in zip(model, log, strict=True):
        answer = told.answers[x.seq]
        calls = [[call.name, json.loads(call.arguments)] for call in answer.calls]
        assert answer.message == line["message"]
        assert calls == [[name, json.loads(arguments)] for name, arguments in line["calls"]]
        assert answer.model
        assert answer.usage is not None or place.agent.streams
    assert told.tool_uses
    assert all(use.tool == "bash" and use.result is not None for use in told.tool_uses)
    assert not [x for x in tape.exchanges if x not in model and x.request.method == "POST"]


def has_no_secret(place: Workplace) -> None:
    data = place.tape.read_bytes()
    for secret in (*place.agent.env.values(), "ya29.test-0123456789", "mistral-0123456789"):
        assert not secret.endswith("0123456789") or secret.encode() not in data


def a_result_is_changed_unless_it_is_signed(place: Workplace, *, signed: bool) -> None:
    """A fault at the model boundary reaches the model; a signed request is named, not changed."""
    asked = len(place.shop.asked())
    fault = ("--fault", "truncate:keep=0.3", "--at", "model-boundary", "--where", "tool=bash")
    result = place.stumble("fork", str(place.tape), *fault, "--twins", "0", *place.hosts, "--json")
    found = json.loads(result.out.splitlines()[-1])
    sent = [line["request"] for line in place.shop.asked()]
    if signed:
        assert found["fired"] == 0
        assert "SigV4" in result.out, result.out
        assert set(sent[asked:]) <= set(sent[:asked]), "no request was changed"
        return
    assert found["fired"] == 1, result.err
    (injection, *_) = read_tape(Path(found["tape"])).injections
    assert injection.edits
    assert len(place.shop.asked()) > asked
