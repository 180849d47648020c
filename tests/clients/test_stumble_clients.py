"""Every client of the table (clients.py) does one task, with the same checks for each.

It is recorded with nothing configured, while the model fails once; the tape is held against the
provider's log; and it is replayed without provider or network. The task's commands go out by
themselves (curl, urllib, git), two of them at once.
"""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from scenarios.practice.tasks import network
from scenarios.practice.tasks.shell import ShellTask, verify_shell_task
from scenarios.practice.tasks.text_only import STOCK_LINE
from tests.support.agents.client_table import (
    CLIENTS,
    Client,
)
from tests.support.agents.third_party_agents import (
    LIMIT,
    Workplace,
    certificate,
    workplace,
)
from tests.support.servers.file_server import file_server
from tests.support.servers.provider_log import (
    asks,
    folds_the_retry,
    holds_what_the_provider_answered,
)
from tests.support.tiers import EXHAUSTIVE
from traces.conversation.derived_steps import DerivedSteps, derive_tape_steps
from traces.dialects import find_dialect
from traces.model import Exchange
from traces.tape.reader import Tape, read_tape

TASK = network.FETCH_TASK
COMMANDS = ("curl", "fetch.py", "git clone", "cat east/east.txt", "cat east/west.txt")
REPLAYED = re.compile(r"(\d+) answered from the tape, 0 upstream, 0 diverged")

pytestmark = [pytest.mark.agents, pytest.mark.timeout(LIMIT * 3)]

IN_GATE = ("openai2", "mini-swe-agent", "node-ai", "claude-code")
"""A library, an agent of text, one in Node and a coding agent; none of them races with itself."""
ONE_OF_EACH = (
    *IN_GATE, "openai3-responses", "anthropic1", "smolagents", "node-openai", "gemini-cli", "codex",
)  # fmt: skip
"""One for each dialect, library and kind of answer."""


def choose_clients() -> tuple[str, ...]:
    """Return all in `make test-clients`, four in the gate."""
    if "STUMBLE_CLIENTS" in os.environ:
        return tuple(CLIENTS)
    return ONE_OF_EACH if EXHAUSTIVE else IN_GATE


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the shells of the agents find their files."""
    with file_server(tmp_path_factory.mktemp("files"), certificate()[1]) as served:
        yield served


@pytest.mark.parametrize("name", choose_clients())
def test_a_client_is_recorded_and_replayed(name: str, files: str, tmp_path: Path) -> None:
    fails = f"{CLIENTS[name].second}={CLIENTS[name].fails}"
    with workplace(tmp_path, name, "--fail-step", fails) as place:
        place.task, place.elsewhere = TASK, (files,)
        result = place.stumble("record", "-o", str(place.tape), *place.hosts, *place.agent.record)
        assert result.code == 0, result.err
        assert verify_shell_task(place.folder, TASK).passed
        tape = read_tape(place.tape)
        derived_steps = derive_tape_steps(tape)
        holds_what_the_provider_answered(place.shop, tape, derived_steps)
        speaks_as_the_table_says(place, tape)
        folds_the_retry(derived_steps)
        tells_what_the_shell_was_told(place, derived_steps)
        holds_what_the_shell_fetched(tape, derived_steps)

        place.shop.stop("model")
        result = place.stumble("replay", str(place.tape))
        assert result.code == 0, result.err
        assert REPLAYED.search(result.err), result.err


SAYING = ShellTask(
    id="say-stock",
    prompt="Write stock.txt with what there is in stock.\ntask: say-stock\n",
    files={"stock.txt": STOCK_LINE},
    plan=(),
)


@pytest.mark.thorough
def test_aider_which_has_no_tools_is_recorded_and_replayed(tmp_path: Path) -> None:
    """One answer makes a file, another, after a refusal, the message of its commit."""
    with workplace(tmp_path, "aider", "--fail-nth", "2=429") as place:
        place.task = SAYING
        result = place.stumble("record", "-o", str(place.tape), *place.hosts)
        assert result.code == 0, result.err
        assert verify_shell_task(place.folder, SAYING).passed
        tape = read_tape(place.tape)
        derived_steps = derive_tape_steps(tape)
        holds_what_the_provider_answered(place.shop, tape, derived_steps)
        speaks_as_the_table_says(place, tape)
        folds_the_retry(derived_steps)
        assert {placed.kind for placed in derived_steps.contexts.values()} <= {"model", "other"}

        place.shop.stop("model")
        result = place.stumble("replay", str(place.tape))
        assert result.code == 0, result.err
        assert REPLAYED.search(result.err), result.err


def speaks_as_the_table_says(place: Workplace, tape: Tape) -> None:
    """Every model call is in the client's dialect, streamed or not."""
    heard = {(dialect_of(x), _streamed(x)) for x in tape.exchanges if asks(x.request)}
    assert (place.agent.dialect, place.agent.streams) in heard
    spoken = {dialect for dialect, _ in heard}
    if place.agent.dialect == "observed_history":  # until something was observed it is any chat
        spoken.discard("openai_chat")
    assert spoken == {place.agent.dialect}


