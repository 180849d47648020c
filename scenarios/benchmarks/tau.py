"""A domain as tau2-bench has it, in one folder, read into a task whose tools can be served.

    tools.py         one subclass of ToolKitBase, with @is_tool(ToolType.READ) or WRITE methods
    data_model.py    whatever tools.py imports; tau2 itself, or what stands in for it
    db.json          the data (or db.toml), as the type of the tool kit's `db` has it
    policy.md        what the agent is to keep to
    tasks.json       tasks: user_scenario or ticket, initial_state, evaluation_criteria

Of several tasks one is named behind a `#`: `DIR#ID`. The tools are an MCP server at
`http://tools.benchmark/mcp`, on data that is new for each run, and the verdict is tau2's: the data
are what the expected calls leave, and what had to be said was said. There is no user who is
simulated: what they want and know is given with the policy, at once.

Wire facts: tau2-bench, `data_model/tasks.py` and `evaluator/` as of 2026.
"""

import json
import textwrap
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scenarios.benchmarks.stage import Facade, Stage
from scenarios.table import ScenarioError, Table
from traces.nearest import nearest

HOST = "tools.benchmark"
URL = f"http://{HOST}/mcp"
BASES = ("DB", "ENV_ASSERTION", "COMMUNICATE", "ACTION", "NL_ASSERTION")


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A call of a tool that is expected, or made before a task begins."""

    name: str
    arguments: Mapping[str, Any]
    compared: tuple[str, ...] | None = None
    """The arguments that count; None is all that were given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assertion:
    """A method of the tool kit that must say true, or false."""

    name: str
    arguments: Mapping[str, Any]
    wanted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TauTask:
    """One task of a domain."""

    folder: Path
    name: str
    instruction: str
    data: Mapping[str, Any]
    """What is other than in the domain's data when the task begins."""
    before: tuple[Action, ...]
    actions: tuple[Action, ...]
    assertions: tuple[Assertion, ...]
    communicate: tuple[str, ...]
    basis: tuple[str, ...]
    """What counts for the verdict."""
    weaker: tuple[str, ...]
    form: str = "tau2-bench"
    budget: float | None = None
    url: str = URL

    @property
    def domain(self) -> str:
        """What the folder is called."""
        return self.folder.name

    @asynccontextmanager
    async def staged(self, folder: Path, facade: Facade) -> AsyncIterator[Stage]:
        """Its tools, served until the block ends; the expected calls must work on its data.

        ChildProcessError where they do not, or the domain's code cannot be loaded.
        """
        from scenarios.benchmarks.toolset import TauWorld, Toolset, expected
        from scenarios.practice.as_mcp import listening

        tools = Toolset(self)
        try:
            try:
                await tools.renew()
                offered = (await tools.asked("tools"))["tools"]
                await expected(tools)
            except ChildProcessError as error:
                raise ChildProcessError(f"{self.folder}: {error}") from None
            async with listening(tools.server(offered), hosts=(HOST,)) as port:
                yield Stage(world=TauWorld(tools=tools), hosts={HOST: ("127.0.0.1", port)})
        finally:
            await tools.close()


def is_one(folder: Path) -> bool:
    """Whether a folder has this form."""
    return (folder / "tools.py").is_file() or (folder / "tasks.json").is_file()


def read(folder: Path, id: str = "") -> TauTask:
    """A task of a domain; ScenarioError, with file and key, where it cannot be had here."""
    folder = folder.resolve()
    path = folder / "tasks.json"
    for name in ("tools.py", "tasks.json", "policy.md"):
        if not (folder / name).is_file():
            raise ScenarioError(folder / name, "", "is missing")
    if not any((folder / name).is_file() for name in ("db.json", "db.toml")):
        raise ScenarioError(folder / "db.json", "", "is missing")
    try:
        said = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ScenarioError(path, "", f"no JSON: {error}") from None
    if not isinstance(said, list) or not all(isinstance(each, dict) for each in said):
        raise ScenarioError(path, "", "it is a list of tasks")
    tables = {str(each.get("id")): Table(path, f"[{n}]", each) for n, each in enumerate(said)}
    if not id and len(tables) != 1:
        there = f"{', '.join(list(tables)[:5])}{' and more' if len(tables) > 5 else ''}"
        raise ScenarioError(path, "", f"say which of its tasks, as in DIR#ID; there is {there}")
    if id and id not in tables:
        raise ScenarioError(path, "", f"no task is called {id!r}{nearest(id, tables)}")
    return _task(folder, tables[id] if id else next(iter(tables.values())))


