"""Scenarios, once all that they say is known to be possible, and how one is run.

The agent is recorded once, in the scenario's world or against a recording that is there already,
and the recording is forked at the first call that is struck.
"""

import json
import re
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from faults import bind
from faults.query import paths
from faults.reading import fault
from replay.rules import bind as bind_rule
from scenarios.file import Practice, Scenario, find
from scenarios.file import read as read_file
from scenarios.practice import model, provider, server, world
from scenarios.practice.schema import example
from scenarios.practice.tasks import EVERY
from scenarios.practice.tools import TOOLS
from scenarios.table import ScenarioError
from scenarios.world import World
from stumble.demo import PracticeWorld
from stumble.forks import Design, Forked, branch, fork
from stumble.home import new_id
from stumble.launch import WarmRun, warm
from stumble.recording import record
from stumble.runs import Hosts, Labels, Launch
from stumble.theatre import Theatre
from stumble.verdicts import Findings, findings
from stumble.workspaces import Workspace
from traces.model import Fault
from traces.nearest import nearest
from traces.store import Store
from traces.tape import Tape, read

MOST_STEPS = 120
"""Steps that the practice agent may take, so that a struck run can be twice as long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A scenario with its faults, all of which can be."""

    scenario: Scenario
    faults: tuple[Fault, ...]

    def aimed(self, where: Mapping[str, str]) -> "Scene":
        """The same at other calls, as for an agent whose tools have other names."""
        faults = tuple(replace(f, where={**f.where, **where}) for f in self.faults)
        for each in faults:
            bind(each)
        return replace(self, faults=faults)


def scene(name: str, instead: Sequence[Fault] = ()) -> Scene:
    """The scenario of a name or path; LookupError or ScenarioError where there is none that can be.

    What a fault, a rule or a practice task gets wrong is said with file, key and nearest name.
    Where faults are given they are instead of its own, which may be none then.
    """
    said = read_file(find(name))
    if not said.faults and not instead and said.benchmark is None:
        raise ScenarioError(said.path, "faults", "there is none; say at least one [[faults]]")
    for number, rule in enumerate(said.rules):
        try:
            bind_rule(rule)
        except ValueError as error:
            raise ScenarioError(said.path, f"match.rules[{number}]", str(error)) from None
    own = tuple(_fault(said.path, n, table) for n, table in enumerate(said.faults))
    faults = tuple(instead) or own
    if said.practice is not None:
        _practice(said.path, said.practice)
        for number, each in enumerate(own):
            _aimed(said.path, f"faults[{number}]", each)
    return Scene(scenario=said, faults=faults)


def _fault(path: Path, number: int, table: Mapping[str, object]) -> Fault:
    try:
        return fault(table)
    except ValueError as error:
        raise ScenarioError(path, f"faults[{number}]", str(error)) from None


def _practice(path: Path, practice: Practice) -> None:
    if practice.task not in EVERY:
        why = f"no task is called {practice.task!r}{nearest(practice.task, EVERY)}"
        raise ScenarioError(path, "practice.task", why)
    if model.skill(practice.model) is None:
        why = f"no model is called {practice.model!r}, as practice/naive or practice/p=0.7"
        raise ScenarioError(path, "practice.model", why)


def _aimed(path: Path, key: str, fault: Fault) -> None:
    """ScenarioError where no tool of the practice world, or no part of a result, is meant."""
    glob = fault.where.get("tool", "*")
    tools = [tool for tool in TOOLS.values() if fnmatchcase(tool.name, glob)]
    if not tools:
        why = f"no tool of the practice world is called {glob!r}{nearest(glob, TOOLS)}"
        raise ScenarioError(path, f"{key}.where.tool", why)
    part = str(fault.params.get("path") or "$")
    if re.search(r"[?:]|\[-?\d", part):  # which items there are is known when they are there
        return
    if not any(paths(part, json.dumps(example(tool.returns))) for tool in tools):
        names = ", ".join(tool.name for tool in tools)
        raise ScenarioError(path, f"{key}.path", f"{part!r} fits nothing that {names} returns")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Where a scenario is run: whose agent, in which world."""

    hosts: Hosts
    world: World | None
    launch: Callable[[str], Launch]
    """Of the run of that name."""
    labels: Labels


@asynccontextmanager
async def practising(said: Scenario, practice: Practice, folder: Path) -> AsyncIterator[Setting]:
    """The practice world, with its agent warm; all of it ends with the block."""
    book, output = folder / "shop.db", folder / "agent.log"
    world.setup(book, EVERY[practice.task])
    local = ("--db", str(book)) if practice.tools == "local" else ()
    skill = ("--model", practice.model, "--max-steps", str(MOST_STEPS))
    stream = ("--stream",) if practice.stream else ()
    argv = (practice.task, *skill, "--tools", practice.tools, *local, *stream)
    async with (
        server.serving(book) as shop,
        provider.serving() as asked,
        _over_mcp(book, practice) as mcp,
        warm("scenarios.practice.agent") as agent,
    ):
        ports = {"shop.practice": shop, "model.practice": asked, "mcp.practice": mcp}
        hosts = {name: ("127.0.0.1", port) for name, port in ports.items() if port is not None}
        launch = WarmRun(
            process=agent,
            command=(sys.executable, "-m", "scenarios.practice.agent", *argv),
            argv=argv,
            output=output,
            budget=said.budget,
        )
        yield Setting(
            hosts=hosts,
            world=PracticeWorld(book, practice.task, hosts),
            launch=lambda name: launch,
            labels=Labels(
                agent="practice", model=practice.model, scenario=said.name, task=practice.task
            ),
        )


@asynccontextmanager
async def _over_mcp(book: Path, practice: Practice) -> AsyncIterator[int | None]:
    """The port at which the shop's tools are served over MCP, where they are wanted so."""
    if practice.tools != "mcp":
        yield None
        return
    from scenarios.practice import as_mcp

    async with as_mcp.serving(book) as port:
        yield port


async def recorded(
    told: Scene,
    setting: Setting,
    store: Store,
    *,
    ca: Path,
    scratch: Path,
    workspace: Path | None = None,
    snapshot: str | None = None,
) -> Tape:
    """The agent, once, live and struck by nothing."""
    id = new_id()
    path = store.tapes / f"{id}.tape"
    await record(
        path,
        setting.launch("recording"),
        id=id,
        ca=ca,
        scratch=scratch,
        hosts=setting.hosts,
        world=setting.world,
        labels=setting.labels,
        tools=told.scenario.tools,
        equivalent=told.scenario.equivalent,
        rules=told.scenario.rules,
        workspace=workspace,
        snapshot=snapshot,
    )
    return read(path)


async def struck(
    told: Scene,
    setting: Setting,
    recording: Tape,
    house: Theatre,
    store: Store,
    *,
    seed: int,
    twins: int,
    workspace: Workspace | None = None,
    progress: Callable[[str], object] = lambda what: None,
) -> Findings:
    """The recording forked at the first call that is struck; LookupError where there is none."""
    design = Design(
        found=branch(recording, told.faults, seed=seed),
        twins=twins,
        world=setting.world,
        seed=seed,
        workspace=workspace,
    )
    progress(f"striking {design.found.describe()}")
    forked = Forked(wanted=design.continuations())
    await fork(
        house,
        design,
        forked,
        lambda each: setting.launch(f"{each.condition}-{each.rep}"),
        store.tapes,
        progress=lambda what: progress(f"  {what}"),
    )
    return findings(design.found, forked)
