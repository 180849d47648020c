"""The practice model: a pure function of the conversation, with the skill its name says."""

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from scenarios.practice import scripted_model
from scenarios.practice.tasks import shell
from scenarios.practice.tasks.plan import PracticeTask
from scenarios.practice.tasks.registry import ORDER_TASKS
from scenarios.practice.tools.json_schema import Json, JsonRow
from scenarios.practice.tools.registry import SHOP_TOOLS
from tests.support.agents.practice_agents import (
    OFFERED,
    Bent,
    Really,
    always,
    asked,
    cut,
    lost,
    once,
    refused,
    run,
    saying,
    wrong,
)
from traces.dialects.types import ToolCall

pytestmark = pytest.mark.many

each_task = pytest.mark.parametrize("task", ORDER_TASKS.values(), ids=ORDER_TASKS)
each_skill = pytest.mark.parametrize("skill", ["naive", "retries", "verifies", "p=0.7"])

READS = [
    (task, site.tool, live)
    for task in ORDER_TASKS.values()
    for site, live in zip(task.sites, task.decisive_fields, strict=True)
    if live is not None and not SHOP_TOOLS[site.tool].writes
]
KINDS = [task for task in ORDER_TASKS.values() if task.id.endswith("-1")]
"""One task of each kind: the others have the same plan with other figures."""
WRITES = {
    f"{task.id}-{step.tool}": (task, step.tool)
    for task in KINDS
    for step in task.plan
    if SHOP_TOOLS[step.tool].writes
}
each_read = pytest.mark.parametrize(
    ("task", "tool", "field"), READS, ids=[f"{t.id}-{tool}" for t, tool, _ in READS]
)
a_read_of_each_kind = pytest.mark.parametrize(
    ("task", "tool"),
    [(task, tool) for task, tool, _ in READS if task in KINDS],
    ids=[f"{task.id}-{tool}" for task, tool, _ in READS if task in KINDS],
)
each_write = pytest.mark.parametrize(("task", "tool"), WRITES.values(), ids=WRITES)


@pytest.mark.gate
@each_task
@each_skill
def test_a_task_without_trouble_is_done_in_the_steps_of_its_skill(
    task: PracticeTask, skill: str, tmp_path: Path
) -> None:
    done = run(tmp_path, task, skill)
    assert done.verdict.passed is True, done.verdict.detail
    assert done.final.startswith("DONE: ")
    assert done.noticed == ()
    assert done.steps == (12 if skill in ("naive", "retries") else 23)


@each_task
def test_a_plan_reads_before_it_writes_and_writes_before_its_last_third(task: PracticeTask) -> None:
    writes = [at for at, step in enumerate(task.plan) if SHOP_TOOLS[step.tool].writes]
    assert writes[0] >= 2
    assert writes[0] < len(task.plan) * 2 / 3 <= writes[-1]


@each_task
def test_a_good_site_is_called_and_some_have_three_answers_after_them(
    task: PracticeTask, tmp_path: Path
) -> None:
    done = run(tmp_path, task, "naive")
    for site in task.sites:
        assert Counter(done.calls)[site.tool] >= site.nth
    reads = [site for site in task.sites if not SHOP_TOOLS[site.tool].writes]
    assert any(done.calls.index(site.tool) + 3 < done.steps for site in reads)


@pytest.mark.gate
@each_task
@each_skill
def test_the_same_conversation_gets_the_same_answer(
    task: PracticeTask, skill: str, tmp_path: Path
) -> None:
    done, found = run(tmp_path, task, skill), scripted_model.parse_model_skill(skill)
    assert found is not None
    for end in range(1, len(done.messages) + 1, 2):
        part = done.messages[:end]
        again = json.loads(json.dumps(part))
        assert scripted_model.compute_next_answer(
            part, OFFERED, found
        ) == scripted_model.compute_next_answer(again, OFFERED, found)
    ids = [str(m["tool_call_id"]) for m in done.messages if m["role"] == "tool"]
    assert len(set(ids)) == len(ids) == done.steps - 1