def _task(folder: Path, top: Table) -> TauTask:
    top.only(
        "id description user_scenario ticket initial_state evaluation_criteria issues "
        "required_documents user_tools annotations"
    )
    start, wanted = top.optional("initial_state"), top.optional("evaluation_criteria")
    start.only("initialization_data initialization_actions message_history")
    wanted.only("actions env_assertions communicate_info nl_assertions reward_basis")
    if start.said.get("message_history"):
        raise start.wrong("message_history", "a conversation cannot be begun in the middle here")
    if not wanted.said:
        raise top.wrong("evaluation_criteria", "are missing, so that nothing could be judged")
    data = start.optional("initialization_data")
    data.only("agent_data user_data")
    if data.said.get("user_data"):
        raise data.wrong("user_data", "there is no simulated user here, who would have data")
    basis = wanted.texts("reward_basis") if "reward_basis" in wanted.said else BASES[0:3:2]
    for each in basis:
        if each not in BASES:
            raise wanted.wrong("reward_basis", f"{each!r} is not known{nearest(each, BASES)}")
    return TauTask(
        folder=folder,
        name=top.needed("id"),
        instruction=_instruction(folder, top),
        data=data.optional("agent_data").said,
        before=tuple(_before(start)),
        actions=tuple(_actions(wanted)),
        assertions=tuple(_assertions(wanted)),
        communicate=wanted.texts("communicate_info", none=True),
        basis=basis,
        weaker=tuple(_weaker(basis)),
    )


def _instruction(folder: Path, top: Table) -> str:
    """The policy, and all that a user would say: as one prompt."""
    policy = (folder / "policy.md").read_text("utf-8").strip()
    if ticket := top.optional_text("ticket"):
        return f"{policy}\n\nThe ticket:\n\n{ticket.strip()}"
    scenario = top.optional("user_scenario")
    scenario.only("persona instructions")
    told = scenario.said.get("instructions")
    if isinstance(told, dict):
        table = scenario.table("instructions")
        table.only("domain reason_for_call known_info unknown_info task_instructions")
        parts = (table.optional_text(key) for key in told if key != "domain")
        told = "\n".join(part.strip() for part in parts if part)
    if not isinstance(told, str) or not told.strip():
        raise scenario.wrong("instructions", "are missing, so that nothing is asked for")
    heading = "Nobody answers questions. This is what the customer wants, knows and would do:"
    return f"{policy}\n\n{heading}\n\n{textwrap.indent(told.strip(), '    ')}"


def _before(start: Table) -> Iterator[Action]:
    for table in start.rows("initialization_actions"):
        table.only("env_type func_name arguments")
        _assistants(table, "env_type")
        yield Action(name=table.needed("func_name"), arguments=table.optional("arguments").said)


def _actions(wanted: Table) -> Iterator[Action]:
    for table in wanted.rows("actions"):
        table.only("action_id requestor name arguments info compare_args")
        _assistants(table, "requestor")
        compared = table.said.get("compare_args")
        yield Action(
            name=table.needed("name"),
            arguments=table.optional("arguments").said,
            compared=None if compared is None else table.texts("compare_args"),
        )


def _assertions(wanted: Table) -> Iterator[Assertion]:
    for table in wanted.rows("env_assertions"):
        table.only("env_type func_name arguments assert_value message")
        _assistants(table, "env_type")
        yield Assertion(
            name=table.needed("func_name"),
            arguments=table.optional("arguments").said,
            wanted=table.true("assert_value", True),
        )


def _assistants(table: Table, key: str) -> None:
    if (who := table.text(key) or "assistant") != "assistant":
        raise table.wrong(key, f"{who!r}: there is no simulated user here, who would have tools")


def _weaker(basis: tuple[str, ...]) -> Iterator[str]:
    yield "no user is simulated: what they want and know is said at once, with the policy"
    yield "the domain's code runs in a process of its own, with your rights"
    if "NL_ASSERTION" in basis:
        yield "nl_assertions would be judged by a model, so that a run may fail, but never pass"
