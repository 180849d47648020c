"""tau2-bench domains: one folder, parsed into a task whose tools are served over MCP.

    tools.py         one subclass of ToolKitBase, with @is_tool(ToolType.READ) or WRITE methods
    data_model.py    imported by tools.py; uses tau2 itself or the shim
    db.json          the data (or db.toml), of the type of the tool kit's `db`
    policy.md        the agent's policy
    tasks.json       tasks: user_scenario or ticket, initial_state, evaluation_criteria

`DIR#ID` selects one of several tasks. The tools are an MCP server at `http://tools.benchmark/mcp`,
on fresh data for each run, and the verdict is tau2's: the data equal the result of the expected
calls, and the required texts were communicated. There is no simulated user: the user's wishes and
knowledge are part of the prompt, after the policy.

Wire facts: tau2-bench, `data_model/tasks.py` and `evaluator/` as of 2026.
"""

import json
import textwrap
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from scenarios.benchmarks.protocol import BenchmarkEnvironment, MountPrefix
from scenarios.toml_reader import ScenarioError, TypedTable
from traces.did_you_mean import suggest_nearest_name

TOOLS_HOST = "tools.benchmark"
TOOLS_URL = f"http://{TOOLS_HOST}/mcp"
REWARD_BASES = ("DB", "ENV_ASSERTION", "COMMUNICATE", "ACTION", "NL_ASSERTION")


class Tau2Action(Struct, frozen=True, kw_only=True):
    """A tool call that is expected, or made before the task starts."""

    name: str
    arguments: Mapping[str, Any]
    compared: tuple[str, ...] | None = None
    """Names of the arguments to compare; None compares all given ones."""


class Tau2Assertion(Struct, frozen=True, kw_only=True):
    """A method of the tool kit that must return `wanted`."""

    name: str
    arguments: Mapping[str, Any]
    wanted: bool = True


class Tau2Task(Struct, frozen=True, kw_only=True):
    """One task of a domain."""

    folder: Path
    name: str
    instruction: str
    data: Mapping[str, Any]
    """Changes to the domain's data at the start of the task."""
    initial_actions: tuple[Tau2Action, ...]
    actions: tuple[Tau2Action, ...]
    assertions: tuple[Tau2Assertion, ...]
    communicate: tuple[str, ...]
    basis: tuple[str, ...]
    """The reward bases that count for the verdict."""
    limitations: tuple[str, ...]
    benchmark_format: str = "tau2-bench"
    budget: float | None = None
    url: str = TOOLS_URL

    @property
    def domain(self) -> str:
        """The name of the folder."""
        return self.folder.name

    @asynccontextmanager
    async def set_up(
        self, folder: Path, facade: MountPrefix
    ) -> AsyncIterator[BenchmarkEnvironment]:
        """Serve its tools for the duration of the block; check that the expected calls work.

        Raises ChildProcessError if they do not, or if the domain's code cannot be loaded.
        """
        from scenarios.benchmarks.tau2_world import Tau2Tools, Tau2World, compute_expected_state
        from scenarios.practice.mcp_server import serve_mcp_on_loopback

        tools = Tau2Tools(self)
        try:
            try:
                await tools.restart()
                offered = (await tools.ask_worker("tools"))["tools"]
                await compute_expected_state(tools)
            except ChildProcessError as error:
                raise ChildProcessError(f"{self.folder}: {error}") from None
            async with serve_mcp_on_loopback(
                tools.build_mcp_server(offered), hosts=(TOOLS_HOST,)
            ) as port:
                yield BenchmarkEnvironment(
                    world=Tau2World(tools=tools), hosts={TOOLS_HOST: ("127.0.0.1", port)}
                )
        finally:
            await tools.close()


def is_tau2_domain(folder: Path) -> bool:
    """Return whether a folder is a tau2 domain."""
    return (folder / "tools.py").is_file() or (folder / "tasks.json").is_file()


def read_tau2_task(folder: Path, id: str = "") -> Tau2Task:
    """Parse a task of a domain. Raises ScenarioError with file and key if it cannot run here."""
    folder = folder.resolve()
    path = folder / "tasks.json"
    for name in ("tools.py", "tasks.json", "policy.md"):
        if not (folder / name).is_file():
            raise ScenarioError(folder / name, "", "is missing")
    if not any((folder / name).is_file() for name in ("db.json", "db.toml")):
        raise ScenarioError(folder / "db.json", "", "is missing")
    try:
        tasks = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ScenarioError(path, "", f"no JSON: {error}") from None
    if not isinstance(tasks, list) or not all(isinstance(each, dict) for each in tasks):
        raise ScenarioError(path, "", "it is a list of tasks")
    tables = {str(each.get("id")): TypedTable(path, f"[{n}]", each) for n, each in enumerate(tasks)}
    if not id and len(tables) != 1:
        known = f"{', '.join(list(tables)[:5])}{' and more' if len(tables) > 5 else ''}"
        raise ScenarioError(path, "", f"say which of its tasks, as in DIR#ID; there is {known}")
    if id and id not in tables:
        raise ScenarioError(path, "", f"no task is called {id!r}{suggest_nearest_name(id, tables)}")
    return _parse_tau2_task(folder, tables[id] if id else next(iter(tables.values())))