@each_read
def test_naive_takes_a_wrong_value_at_its_word(
    task: PracticeTask, tool: str, field: str, tmp_path: Path
) -> None:
    done = run(tmp_path, task, "naive", once(tool, wrong(field)))
    assert done.final.startswith("DONE: ")
    assert (done.verdict.passed, done.noticed) == (False, ())


@a_read_of_each_kind
@pytest.mark.parametrize("bent", [refused, cut], ids=["refused", "cut"])
def test_naive_guesses_where_there_is_no_result(
    task: PracticeTask, tool: str, bent: Bent, tmp_path: Path
) -> None:
    done = run(tmp_path, task, "naive", once(tool, bent))
    assert done.final.startswith("DONE: ")
    assert (done.verdict.passed, done.noticed, done.steps) == (False, (), 12)


@a_read_of_each_kind
@pytest.mark.parametrize("bent", [refused, cut], ids=["refused", "cut"])
@pytest.mark.parametrize("skill", ["retries", "verifies"])
def test_what_visibly_failed_is_repeated(
    task: PracticeTask, tool: str, bent: Bent, skill: str, tmp_path: Path
) -> None:
    done = run(tmp_path, task, skill, once(tool, bent))
    assert done.verdict.passed is True, done.verdict.detail
    [noticed] = done.noticed
    assert noticed.startswith(f"{tool} failed: ")
    assert any(noticed in said for said in done.said)


@a_read_of_each_kind
@pytest.mark.parametrize("skill", ["retries", "verifies"])
def test_what_fails_three_times_is_reported(
    task: PracticeTask, tool: str, skill: str, tmp_path: Path
) -> None:
    done = run(tmp_path, task, skill, always(tool, refused))
    assert done.final.startswith(f"NOT DONE: {tool} failed: HTTP 503: ")
    assert Counter(done.calls)[tool] == 3
    assert done.calls[-1] == tool
    assert (done.verdict.passed, len(done.noticed)) == (False, 3)


@each_read
def test_retries_believes_a_wrong_value(
    task: PracticeTask, tool: str, field: str, tmp_path: Path
) -> None:
    done = run(tmp_path, task, "retries", once(tool, wrong(field)))
    assert done.verdict.passed is False
    assert "differ" not in " ".join(done.said)


@pytest.mark.gate
@each_read
@pytest.mark.parametrize("nth", [1, 2])
def test_verifies_sees_which_field_differs_and_takes_the_majority(
    task: PracticeTask, tool: str, field: str, nth: int, tmp_path: Path
) -> None:
    done = run(tmp_path, task, "verifies", once(tool, wrong(field), nth))
    assert done.verdict.passed is True, done.verdict.detail
    if Counter(run(tmp_path, task, "verifies").calls)[tool] >= 2:
        [noticed] = done.noticed
        assert noticed.startswith(f"The results of {tool} differ in ")
        assert field in noticed
        assert any(noticed in said for said in done.said)


@pytest.mark.gate
@each_read
def test_a_lie_that_is_always_the_same_is_believed_by_all(
    task: PracticeTask, tool: str, field: str, tmp_path: Path
) -> None:
    done = run(tmp_path, task, "verifies", always(tool, wrong(field)))
    assert done.verdict.passed is False


def test_three_different_answers_are_reported(tmp_path: Path) -> None:
    seen = iter(("1001.5", "1002.5", "1003.5"))

    def bend(name: str, nth: int, really: Really) -> str | None:
        if name != "get_refund":
            return None
        return json.dumps(really()[1] | {"amount": float(next(seen))})

    done = run(tmp_path, ORDER_TASKS["refund-1"], "verifies", bend)
    assert done.final.startswith("NOT DONE: get_refund failed: it gave three different results.")


@each_write
def test_a_lost_write_is_repeated_blindly_by_retries(
    task: PracticeTask, tool: str, tmp_path: Path
) -> None:
    done = run(tmp_path, task, "retries", once(tool, lost))
    assert done.verdict.passed is False
    if tool == "update_order":
        assert "409" in done.final
    else:
        assert "not asked for" in done.verdict.detail