def dialect_of(exchange: Exchange) -> str | None:
    found = find_dialect(exchange.request)
    return found.NAME if found else None


def _streamed(exchange: Exchange) -> bool:
    said = exchange.response
    return exchange.transport == "websocket" or (
        said is not None and "event-stream" in dict(said.headers).get("content-type", "")
    )


def tells_what_the_shell_was_told(place: Workplace, derived_steps: DerivedSteps) -> None:
    """Each call has its result; the first two were asked for together."""
    uses = [use for use in derived_steps.tool_uses if "COMPLETE_TASK" not in use.arguments]
    uses = [use for use in uses if use.tool != "final_answer"]
    assert {use.tool for use in uses} == {place.agent.tool}
    expected = (*COMMANDS, "echo stock 276702", "cat stock.txt")
    assert len(uses) == len(expected)
    assert all(words in use.arguments for use, words in zip(uses, expected, strict=True))
    north, south, _, east, west, _, stock = (use.result or "" for use in uses)
    together = {"north.txt": north, "south.txt": south}
    if place.agent.dialect == "observed_history":  # what was observed of both is one text
        assert {use.result for use in uses[:2]} == {None}
        together = {}
    for name, result in {**together, "east.txt": east}.items():
        assert all(line in result for line in network.SERVED_FILES[name].splitlines())
    assert "No such file" in west
    assert "stock 276702" in stock
    assert uses[0].step == uses[1].step


def holds_what_the_shell_fetched(tape: Tape, derived_steps: DerivedSteps) -> None:
    """What is no model call is a fetch of the shell, or known noise."""
    kinds = {x.seq: derived_steps.contexts[x.seq].kind for x in tape.exchanges}
    tools = [x for x in tape.exchanges if kinds[x.seq] == "tool"]
    assert {urlsplit(x.request.url).hostname for x in tools} == {network.FILES_HOST}
    paths = {urlsplit(x.request.url).path for x in tools if x.response and x.response.status == 200}
    assert {"/north.txt", "/south.txt", "/east.git/info/refs", "/east.git/HEAD"} <= paths
    assert set(kinds.values()) <= {"model", "tool", "other"}


PINS = """
import os, ssl, urllib.request
own = ssl.create_default_context(cafile=os.environ["OWN_CA"])
try:
    urllib.request.urlopen("https://api.openai.com/v1/models", context=own, timeout=30)
except OSError as error:
    raise SystemExit(f"no model: {error}")
"""


def test_a_client_that_trusts_only_its_own_is_named_in_the_summary_and_on_the_tape(
    tmp_path: Path,
) -> None:
    ca, _ = certificate()
    with workplace(tmp_path, "openai2") as place:
        pins = Client(
            command=lambda _: (sys.executable, "-c", PINS),
            dialect="openai_chat",
            env={"OWN_CA": str(ca)},
        )
        place.agent = pins
        result = place.stumble("record", "-o", str(place.tape), *place.hosts)
    assert result.code == 1
    warned = [line for line in result.err.splitlines() if line.startswith("warning: ")]
    assert warned[0].startswith("warning: nothing was seen of api.openai.com: ")
    assert "does the agent pin certificates" in warned[0]
    assert "stumble doctor" in warned[-1]
    ending = read_tape(place.tape).ending
    assert ending is not None
    assert ending.detail == warned[0].removeprefix("warning: ")