def _parse_tau2_task(folder: Path, top: TypedTable) -> Tau2Task:
    top.allow_only(
        "id description user_scenario ticket initial_state evaluation_criteria issues "
        "required_documents user_tools annotations"
    )
    start, criteria = (
        top.get_optional_table("initial_state"),
        top.get_optional_table("evaluation_criteria"),
    )
    start.allow_only("initialization_data initialization_actions message_history")
    criteria.allow_only("actions env_assertions communicate_info nl_assertions reward_basis")
    if start.entries.get("message_history"):
        raise start.make_error(
            "message_history", "a conversation cannot be begun in the middle here"
        )
    if not criteria.entries:
        raise top.make_error("evaluation_criteria", "are missing, so that nothing could be judged")
    data = start.get_optional_table("initialization_data")
    data.allow_only("agent_data user_data")
    if data.entries.get("user_data"):
        raise data.make_error("user_data", "there is no simulated user here, who would have data")
    basis = (
        criteria.get_texts("reward_basis")
        if "reward_basis" in criteria.entries
        else REWARD_BASES[0:3:2]
    )
    for each in basis:
        if each not in REWARD_BASES:
            raise criteria.make_error(
                "reward_basis", f"{each!r} is not known{suggest_nearest_name(each, REWARD_BASES)}"
            )
    return Tau2Task(
        folder=folder,
        name=top.require_text("id"),
        instruction=_build_tau2_instruction(folder, top),
        data=data.get_optional_table("agent_data").entries,
        initial_actions=tuple(_parse_initial_actions(start)),
        actions=tuple(_parse_expected_actions(criteria)),
        assertions=tuple(_parse_assertions(criteria)),
        communicate=criteria.get_texts("communicate_info", none=True),
        basis=basis,
        limitations=tuple(_find_tau2_limitations(basis)),
    )


def _build_tau2_instruction(folder: Path, top: TypedTable) -> str:
    """Return the prompt: the policy and all that the user would say."""
    policy = (folder / "policy.md").read_text("utf-8").strip()
    if ticket := top.get_optional_text("ticket"):
        return f"{policy}\n\nThe ticket:\n\n{ticket.strip()}"
    scenario = top.get_optional_table("user_scenario")
    scenario.allow_only("persona instructions")
    wishes = scenario.entries.get("instructions")
    if isinstance(wishes, dict):
        table = scenario.get_table("instructions")
        table.allow_only("domain reason_for_call known_info unknown_info task_instructions")
        parts = (table.get_optional_text(key) for key in wishes if key != "domain")
        wishes = "\n".join(part.strip() for part in parts if part)
    if not isinstance(wishes, str) or not wishes.strip():
        raise scenario.make_error("instructions", "are missing, so that nothing is asked for")
    heading = "Nobody answers questions. This is what the customer wants, knows and would do:"
    return f"{policy}\n\n{heading}\n\n{textwrap.indent(wishes.strip(), '    ')}"


def _parse_initial_actions(start: TypedTable) -> Iterator[Tau2Action]:
    for table in start.get_tables("initialization_actions"):
        table.allow_only("env_type func_name arguments")
        _refuse_user_side(table, "env_type")
        yield Tau2Action(
            name=table.require_text("func_name"),
            arguments=table.get_optional_table("arguments").entries,
        )


def _parse_expected_actions(wanted: TypedTable) -> Iterator[Tau2Action]:
    for table in wanted.get_tables("actions"):
        table.allow_only("action_id requestor name arguments info compare_args")
        _refuse_user_side(table, "requestor")
        compared = table.entries.get("compare_args")
        yield Tau2Action(
            name=table.require_text("name"),
            arguments=table.get_optional_table("arguments").entries,
            compared=None if compared is None else table.get_texts("compare_args"),
        )


def _parse_assertions(wanted: TypedTable) -> Iterator[Tau2Assertion]:
    for table in wanted.get_tables("env_assertions"):
        table.allow_only("env_type func_name arguments assert_value message")
        _refuse_user_side(table, "env_type")
        yield Tau2Assertion(
            name=table.require_text("func_name"),
            arguments=table.get_optional_table("arguments").entries,
            wanted=table.get_bool("assert_value", True),
        )


def _refuse_user_side(table: TypedTable, key: str) -> None:
    if (side := table.get_text(key) or "assistant") != "assistant":
        raise table.make_error(
            key, f"{side!r}: there is no simulated user here, who would have tools"
        )


def _find_tau2_limitations(basis: tuple[str, ...]) -> Iterator[str]:
    yield "no user is simulated: what they want and know is said at once, with the policy"
    yield "the domain's code runs in a process of its own, with your rights"
    if "NL_ASSERTION" in basis:
        yield "nl_assertions would be judged by a model, so that a run may fail, but never pass"