@pytest.mark.gate
@each_write
@pytest.mark.parametrize("bent", [lost, refused, cut], ids=["lost", "refused", "cut"])
def test_verifies_looks_before_it_writes_again(
    task: PracticeTask, tool: str, bent: Bent, tmp_path: Path
) -> None:
    done = run(tmp_path, task, "verifies", once(tool, bent))
    assert done.verdict.passed is True, done.verdict.detail
    assert done.final.startswith("DONE: ")
    assert done.noticed[0].startswith(f"{tool} failed: ")
    assert Counter(done.calls)[tool] == Counter(step.tool for step in task.plan)[tool] + (
        bent is refused
    )


@pytest.mark.gate
@each_write
def test_verifies_sees_that_a_write_had_no_effect(
    task: PracticeTask, tool: str, tmp_path: Path
) -> None:
    clean = run(tmp_path, task, "naive")
    at = clean.calls.index(tool)
    ack = str([m for m in clean.messages if m["role"] == "tool"][at]["content"])
    for skill, passed in (("retries", False), ("verifies", True)):
        done = run(tmp_path, task, skill, once(tool, saying(ack)))
        assert done.verdict.passed is passed, done.verdict.detail
        assert any(f"{tool} has had no effect" in said for said in done.said) is passed


@each_write
def test_a_write_that_never_works_is_reported(
    task: PracticeTask, tool: str, tmp_path: Path
) -> None:
    done = run(tmp_path, task, "verifies", always(tool, refused))
    assert done.final.startswith(f"NOT DONE: {tool} failed: HTTP 503")
    assert Counter(done.calls)[tool] == 3


@pytest.mark.thorough
@pytest.mark.gate
@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "{}", "not json", '{"error": "no"}', "<html>502</html>", '{"amount": 1}'],
)
@pytest.mark.parametrize("skill", ["naive", "retries", "verifies"])
def test_no_result_whatever_stops_the_model(text: str, skill: str, tmp_path: Path) -> None:
    for step in ORDER_TASKS["refund-1"].plan:
        done = run(tmp_path, ORDER_TASKS["refund-1"], skill, once(step.tool, saying(text)))
        assert done.final.startswith("DONE: ")
        done = run(tmp_path, ORDER_TASKS["refund-1"], skill, always(step.tool, saying(text)))
        assert done.final.startswith("DONE: " if skill == "naive" else f"NOT DONE: {step.tool}")


def test_rows_that_do_not_add_up_are_noticed(tmp_path: Path) -> None:
    def short(really: Really) -> str:
        result = really()[1]
        assert isinstance(result["orders"], list)
        return json.dumps(result | {"orders": result["orders"][:1]})

    done = run(tmp_path, ORDER_TASKS["refund-1"], "retries", once("list_orders", short))
    assert done.noticed == ("list_orders failed: count is 3, but orders has 1 rows.",)


@pytest.mark.thorough
@pytest.mark.gate
def test_a_model_of_known_skill_recovers_as_often_as_it_says(tmp_path: Path) -> None:
    """The bounds are what 999 of 1000 fair coins of 0.7 would hold."""
    recovered = troubles = 0
    for task in ORDER_TASKS.values():
        for step in task.plan:
            for number in range(2):
                mutate = once(step.tool, saying(f"HTTP 503: {number}"))
                done = run(tmp_path, task, "p=0.7", mutate)
                noticed, *_ = done.noticed
                acted = not noticed.startswith("ignored: ")
                assert done.verdict.passed is acted
                assert any(noticed in said for said in done.said) is acted
                troubles, recovered = troubles + 1, recovered + acted
    assert troubles == 264
    assert abs(recovered - 0.7 * troubles) < 3.3 * (0.7 * 0.3 * troubles) ** 0.5


@pytest.mark.gate
@pytest.mark.parametrize(
    ("p", "like"), [("p=0", "naive"), ("p=1", "verifies"), ("p=1.0", "verifies")]
)
def test_the_ends_of_the_scale(p: str, like: str, tmp_path: Path) -> None:
    for task in ORDER_TASKS.values():
        mutate = once("get_order", refused)
        one, other = run(tmp_path, task, p, mutate), run(tmp_path, task, like, mutate)
        assert one.verdict.passed is other.verdict.passed
    assert scripted_model.parse_model_skill("p=1") == scripted_model.parse_model_skill(
        "openai/practice/verifies"
    )


