"""Five agents that others wrote: each is recorded, forked, and replayed without the network.

All of them do one task (scenarios/practice/tasks/files.py) in a folder with two files. The model
is scripted and knows its own answers, so what was recorded is held against the provider's log.
Not tried here: a real provider. What these agents ask only of one (thinking blocks, prompt
caches, tools that a provider runs) is not in these tapes.
"""

import re
from collections.abc import Iterator
from copy import replace
from pathlib import Path
from shutil import rmtree

import pytest

from scenarios.practice.tasks.files import WORKSPACE_TASKS
from scenarios.practice.tasks.shell import parse_shell_result, verify_shell_task
from tests.support.agents.client_table import CLIENTS
from tests.support.agents.third_party_agents import (
    LIMIT,
    TASK,
    Workplace,
    workplace,
)
from tests.support.request_readings import read_tool_results
from tests.support.servers.provider_log import (
    asks,
    folds_the_retry,
    holds_what_the_provider_answered,
    turns,
)
from traces.bodies.content_encoding import decode_content
from traces.conversation.derived_steps import DerivedSteps, derive_tape_steps
from traces.dialects import find_dialect
from traces.model import Injection
from traces.tape.reader import Tape, read_tape

AGENTS = ("claude-code", "codex", "codex-http", "mini-swe-agent", "openai3", "pydantic-ai")

COMMANDS = (
    "ls -l --time-style=full-iso",
    "cat north.txt",
    "cat south.txt",
    "cat east.txt",
    "echo stock 233511 > stock.txt",
    "cat stock.txt",
)
CAT_NORTH = 2
"""Which call of the shell reads the file that the model is lied to about."""

pytestmark = [pytest.mark.thorough, pytest.mark.agents, pytest.mark.timeout(LIMIT * 6)]


@pytest.fixture(params=AGENTS)
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Workplace]:
    """A workplace whose provider fails the second time that the model is to speak."""
    status = CLIENTS[request.param].fails
    folder = tmp_path_factory.mktemp(request.param)
    with workplace(folder, request.param, "--fail-step", f"2={status}") as opened:
        yield opened


def test_an_agent_is_recorded_forked_and_replayed(place: Workplace) -> None:
    options = ("-o", str(place.tape), *place.hosts, *place.agent.record)
    result = place.stumble("record", *options)
    assert result.code == 0, result.err
    tape = read_tape(place.tape)
    derived_steps = derive_tape_steps(tape)
    assert {placed.kind for placed in derived_steps.contexts.values()} <= {"model", "other"}
    holds_what_the_provider_answered(place.shop, tape, derived_steps)
    tells_the_tools_as_they_ran(place, derived_steps)
    folds_the_retry(derived_steps)
    assert ends(derived_steps) == ("233511", "stock 233511")

    sham, faulted, injection = forked(place)
    assert [printed(sham, nth) for nth in range(6)] == [
        printed(derived_steps, nth) for nth in range(6)
    ]
    assert [step.message for step in turns(sham)] == [step.message for step in turns(derived_steps)]
    stays_told(faulted, injection)
    wrong = believed(injection)
    assert wrong != "233511"
    assert ends(derive_tape_steps(faulted)) == (wrong, f"stock {wrong}")

    unnamed(tape, faulted)
    struck_at_the_model(place)

    place.shop.stop("model")
    before = stood(place.folder)
    result = place.stumble("replay", str(place.tape), "--keep-workspace")
    assert result.code == 0, result.err
    assert ", 0 upstream, 0 diverged" in result.err
    copy = Path(result.err.partition("the copy is in ")[2].partition("\n")[0])
    assert verify_shell_task(copy, TASK).passed
    assert stood(place.folder) == before, "the folder itself is untouched"
    rmtree(copy.parent)


def stood(folder: Path) -> dict[str, int]:
    """What is in a folder, and when it was written."""
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def tells_the_tools_as_they_ran(place: Workplace, derived_steps: DerivedSteps) -> None:
    """Each call has its result, whatever ran first, and none of them went over the network."""
    uses = [use for use in derived_steps.tool_uses if "COMPLETE_TASK" not in use.arguments]
    assert {(use.tool, use.place) for use in uses} == {(place.agent.tool, "local")}
    assert len(uses) == len(COMMANDS)
    assert all(command in use.arguments for use, command in zip(uses, COMMANDS, strict=True))
    listing, north, south, east, _, stock = (printed(derived_steps, nth) for nth in range(6))
    for name in TASK.start:
        time = (place.folder / name).stat().st_mtime_ns
        assert f"{time % 10**9:09}" in listing
    assert (north, south) == tuple(text.strip() for text in TASK.start.values())
    assert "No such file" in east
    assert stock == "stock 233511"
    assert uses[1].step == uses[2].step, "these two were called together"


