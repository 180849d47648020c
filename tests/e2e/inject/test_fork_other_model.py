"""`fork --model` and `--edit-prompt`: the same prefix and fault, and another model or prompt."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from replay.prompt_edit import find_prompt_texts
from tests.support.practice_shop import Shop, shop
from traces.tape.reader import read_tape

FAULT = ("--fault", "http_status:code=503", "--where", "tool=get_order")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A recording of the model that gives up at an error."""
    with shop(tmp_path_factory.mktemp("models")) as world:
        assert world.record(model="practice/naive").code == 0
        yield world


def fork(world: Shop, *more: str) -> tuple[int, dict[str, object], Counter[str]]:
    """Exit code, report, and how often each model was asked."""
    before = len(world.asked())
    result = world.stumble(
        "fork", "a.tape", *FAULT, *world.world(), *world.host_options(), "--json", *more
    )
    asked = Counter(str(request["model"]) for request in world.asked()[before:])
    return result.code, result.json, asked


def test_another_model_recovers_from_what_the_recorded_one_does_not(recorded: Shop) -> None:
    code, own, asked = fork(recorded)
    assert code == 0
    assert set(asked) == {"practice/naive"}
    code, other, asked = fork(recorded, "--model", "practice/retries")
    assert code == 0
    assert set(asked) == {"practice/retries"}
    outcomes = recorded.stumble(
        "sql",
        "select t.model, o.class from outcomes o join injections i using (injection_id)"
        " join trajectories t on t.trajectory_id = i.trajectory_id"
        f" where t.trajectory_id in ('{own['run']}', '{other['run']}') order by 1",
        "--json",
    ).json
    assert [row["model"] for row in outcomes] == ["practice/naive", "practice/retries"]
    first, second = (row["class"] for row in outcomes)
    assert first != second
    assert second in ("recovered", "masked")


def test_the_plan_names_both_models(recorded: Shop) -> None:
    result = recorded.stumble(
        "fork", "a.tape", *FAULT, *recorded.world(), *recorded.host_options(),
        "--twins", "0", "--model", "practice/retries",
    )  # fmt: skip
    assert "then practice/retries" in result.err


def test_the_live_model_reads_the_edited_prompt_and_the_agent_wrote_its_own(
    recorded: Shop,
) -> None:
    edit = ("--edit-prompt", "customer service", "the fire brigade")
    code, found, _ = fork(recorded, *edit, "--twins", "0")
    assert code == 5  # without twins there is no verdict
    tape = read_tape(Path(str(found["tape"])))
    asked = [x for x in tape.exchanges if find_prompt_texts(x.request)]
    live = [x for x in asked if x.answered_by == "live"]
    assert 0 < len(live) < len(asked)
    for exchange in asked:
        assert b"customer service" in exchange.request.body
        sent = exchange.forwarded.body
        assert (b"the fire brigade" in sent) == (exchange in live)
        assert (b"customer service" in sent) == (exchange not in live)
    [row] = recorded.stumble(
        "sql", f"select agent from trajectories where trajectory_id = '{tape.trajectory.id}'",
        "--json",
    ).json  # fmt: skip
    assert ", prompt " in row["agent"]


def test_a_text_that_is_in_no_prompt_is_refused_before_anything_starts(recorded: Shop) -> None:
    result = recorded.stumble("fork", "a.tape", *FAULT, "--edit-prompt", "no such text", "other")
    assert result.code == 2
    assert "no system or user message" in result.err


