"""Scenarios, once all that they say is known to be possible, and how one is run.

The agent is recorded once, in the scenario's world or against a recording that is there already,
and the recording is forked at the first call that is struck.
"""

import json
import re
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from copy import replace
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from faults import bind_operator
from faults.jsonpath import find_json_paths
from faults.specs.spec_parser import parse_fault
from replay.matching.rules import parse_match_rule
from scenarios.practice import scripted_model, world
from scenarios.practice.served_world import serve_practice_world
from scenarios.practice.tasks.registry import ALL_TASKS
from scenarios.practice.tools.json_schema import build_schema_example
from scenarios.practice.tools.registry import SHOP_TOOLS
from scenarios.practice.world import PracticeWorld
from scenarios.scenario import PracticeSettings, Scenario, find_scenario, read_scenario
from scenarios.toml_reader import ScenarioError
from stumble.runs.fork import ForkPlan, ForkResult, run_fork
from stumble.runs.fork_report import ForkReport, judge_fork
from stumble.runs.launcher import WarmLauncher, start_warm_agent
from stumble.runs.record import record_run
from stumble.runs.session import ReplaySession
from stumble.runs.types import AgentLauncher, RecordPlan, RunEnvironment, RunLabels
from stumble.user_data.paths import new_trajectory_id
from traces.did_you_mean import suggest_nearest_name
from traces.model import Fault
from traces.store.trace_store import TraceStore
from traces.tape.reader import Tape, read_tape

MAX_AGENT_STEPS = 120
"""Steps that the practice agent may take, so that a faulted run can be twice as long."""


class CheckedScenario(Struct, frozen=True, kw_only=True):
    """A scenario with its faults, all of them valid."""

    scenario: Scenario
    faults: tuple[Fault, ...]

    def retarget_faults(self, where: Mapping[str, str]) -> "CheckedScenario":
        """The same at other calls, as for an agent whose tools have other names."""
        faults = tuple(replace(f, where={**f.where, **where}) for f in self.faults)
        for each in faults:
            bind_operator(each)
        return replace(self, faults=faults)


def load_checked_scenario(name: str, instead: Sequence[Fault] = ()) -> CheckedScenario:
    """The scenario of a name or path; LookupError or ScenarioError where there is none that can be.

    What a fault, a rule or a practice task gets wrong is said with file, key and nearest name.
    Where faults are given they are instead of its own, which may be none then.
    """
    said = read_scenario(find_scenario(name))
    if not said.faults and not instead and said.benchmark is None:
        raise ScenarioError(said.path, "faults", "there is none; say at least one [[faults]]")
    for number, rule in enumerate(said.rules):
        try:
            parse_match_rule(rule)
        except ValueError as error:
            raise ScenarioError(said.path, f"match.rules[{number}]", str(error)) from None
    own = tuple(_parse_scenario_fault(said.path, n, table) for n, table in enumerate(said.faults))
    faults = tuple(instead) or own
    if said.practice is not None:
        _check_practice(said.path, said.practice)
        for number, each in enumerate(own):
            _check_fault_target(said.path, f"faults[{number}]", each)
    return CheckedScenario(scenario=said, faults=faults)


def _parse_scenario_fault(path: Path, number: int, table: Mapping[str, object]) -> Fault:
    try:
        return parse_fault(table)
    except ValueError as error:
        raise ScenarioError(path, f"faults[{number}]", str(error)) from None


def _check_practice(path: Path, practice: PracticeSettings) -> None:
    if practice.task not in ALL_TASKS:
        why = f"no task is called {practice.task!r}{suggest_nearest_name(practice.task, ALL_TASKS)}"
        raise ScenarioError(path, "practice.task", why)
    if scripted_model.parse_model_skill(practice.model) is None:
        why = f"no model is called {practice.model!r}, as practice/naive or practice/p=0.7"
        raise ScenarioError(path, "practice.model", why)


def _check_fault_target(path: Path, key: str, fault: Fault) -> None:
    """ScenarioError where no tool of the practice world, or no part of a result, is meant."""
    glob = fault.where.get("tool", "*")
    tools = [tool for tool in SHOP_TOOLS.values() if fnmatchcase(tool.name, glob)]
    if not tools:
        why = (
            f"no tool of the practice world is called "
            f"{glob!r}{suggest_nearest_name(glob, SHOP_TOOLS)}"
        )
        raise ScenarioError(path, f"{key}.where.tool", why)
    part = str(fault.params.get("path") or "$")
    if re.search(r"[?:]|\[-?\d", part):  # which items there are is known when they are there
        return
    if not any(
        find_json_paths(part, json.dumps(build_schema_example(tool.returns))) for tool in tools
    ):
        names = ", ".join(tool.name for tool in tools)
        raise ScenarioError(path, f"{key}.path", f"{part!r} fits nothing that {names} returns")