def printed(derived_steps: DerivedSteps, nth: int) -> str:
    """What the nth command printed, without what the agent says about it."""
    shown = parse_shell_result(derived_steps.tool_uses[nth].result or "")
    assert shown is not None
    return str(shown["output"]).strip()


def ends(derived_steps: DerivedSteps) -> tuple[str, str]:
    """The sum that the model had written, and what was in the file when it looked."""
    written = re.search(r"echo stock (\d+) >", derived_steps.tool_uses[4].arguments)
    assert written is not None
    return written[1], printed(derived_steps, 5)


def forked(place: Workplace) -> tuple[DerivedSteps, Tape, Injection]:
    """A sham and a lie at the same call."""
    where = ("--where", f"tool={place.agent.tool}", "--nth", str(CAT_NORTH))
    options = (*where, "--jobs", "1", *place.hosts, "--json")
    completed = place.stumble("fork", str(place.tape), "--fault", "digit", *options)
    assert completed.code == 5, (
        f"no verifier was named, so the end is nobody's to judge: {completed.err}"
    )
    result = completed.json
    assert (result["fired"], result["consumed"], result["diverged"]) == (1, True, [])
    tapes = Path(result["tape"]).parent
    sham, faulted = (
        read_tape(tapes / f"{result['twins'][0]['run']}.tape"),
        read_tape(Path(result["tape"])),
    )
    assert [each.sham for each in sham.injections] == [True]
    (injection,) = faulted.injections
    return derive_tape_steps(sham), faulted, injection


WORDS = re.compile(rb"(?i)stumbl|inject|(?<![a-z])fault|chaos|nemesis|\bsham\b|mutat|tamper")
"""Of ours, which stand in nothing that an agent is told."""


def unnamed(tape: Tape, faulted: Tape) -> None:
    """What came to the agent, headers and all, names us no more than the live world does."""
    for each in (tape, faulted):
        for answer in (x.response for x in each.exchanges if x.response is not None):
            body = decode_content(answer.headers, answer.body)
            said = repr((answer.headers, answer.trailers, answer.reason)).encode()
            assert WORDS.search(said + (answer.body if body is None else body)) is None


def struck_at_the_model(place: Workplace) -> None:
    """The third turn is refused once, which each of these agents' clients tries again."""
    options = ("--at", "model", "--nth", "3", "--twins", "0", "--jobs", "1", *place.hosts, "--json")
    fault = f"http_status:code={place.agent.fails}"
    completed = place.stumble("fork", str(place.tape), "--fault", fault, *options)
    result = completed.json
    assert (result["fired"], result["diverged"]) == (1, []), completed.err
    struck = read_tape(Path(result["tape"]))
    (injection,) = struck.injections
    got = next(x for x in struck.exchanges if x.seq == injection.seq)
    assert got.response is not None
    assert (got.answered_by, got.response.body) == ("fault", injection.mutated)
    assert result["consumed"] is False, "its client tried again, and the agent never saw it"
    assert ends(derive_tape_steps(struck)) == ("233511", "stock 233511")


def stays_told(faulted: Tape, injection: Injection) -> None:
    """Each later request forwards the same struck text; the agent itself keeps the true one."""
    told, held = list[bytes](), list[bytes]()
    for exchange in faulted.exchanges:
        dialect = find_dialect(exchange.request)
        if exchange.seq < injection.seq or dialect is None:
            continue
        for body, texts in ((exchange.forwarded.body, told), (exchange.request.body, held)):
            found = (
                each
                for each in read_tool_results(dialect, body)
                if each.call_id == injection.call_id
            )
            texts += [each.text.encode() for each in found]
    injected = next(x for x in faulted.exchanges if x.seq == injection.seq)
    # Over a WebSocket a result is sent once, and the provider keeps it.
    assert len(told) == 1 if injected.transport == "websocket" else len(told) >= 4
    assert set(told) == {injection.mutated}
    assert set(held) == {injection.original}