@pytest.mark.parametrize("name", ["gpt-4o", "p=", "p=1.1", "p=nan", "practice/", "Naive", ""])
def test_a_model_that_is_not_served(name: str) -> None:
    assert scripted_model.parse_model_skill(name) is None


def test_it_finds_its_place_after_calls_it_never_asked_for(tmp_path: Path) -> None:
    done = run(tmp_path, ORDER_TASKS["refund-1"], "verifies")
    strange: list[JsonRow] = [
        {"role": "user", "content": "By the way: be quick."},
        asked("", [ToolCall(id="x", name="list_notes", arguments='{"order_id":"ord-7063"}')]),
        {"role": "tool", "tool_call_id": "x", "content": "whatever"},
    ]
    found = scripted_model.parse_model_skill("verifies")
    assert found is not None
    for at in range(1, len(done.messages), 2):
        answer, _ = scripted_model.compute_next_answer(
            [*done.messages[:at], *strange, *done.messages[at:]], OFFERED, found
        )
        assert answer.message == done.final


@pytest.mark.parametrize(("name", "argument"), [("final_answer", "answer"), ("submit", "outcome")])
def test_a_tool_that_reports_the_end_gets_the_final_text(
    name: str, argument: str, tmp_path: Path
) -> None:
    done, found = (
        run(tmp_path, ORDER_TASKS["refund-1"], "naive"),
        scripted_model.parse_model_skill("naive"),
    )
    assert found is not None
    schema: dict[str, Json] = {"type": "object", "properties": {argument: {"type": "string"}}}
    tool: JsonRow = {"type": "function", "function": {"name": name, "parameters": schema}}
    answer, _ = scripted_model.compute_next_answer(done.messages, [*OFFERED, tool], found)
    [call] = answer.calls
    assert (call.name, json.loads(call.arguments)) == (name, {argument: done.final})


def test_other_agents_write_the_same_things_differently(tmp_path: Path) -> None:
    """Tools behind a server's prefix, keys in another order, whole floats as ints, text parts."""
    done, found = (
        run(tmp_path, ORDER_TASKS["address-1"], "verifies"),
        scripted_model.parse_model_skill("verifies"),
    )
    assert found is not None
    offered = json.loads(json.dumps(OFFERED).replace('"name": "', '"name": "mcp__shop__', 1))
    for tool in offered:
        name = tool["function"]["name"].removeprefix("mcp__shop__")
        tool["function"]["name"] = f"mcp__shop__{name}"
    messages = [strangely(message) for message in json.loads(json.dumps(done.messages))]
    for end in range(1, len(messages) + 1, 2):
        answer, _ = scripted_model.compute_next_answer(messages[:end], offered, found)
        plain, _ = scripted_model.compute_next_answer(done.messages[:end], OFFERED, found)
        assert answer.message == plain.message
        assert [call.name for call in answer.calls] == [
            f"mcp__shop__{call.name}" for call in plain.calls
        ]


def strangely(message: dict[str, Json]) -> dict[str, Json]:
    message["content"] = [{"type": "text", "text": message["content"]}]
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        assert isinstance(call, dict)
        function = call["function"]
        assert isinstance(function, dict)
        function["name"] = f"mcp__shop__{function['name']}"
        arguments = json.loads(str(function["arguments"]))
        turned = dict(reversed(arguments.items()))
        function["arguments"] = json.dumps(
            {k: int(v) if isinstance(v, float) and v.is_integer() else v for k, v in turned.items()}
        )
    return message


def test_without_a_task_or_a_tool_it_does_nothing() -> None:
    found = scripted_model.parse_model_skill("naive")
    assert found is not None
    prompt: JsonRow = {"role": "user", "content": ORDER_TASKS["refund-1"].prompt}
    hello: JsonRow = {"role": "user", "content": "Make a title for this conversation."}
    for messages, offered in (([hello], OFFERED), ([prompt], ()), ([prompt], OFFERED[:1])):
        answer, noticed = scripted_model.compute_next_answer(messages, offered, found)
        assert answer.message.startswith("NOT DONE: ")
        assert (answer.calls, noticed) == ((), ())