@contextmanager
def other_provider(world: Shop) -> Iterator[tuple[dict[str, str], Path]]:
    """A second model server, which another provider's variables name, and its log."""
    log = world.folder.with_name("other-provider.jsonl")
    log.touch()
    server = subprocess.Popen(
        [sys.executable, "-m", "scenarios.practice.model_server", "--log", str(log)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert server.stdout is not None
    base = f"http://127.0.0.1:{server.stdout.readline().split()[-1].decode()}"
    try:
        yield {"ANTHROPIC_API_KEY": "sk-ant-" + 90 * "x", "ANTHROPIC_API_BASE": base}, log
    finally:
        server.kill()
        server.communicate(timeout=10)


@pytest.mark.thorough
def test_another_provider_goes_on_with_the_conversation(recorded: Shop) -> None:
    before = len(recorded.asked())
    with other_provider(recorded) as (keys, log):
        result = recorded.stumble(
            "fork", "a.tape", *FAULT, *recorded.world(), *recorded.host_options(), "--json",
            "--model", "anthropic:practice/retries", env=keys,
        )  # fmt: skip
        asked = [json.loads(line) for line in log.read_text().splitlines()]
    assert result.code == 0, result.err
    assert result.json["model"] == "anthropic:practice/retries"
    assert result.json["outcome"] in ("recovered", "masked")
    assert {request["model"] for request in asked} == {"practice/retries"}
    assert len(recorded.asked()) == before
    tapes = tuple(recorded.folder.joinpath(".stumble/tapes").glob("*.tape"))
    assert not any(keys["ANTHROPIC_API_KEY"].encode() in tape.read_bytes() for tape in tapes)


def test_a_streaming_agent_gets_streams_of_each_model(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with shop(tmp_path_factory.mktemp("streams")) as world, other_provider(world) as (keys, _):
        assert world.record("a.tape", "practice/naive", "--stream").code == 0
        result = world.stumble(
            "fork", "a.tape", *FAULT, *world.world(), *world.host_options(), "--json",
            "--twins", "0", "--model", "practice/naive,anthropic:practice/retries", env=keys,
        )  # fmt: skip
        ends = {
            report["model"]: read_tape(
                world.folder / f".stumble/tapes/{report['faulted'][0]['run']}.tape"
            )
            for report in result.json["models"]
        }
    own, other = ends["practice/naive"], ends["anthropic:practice/retries"]
    assert (own.trajectory.model, other.trajectory.model) == ("practice/naive", "practice/retries")
    last = other.exchanges[-1].response
    assert last is not None
    assert last.body.endswith(b"data: [DONE]\n\n")
    assert other.ending is not None
    assert (other.ending.ended, other.ending.passed) == ("final", True)


@pytest.mark.thorough
def test_a_provider_that_refuses_is_an_error_of_the_agents_own_api(recorded: Shop) -> None:
    keys = {"ANTHROPIC_API_KEY": "sk-ant-x", "ANTHROPIC_API_BASE": "http://127.0.0.1:9"}
    result = recorded.stumble(
        "fork", "a.tape", *FAULT, *recorded.world(), *recorded.host_options(), "--json",
        "--twins", "0", "--model", "anthropic:practice/retries", env=keys,
    )  # fmt: skip
    tape = recorded.folder / f".stumble/tapes/{result.json['faulted'][0]['run']}.tape"
    answer = read_tape(tape).exchanges[-1].response
    assert answer is not None
    assert answer.status >= 500
    assert b"another provider's model: " in answer.body


@pytest.mark.thorough
def test_a_campaign_goes_on_with_each_model_and_compare_pairs_them(recorded: Shop) -> None:
    result = recorded.stumble(
        "campaign", "--traces", "a.tape", *FAULT, "--name", "models", "--jobs", "1",
        *recorded.world(), *recorded.host_options(),
        "--model", "practice/naive,practice/retries",
    )  # fmt: skip
    assert result.code in (0, 5), result.err
    runs = recorded.stumble(
        "sql", "select model, condition, count(*) as n, count(distinct cell) as cells"
        " from trajectories where campaign = 'models' group by all order by all", "--json",
    ).json  # fmt: skip
    assert [(row["model"], row["condition"], row["n"], row["cells"]) for row in runs] == [
        (model, condition, n, n)
        for model in ("practice/naive", "practice/retries")
        for condition, n in (("clean", 3), ("fault", 1), ("sham", 1))
    ]
    classes = recorded.stumble(
        "sql", "select model, class from judged_injections where campaign = 'models' and not sham"
        " order by model", "--json",
    ).json  # fmt: skip
    assert classes[1]["class"] in ("recovered", "masked")
    assert classes[0]["class"] not in ("recovered", "masked")
    compared = recorded.stumble(
        "compare", "practice/naive", "practice/retries", "--campaign", "models", "--json"
    )
    assert {row["pairs"] for row in compared.json["rates"] if row["part"] == "all"} == {1}