def believed(injection: Injection) -> str:
    """The sum for a model that takes the struck text for true."""
    shown = parse_shell_result((injection.mutated or b"").decode())
    assert shown is not None
    figures = f"{shown['output']}\n{TASK.start['south.txt']}"
    return str(sum(map(int, re.findall(r"(\d+)$", figures, re.MULTILINE))))


def test_helpers_that_work_at_once_and_a_title_have_lanes_of_their_own(tmp_path: Path) -> None:
    """Claude Code asks for a title beside its work, and has two helpers read a file each."""
    with workplace(tmp_path, "claude-code") as place:
        place.task = WORKSPACE_TASKS["work-lead"]
        result = place.stumble("record", "-o", str(place.tape), *place.hosts)
        assert result.code == 0, result.err
        derived_steps = derive_tape_steps(read_tape(place.tape))
        lanes: dict[int, list[str]] = {step.lane: [] for step in derived_steps.agent_steps}
        for use in derived_steps.tool_uses:
            lanes[use.lane].append(use.tool)
        assert sorted(lanes.values()) == [[], ["Agent", "Agent", "Bash"], ["Bash"], ["Bash"]]
        reports = [use.result or "" for use in derived_steps.tool_uses if use.tool == "Agent"]
        assert ["155534" in reports[0], "77977" in reports[1]] == [True, True]

        place.shop.stop("model")
        result = place.stumble("replay", str(place.tape))
        assert result.code == 0, result.err
        assert ", 0 upstream, 0 diverged" in result.err


def test_a_key_in_the_prompt_does_not_hide_the_call(tmp_path: Path) -> None:
    """The tape has something else in its place, so the conversation before the call differs."""
    with workplace(tmp_path, "openai3") as place:
        key = place.environment()["OPENAI_API_KEY"]
        place.task = replace(TASK, prompt=f"{TASK.prompt}My key is {key}, keep it secret.\n")
        result = place.stumble("record", "-o", str(place.tape), *place.hosts)
        assert result.code == 0, result.err
        assert all(key.encode() not in x.request.body for x in read_tape(place.tape).exchanges)
        *_, injection = forked(place)
        assert injection.tool == "bash"


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        # Struck is what the lead itself read, before it has a helper read the other file.
        ("work-survey", {"lead": "recorded live live live", "helper": "live live"}),
        # Struck is what one of two helpers read; the lead hears of it, the other helper does not.
        (
            "work-lead",
            {
                "lead": "recorded cascade cascade",
                "helper": "recorded live",
                "other": "recorded recorded",
            },
        ),
    ],
)
def test_helpers_of_claude_code_are_live_where_the_fork_reaches_them(
    tmp_path: Path, task: str, expected: dict[str, str]
) -> None:
    with workplace(tmp_path, "claude-code") as place:
        place.task = WORKSPACE_TASKS[task]
        result = place.stumble("record", "-o", str(place.tape), *place.hosts)
        assert result.code == 0, result.err
        where = ("--where", f"tool={place.agent.tool}", "--twins", "0")
        result = place.stumble(
            "fork", str(place.tape), "--fault", "digit", *where, *place.hosts, "--json"
        )
        assert (result.json["fired"], result.json["diverged"], result.json["missed"]) == (1, [], [])
    tape = read_tape(Path(result.json["tape"]))
    derived_steps = derive_tape_steps(tape)
    (injection,) = tape.injections
    lanes: dict[int, list[str]] = {use.lane: [] for use in derived_steps.tool_uses}
    for x in tape.exchanges:
        lane = derived_steps.contexts[x.seq].lane
        if lane in lanes and asks(x.request):
            lanes[lane].append("cascade" if x.cascade else x.answered_by)
    lead = next(use.lane for use in derived_steps.tool_uses if use.tool == "Agent")
    injected = next(use.lane for use in derived_steps.tool_uses if use.call_id == injection.call_id)
    names = {lane: "other" for lane in lanes} | {injected: "helper", lead: "lead"}
    if injected == lead:
        names = {lane: "lead" if lane == lead else "helper" for lane in lanes}
    assert {names[lane]: " ".join(by) for lane, by in lanes.items()} == expected
