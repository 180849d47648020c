"""A tau2 domain is read, its tools served on data that is new, and its end state judged."""

import asyncio
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest
from mcp import Client

from scenarios.benchmarks import tau2
from scenarios.benchmarks.tau2_world import Tau2Tools, Tau2World, open_tau2_worker
from scenarios.practice.mcp_server import serve_mcp_on_loopback
from scenarios.scenario import find_scenario, read_scenario
from scenarios.toml_reader import ScenarioError
from scenarios.world import Verdict

LENDING = Path(__file__).parents[2] / "data" / "tau" / "lending"
type Calls = Sequence[tuple[str, dict[str, object]]]
SETTLED: Calls = [("settle_fee", {"loan_id": "L-204", "amount": 37.45})]


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A copy of the domain, to be spoilt."""
    return Path(shutil.copytree(LENDING, tmp_path / "lending"))


def edited(folder: Path, **criteria: object) -> tau2.Tau2Task:
    """The first task, with other criteria."""
    path = folder / "tasks.json"
    document = json.loads(path.read_text())
    document[0]["evaluation_criteria"] |= criteria
    path.write_text(json.dumps(document))
    return tau2.read_tau2_task(folder, "settle-1")


def judged(task: tau2.Tau2Task, calls: Calls, said: Sequence[str] = ()) -> Verdict:
    """The verdict once these calls were made on fresh data, and this was said."""
    tools = Tau2Tools(task)

    async def run() -> Verdict:
        try:
            await tools.restart()
            for name, arguments in calls:
                tools.called.append((name, arguments))
                await tools.ask_worker("call", name=name, arguments=arguments)
            return await Tau2World(tools=tools).verify(said)
        finally:
            await tools.close()

    return asyncio.run(run())


def test_a_task_of_a_domain_is_read_into_a_scenario() -> None:
    found = read_scenario(find_scenario(f"{LENDING}#settle-1"))
    assert (found.name, found.task) == ("lending#settle-1", "settle-1")
    task = found.benchmark
    assert isinstance(task, tau2.Tau2Task)
    assert (task.benchmark_format, task.url, task.basis) == (
        "tau2-bench",
        "http://tools.benchmark/mcp",
        ("DB", "COMMUNICATE"),
    )
    assert task.instruction.startswith("You work at the desk of a lending library.")
    assert "You want to settle what you owe for loan L-204.\n    Your loan is" in task.instruction
    assert [each.name for each in task.actions] == ["get_loan", "settle_fee"]
    assert task.limitations[0].startswith("no user is simulated")
    ticket = tau2.read_tau2_task(LENDING, "settle-2")
    assert ticket.instruction.endswith("late by one more day: 1250.50 are open. Settle it.")
    assert ticket.data == {"loans": {"L-311": {"fee": 1250.5}}}


@pytest.mark.parametrize(
    ("was", "becomes", "says"),
    [
        ('"ticket"', '"tickett"', "[1].tickett: no such key; did you mean ticket?"),
        ('"compare_args"', '"compare_arg"', "actions[0].compare_arg: no such key; did you mean"),
        ('"DB"', '"DBB"', "reward_basis: 'DBB' is not known; did you mean DB?"),
        ('"assistant"', '"user"', "env_type: 'user': there is no simulated user here"),
        ('"reward_basis"', '"message_history"', "message_history: no such key"),
        ('"name": "settle_fee"', '"name": 3', "actions[0].name: 3 is not a text"),
        ('"assert_value": true', '"assert_value": 1', "assert_value: 1 is neither true nor false"),
        ("[\n", "{\n", "tasks.json: no JSON"),
    ],
)
def test_tasks_that_cannot_be_had_are_named_by_key(
    mine: Path, was: str, becomes: str, says: str
) -> None:
    path = mine / "tasks.json"
    text = path.read_text().replace('["ENV', '["DB", "ENV')
    assert was in text
    path.write_text(text.replace(was, becomes, 1) if was == "[\n" else text.replace(was, becomes))
    with pytest.raises(ScenarioError) as error:
        tau2.read_tau2_task(mine, "settle-2")
    assert says in str(error.value)


@pytest.mark.parametrize("name", ["tools.py", "policy.md", "db.json", "tasks.json"])
def test_a_file_that_is_missing_is_named(mine: Path, name: str) -> None:
    (mine / name).unlink()
    with pytest.raises(ScenarioError, match=f"{name}: is missing"):
        read_scenario(find_scenario(f"{mine}#settle-1"))


def test_of_several_tasks_one_has_to_be_named() -> None:
    with pytest.raises(ScenarioError, match=r"as in DIR#ID; there is settle-1, settle-2"):
        read_scenario(find_scenario(str(LENDING)))
    with pytest.raises(ScenarioError, match=r"'setle-1'; did you mean settle-1\?"):
        read_scenario(find_scenario(f"{LENDING}#setle-1"))


def test_the_end_state_is_what_the_expected_calls_leave() -> None:
    task, words = tau2.read_tau2_task(LENDING, "settle-1"), ["DONE: I have taken 37.45."]
    assert judged(task, SETTLED, words) == Verdict(True, "DB, COMMUNICATE")
    halves = [("settle_fee", {"loan_id": "L-204", "amount": part}) for part in (37.0, 0.45)]
    assert judged(task, halves, words).passed is True  # another way to the same state
    assert judged(task, [], words) == Verdict(False, "the data differ in loans, settled")
    assert judged(task, SETTLED, ["DONE"]) == Verdict(False, "never said: 37.45")


def test_assertions_and_expected_calls_count_where_the_task_says_so() -> None:
    task, words = tau2.read_tau2_task(LENDING, "settle-2"), ["I took 1,000.5."]
    whole: Calls = [("settle_fee", {"loan_id": "L-311", "amount": 1000.5})]
    part: Calls = [("settle_fee", {"loan_id": "L-311", "amount": 1000})]
    assert judged(task, whole, words).passed is True
    assert judged(task, part, words) == Verdict(False, "is_settled is False")
    assert judged(task, [], words).detail == (
        "is_settled is False; not called as expected: settle_fee"
    )


def test_what_only_a_model_could_judge_is_never_a_pass(mine: Path) -> None:
    task = edited(mine, nl_assertions=["It is polite."], reward_basis=["DB", "NL_ASSERTION"])
    assert judged(task, SETTLED).passed is None
    assert judged(task, []).passed is False
    assert "may fail, but never pass" in task.limitations[-1]


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("raise RuntimeError('boom')", "RuntimeError: boom"),
        ("return 3", "is_settled says 3, not true or false"),
        ("import os; os._exit(3)", "the domain's process has ended"),
    ],
)
def test_a_verifier_that_breaks_is_unknown(mine: Path, method: str, says: str) -> None:
    tools = mine / "tools.py"
    tools.write_text(tools.read_text().replace("return self.db.loans[loan_id].fee == 0", method))
    verdict = judged(tau2.read_tau2_task(mine, "settle-2"), [("count_loans", {})], ["1000.5"])
    # The expected call was not made, which is known; with it the broken part decides.
    assert verdict.passed is False
    made: Calls = [("settle_fee", {"loan_id": "L-311", "amount": 1000.5})]
    verdict = judged(tau2.read_tau2_task(mine, "settle-2"), made, ["1000.5"])
    assert verdict.passed is None
    assert says in verdict.detail


def test_a_domain_that_hangs_is_ended(mine: Path) -> None:
    tools = mine / "tools.py"
    tools.write_text(tools.read_text().replace("return len(self.db.loans)", "while True: pass"))

    async def run() -> None:
        async with open_tau2_worker(mine, patience=10) as worker:
            await worker.ask("reset", data={}, calls=[])
            with pytest.raises(ChildProcessError, match="no answer within 10 s"):
                await worker.ask("call", name="count_loans", arguments={})
            with pytest.raises(ChildProcessError, match="has ended|no answer that can be read"):
                await worker.ask("state")

    asyncio.run(run())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("", "tools.py must have one subclass of ToolKitBase; there is none"),
    ],
)
def test_a_domain_that_cannot_be_loaded_is_said_before_any_run(
    mine: Path, tmp_path: Path, text: str, says: str
) -> None:
    (mine / "tools.py").write_text(text)
    with pytest.raises(ChildProcessError) as error:
        asyncio.run(_staged(tau2.read_tau2_task(mine, "settle-1"), tmp_path))
    assert says in str(error.value)


def test_expected_calls_that_fail_are_said_before_any_run(mine: Path, tmp_path: Path) -> None:
    wrong = {"action_id": "1", "name": "settle_fee", "arguments": {"loan_id": "L-0", "amount": 1}}
    with pytest.raises(ChildProcessError, match="the expected call of settle_fee fails: Error: th"):
        asyncio.run(_staged(edited(mine, actions=[wrong]), tmp_path))


async def _staged(task: tau2.Tau2Task, folder: Path) -> None:
    async with task.set_up(folder, lambda shown, cwd: ()):
        raise AssertionError("it was staged")


def test_tools_are_served_over_mcp_with_what_they_do() -> None:
    tools = Tau2Tools(tau2.read_tau2_task(LENDING, "settle-1"))

    async def run() -> None:
        try:
            await tools.restart()
            offered = (await tools.ask_worker("tools"))["tools"]
            async with (
                serve_mcp_on_loopback(tools.build_mcp_server(offered)) as port,
                Client(f"http://127.0.0.1:{port}/mcp") as client,
            ):
                found = {tool.name: tool for tool in (await client.list_tools()).tools}
                hints = {name: tool.annotations for name, tool in found.items()}
                reads = {name: hint and hint.read_only_hint for name, hint in hints.items()}
                assert reads == {"get_loan": True, "settle_fee": False, "count_loans": True}
                assert found["get_loan"].input_schema["required"] == ["loan_id"]
                loan = await client.call_tool("get_loan", {"loan_id": "L-204"})
                assert '"fee": 37.45' in str(loan.content[0])
                none = await client.call_tool("get_loan", {"loan_id": "L-0"})
                assert none.is_error
                assert "Error: there is no loan L-0" in str(none.content[0])
        finally:
            await tools.close()

    asyncio.run(run())