@asynccontextmanager
async def open_practice_scenario(
    said: Scenario, practice: PracticeSettings, folder: Path
) -> AsyncIterator[RunEnvironment]:
    """The practice world, with its agent warm; all of it ends with the block."""
    output = folder / "agent.log"
    book = _set_up_practice_book(practice, folder)
    local = ("--db", str(book)) if practice.tools == "local" else ()
    skill = ("--model", practice.model, "--max-steps", str(MAX_AGENT_STEPS))
    stream = ("--stream",) if practice.stream else ()
    argv = (practice.task, *skill, "--tools", practice.tools, *local, *stream)
    async with (
        serve_practice_world(book, mcp=practice.tools == "mcp") as hosts,
        start_warm_agent("scenarios.practice.agents.openai_agent") as agent,
    ):
        launch = WarmLauncher(
            process=agent,
            command=(sys.executable, "-m", "scenarios.practice.agents.openai_agent", *argv),
            argv=argv,
            output=output,
            budget=said.budget,
        )
        yield RunEnvironment(
            hosts=hosts,
            world=PracticeWorld(book, practice.task, hosts),
            launch=lambda name: launch,
            labels=RunLabels(
                agent="practice", model=practice.model, scenario=said.name, task=practice.task
            ),
        )


@asynccontextmanager
async def open_practice_world(
    practice: PracticeSettings,
    folder: Path,
    launch: Callable[[str], AgentLauncher],
    labels: RunLabels,
) -> AsyncIterator[RunEnvironment]:
    """The practice world for an agent of the user; its servers end with the block."""
    book = _set_up_practice_book(practice, folder)
    async with serve_practice_world(book, mcp=practice.tools == "mcp") as hosts:
        yield RunEnvironment(
            hosts=hosts,
            world=PracticeWorld(book, practice.task, hosts),
            launch=launch,
            labels=replace(labels, model=practice.model, task=practice.task),
        )


def _set_up_practice_book(practice: PracticeSettings, folder: Path) -> Path:
    book = folder / "shop.db"
    world.set_up_order_book(book, ALL_TASKS[practice.task])
    return book


def fill_practice_command(command: Sequence[str], practice: PracticeSettings) -> tuple[str, ...]:
    """Fill `{task}`, `{model}` and `{prompt}` into the words of a command."""
    values = {
        "{task}": practice.task,
        "{model}": practice.model,
        "{prompt}": ALL_TASKS[practice.task].prompt,
    }
    slot = re.compile("|".join(map(re.escape, values)))
    return tuple(slot.sub(lambda match: values[match[0]], word) for word in command)


async def record_scenario(
    told: CheckedScenario,
    setting: RunEnvironment,
    store: TraceStore,
    *,
    ca: Path,
    scratch: Path,
    workspace: Path | None = None,
    snapshot: str | None = None,
) -> Tape:
    """Record the agent once, live and without faults."""
    id = new_trajectory_id()
    path = store.tapes / f"{id}.tape"
    await record_run(
        path,
        setting.launch("recording"),
        RecordPlan(
            hosts=setting.hosts,
            world=setting.world,
            labels=setting.labels,
            tools=told.scenario.tools,
            equivalent=told.scenario.equivalent,
            rules=told.scenario.rules,
            workspace=workspace,
            snapshot=snapshot,
            store=store,
            trust=setting.trust,
        ),
        id=id,
        ca=ca,
        scratch=scratch,
    )
    return read_tape(path)


async def fork_scenario(
    design: ForkPlan,
    setting: RunEnvironment,
    session: ReplaySession,
    store: TraceStore,
    progress: Callable[[str], object] = lambda what: None,
) -> ForkReport:
    """Fork the recording at the first injected call, and judge."""
    progress(f"injecting into {design.fork_point.describe()}")
    forked = ForkResult(wanted=design.list_runs())
    await run_fork(
        session,
        design,
        forked,
        lambda each: setting.launch(f"{each.condition}-{each.rep}"),
        store.tapes,
        progress=lambda what: progress(f"  {what}"),
    )
    return judge_fork(design.fork_point, forked)
