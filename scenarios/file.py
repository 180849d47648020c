"""A scenario: a task, an agent, its tools and world, and what is to go wrong; one TOML file.

    title = "The refund is paid, and the answer is lost"
    about = "What happened to whom, and what a good agent does about it."
    command = "python my_agent.py"              the agent; left out where others bring theirs
    task = "refund"                             what the store calls it; agent and model likewise
    seed = 7                                    twins, budget (seconds) and seed of its runs

    benchmark = "tasks/fix-ledger"              a task that brings its own world, in its place

    [world]                                     two commands: one sets it back, one exits 0 where
    reset = "python reset_shop.py"              the end state is right
    verify = "python check_shop.py"
    state = "python dump_shop.py"               without verify: prints the end state, to be compared
                                                with those of clean twins; leaves out what varies
    answer = "refunded 48[.]15"                 without both: what the last answer must hold

    [tools]                                     which requests a tool makes
    issue_refund = "POST */refunds"

    [equivalent]                                which other tools say what a tool says: asking
    get_order = ["find_order"]                  one of them is a sign that the agent noticed

    [practice]                                  how it is run in the practice world
    task = "refund-1"
    model = "practice/naive"
    tools = "http"                              or mcp, local
    stream = true                               the model's answers come as streams

    [match]                                     what may differ from a recording
    rules = ["ignore:body.run_id"]

    [[faults]]                                  as many as are to strike, in the words of --fault
    fault = "lost_ack"
    where = { tool = "issue_refund" }

A file is read into plain values. What faults and rules say is checked by the rooms that know them.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from scenarios.benchmarks import harbor, tau
from scenarios.benchmarks.stage import Benchmark
from scenarios.table import ScenarioError, Table, document
from traces.nearest import nearest

LIBRARY = Path(__file__).parent / "library"

type Tools = Literal["http", "mcp", "local"]
TOOLS: tuple[Tools, ...] = ("http", "mcp", "local")


@dataclass(frozen=True, slots=True, kw_only=True)
class Practice:
    """How a scenario is run in the practice world."""

    task: str
    model: str
    tools: Tools
    stream: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What a scenario file says."""

    path: Path
    title: str
    about: str = ""
    command: tuple[str, ...] = ()
    agent: str | None = None
    model: str | None = None
    task: str | None = None
    seed: int = 0
    twins: int = 3
    budget: float = 600.0
    reset: str | None = None
    verify: str | None = None
    state: str | None = None
    answer: str | None = None
    """A regular expression."""
    tools: Mapping[str, str] = field(default_factory=dict)
    equivalent: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    practice: Practice | None = None
    rules: tuple[str, ...] = ()
    """Of [match], as in `replay.rules`, not looked at yet."""
    faults: tuple[Mapping[str, object], ...] = ()
    """As in `faults.grammar`, not looked at yet."""
    benchmark: Benchmark | None = None
    """The task of a benchmark that it is about, which brings its own world."""

    @property
    def name(self) -> str:
        """By which it is asked for."""
        return self.path.stem


def library() -> tuple[Path, ...]:
    """The ready scenarios, by name."""
    return tuple(sorted(LIBRARY.glob("*.toml")))


def find(name: str) -> Path:
    """The file of a ready scenario, or that at a path, or the folder of a benchmark's task.

    LookupError where there is none of them.
    """
    folder = Path(name.partition("#")[0])
    if folder.is_dir() and (os.sep in name or is_task(folder)):
        return Path(name)
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise LookupError(f"{name}: there is no such file")
        return path
    if os.sep in name:
        raise LookupError(f"{name}: there is no such file or folder")
    ready = {path.stem: path for path in library()}
    if name not in ready:
        raise LookupError(f"no scenario is called {name!r}{nearest(name, ready)}")
    return ready[name]


def read(path: Path) -> Scenario:
    """The scenario of a file; ScenarioError, with key and nearest name, where it says none."""
    if path.is_dir() or "#" in path.name:
        return _brought(path)
    said = document(path)
    top = Table(path, "", said)
    top.only(
        "title about command agent model task seed twins budget benchmark world tools "
        "equivalent practice match faults"
    )
    world, match = top.table("world"), top.table("match")
    world.only("reset verify state answer")
    match.only("rules")
    for key in ("verify", "state", "answer"):
        if world.text(key) and not world.text("reset"):
            raise world.wrong(key, "needs reset: a used world proves nothing")
    tools, equivalent = top.table("tools"), top.table("equivalent")
    brought = None
    if folder := top.text("benchmark"):
        for key in ("world", "practice"):
            if key in said:
                raise top.wrong(key, "a benchmark brings its own world")
        brought = task(path.parent / folder)
    return Scenario(
        path=path,
        title=top.text("title") or path.stem,
        about=(top.text("about") or "").strip(),
        command=top.words("command"),
        agent=top.text("agent"),
        model=top.text("model"),
        task=top.text("task") or (brought.name if brought else None),
        seed=top.whole("seed", 0, 0),
        twins=top.whole("twins", 3, 0),
        budget=top.seconds("budget", (brought and brought.budget) or 600.0),
        reset=world.text("reset"),
        verify=world.text("verify"),
        state=world.text("state"),
        answer=world.pattern("answer"),
        tools={name: tools.requests(name) for name in tools.said},
        equivalent={name: equivalent.texts(name) for name in equivalent.said},
        practice=_practice(top.table("practice")) if "practice" in said else None,
        rules=match.texts("rules"),
        faults=top.tables("faults"),
        benchmark=brought,
    )


def is_task(folder: Path) -> bool:
    """Whether a folder holds a task of a benchmark."""
    return harbor.is_one(folder) or tau.is_one(folder)


def task(path: Path) -> Benchmark:
    """The task of a benchmark at DIR, or DIR#ID; ScenarioError where none can be had."""
    folder, id = path.parent / path.name.partition("#")[0], path.name.partition("#")[2]
    if tau.is_one(folder):
        return tau.read(folder, id)
    if harbor.is_one(folder) and not id:
        return harbor.read(folder)
    raise ScenarioError(path, "", "it holds no task: there is no task.toml, and no tasks.json")


def _brought(path: Path) -> Scenario:
    found = task(path)
    return Scenario(
        path=path.resolve(),
        title=f"A task of the form of {found.form}",
        about=found.instruction,
        task=found.name,
        budget=found.budget or 600.0,
        benchmark=found,
    )


def _practice(table: Table) -> Practice:
    table.only("task model tools stream")
    tools = table.text("tools") or "http"
    for known in TOOLS:
        if tools == known:
            model = table.text("model") or "practice/naive"
            task, stream = table.needed("task"), table.true("stream")
            return Practice(task=task, model=model, tools=known, stream=stream)
    raise table.wrong("tools", f"{tools!r} cannot be had{nearest(tools, TOOLS)}")