BASH: JsonRow = {"type": "function", "function": {"name": "bash"}}
each_shell_task = pytest.mark.parametrize("task", shell.SHELL_TASKS.values(), ids=shell.SHELL_TASKS)


def in_a_shell(
    folder: Path, task: shell.ShellTask, skill: str, mutate: dict[int, str] | None = None
) -> tuple[str, list[str]]:
    """The final text and all commands, run by a real shell; `bend` maps nth command to output."""
    found = scripted_model.parse_model_skill(skill)
    assert found is not None
    messages: list[JsonRow] = [
        {"role": "user", "content": f"Please solve this: {task.prompt}\n\nGo."}
    ]
    commands: list[str] = []
    for _ in range(40):
        answer, _ = scripted_model.compute_next_answer(messages, [BASH], found)
        messages.append(asked(answer.message, answer.calls))
        [call] = answer.calls
        command = json.loads(call.arguments)["command"]
        if command == shell.SUBMIT_COMMAND:
            return answer.message, commands
        commands.append(command)
        ran = subprocess.run(
            command, shell=True, cwd=folder, capture_output=True, text=True, timeout=20
        )
        output = (mutate or {}).get(len(commands), ran.stdout)
        shown = json.dumps({"returncode": ran.returncode, "output": output}, indent=2)
        messages.append({"role": "tool", "tool_call_id": call.id, "content": shown})
    raise AssertionError(commands)


@each_shell_task
@pytest.mark.parametrize("skill", ["naive", "retries", "verifies"])
def test_a_task_for_a_shell_is_done(task: shell.ShellTask, skill: str, tmp_path: Path) -> None:
    assert shell.verify_shell_task(tmp_path, task).passed is False
    final, _ = in_a_shell(tmp_path, task, skill)
    assert final.startswith("DONE: the total is ")
    assert shell.verify_shell_task(tmp_path, task).passed is True


@pytest.mark.parametrize(
    ("skill", "passed"), [("naive", False), ("retries", False), ("verifies", True)]
)
def test_a_wrong_figure_in_a_shell(skill: str, passed: bool, tmp_path: Path) -> None:
    task = shell.SHELL_TASKS["shell-sum"]
    wrong_value = "north 48217\nsouth 36915\neast 70348\n"
    final, commands = in_a_shell(tmp_path, task, skill, {3: wrong_value})
    assert shell.verify_shell_task(tmp_path, task).passed is passed
    assert ("echo 155480 > total.txt" in commands) is not passed


@pytest.mark.parametrize(("skill", "passed"), [("naive", False), ("retries", True)])
def test_a_file_that_seems_empty_in_a_shell(skill: str, passed: bool, tmp_path: Path) -> None:
    task = shell.SHELL_TASKS["shell-crew"]
    in_a_shell(tmp_path, task, skill, {3: ""})
    assert shell.verify_shell_task(tmp_path, task).passed is passed


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{\n  "returncode": 1,\n  "output": "no\\n"\n}', {"returncode": 1, "output": "no\n"}),
        (
            "<returncode>0</returncode>\n<output>\na\nb\n</output>",
            {"returncode": 0, "output": "a\nb"},
        ),
        (
            "Chunk ID: 9fae89\nWall time: 0.0512 seconds\nProcess exited with code 1\n"
            "Original token count: 2\nOutput:\na\nb\n",
            {"returncode": 1, "output": "a\nb\n"},
        ),
        (
            '{"command":"cat a","returncode":0,"stderr":"","stdout":"48271\\n"}',
            {"returncode": 0, "output": "48271\n"},
        ),
        (
            '[{"query":"cat b","result":"[stderr]\\nno\\n","error":"no","success":false}]',
            {"returncode": 1, "output": "[stderr]\nno\n"},
        ),
        ("48271\n", {"returncode": 0, "output": "48271\n"}),
        ('{"returncode": 0, "outp', None),
        ("<returncode>0</returncode>\n<output>\na", None),
    ],
)
def test_what_agents_show_of_a_command(text: str, shown: dict[str, Json] | None) -> None:
    assert shell.parse_shell_result(text) == shown
