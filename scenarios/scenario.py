"""Scenario files: a task, an agent, its tools, a world and the faults to inject, in one TOML file.

    title = "The refund is paid, and the answer is lost"
    about = "What happened, and what a good agent does about it."
    command = "python my_agent.py"              the agent; omit it to run any agent
    task = "refund"                             its name in the store; agent and model likewise
    seed = 7                                    of its runs; also twins and budget (seconds)

    benchmark = "tasks/fix-ledger"              a benchmark task, used in place of [world]

    [world]
    reset = "python reset_shop.py"              restores the start state
    verify = "python check_shop.py"             exits 0 if the end state is right
    state = "python dump_shop.py"               without verify: prints the end state, which is
                                                compared with clean twins; omit varying values
    answer = "refunded 48[.]15"                 without both: regex to find in the last answer

    [effects]                                   facts beside the verdict: what was done twice
    ledger = "python list_payments.py"          prints the committed effects as JSON; or an
    key = ["order_id", "amount"]                address; members that identify an effect

    [tools]                                     route pattern of each tool
    issue_refund = "POST */refunds"

    [equivalent]                                other tools that return the same facts: a call of
    get_order = ["find_order"]                  one of them is a sign of detection

    [practice]                                  settings for the practice world
    task = "refund-1"
    model = "practice/naive"
    tools = "http"                              or mcp, local
    stream = true                               stream the model's answers

    [match]                                     differences to ignore when replaying
    rules = ["ignore:body.run_id"]

    [[faults]]                                  any number, with the values that --fault takes
    fault = "lost_ack"
    where = { tool = "issue_refund" }

A file is parsed into plain values. Faults and rules are validated by `faults` and `replay`.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct, field

from scenarios.benchmarks import harbor, tau2
from scenarios.benchmarks.protocol import BenchmarkTask
from scenarios.toml_reader import ScenarioError, TypedTable, read_toml_document
from traces.did_you_mean import suggest_nearest_name

LIBRARY = Path(__file__).parent / "library"

type ToolTransport = Literal["http", "mcp", "local"]
TOOL_TRANSPORTS: tuple[ToolTransport, ...] = ("http", "mcp", "local")


class PracticeSettings(Struct, frozen=True, kw_only=True):
    """Settings for running a scenario in the practice world."""

    task: str
    model: str
    tools: ToolTransport
    stream: bool = False


class Scenario(Struct, frozen=True, kw_only=True):
    """The parsed contents of a scenario file."""

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
    ledger: str | None = None
    """Lists committed effects: a command or an HTTP address."""
    ledger_key: tuple[str, ...] = ()
    tools: Mapping[str, str] = field(default_factory=dict)
    equivalent: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    practice: PracticeSettings | None = None
    rules: tuple[str, ...] = ()
    """Rules of [match], as in `replay.matching.rules`, not validated yet."""
    faults: tuple[Mapping[str, object], ...] = ()
    """Faults as in `faults.specs.spec_syntax`, not validated yet."""
    benchmark: BenchmarkTask | None = None
    """The benchmark task that the scenario runs; it provides its own world."""

    @property
    def name(self) -> str:
        """The name to select it by."""
        return self.path.stem


def list_ready_scenarios() -> tuple[Path, ...]:
    """Return the paths of the packaged scenarios, sorted by name."""
    return tuple(sorted(LIBRARY.glob("*.toml")))


def find_scenario(name: str) -> Path:
    """Return the path of a packaged scenario, a scenario file or a benchmark task's folder.

    Raises LookupError if `name` is none of them.
    """
    folder = Path(name.partition("#")[0])
    if folder.is_dir() and (os.sep in name or is_benchmark_task(folder)):
        return Path(name)
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise LookupError(f"{name}: there is no such file")
        return path
    if os.sep in name:
        raise LookupError(f"{name}: there is no such file or folder")
    ready = {path.stem: path for path in list_ready_scenarios()}
    if name not in ready:
        raise LookupError(f"no scenario is called {name!r}{suggest_nearest_name(name, ready)}")
    return ready[name]


def read_scenario(path: Path) -> Scenario:
    """Parse a scenario file. Raises ScenarioError with the key and a suggestion if it is
    invalid.
    """
    if path.is_dir() or "#" in path.name:
        return _read_benchmark_scenario(path)
    document = read_toml_document(path)
    top = TypedTable(path, "", document)
    top.allow_only(
        "title about command agent model task seed twins budget benchmark world effects tools "
        "equivalent practice match faults"
    )
    world, match = top.get_table("world"), top.get_table("match")
    world.allow_only("reset verify state answer")
    match.allow_only("rules")
    ledger, ledger_key = read_effects_table(top, world)
    tools, equivalent = top.get_table("tools"), top.get_table("equivalent")
    benchmark_task = None
    if folder := top.get_text("benchmark"):
        for key in ("world", "effects", "practice"):
            if key in document:
                raise top.make_error(key, "a benchmark brings its own world")
        benchmark_task = read_benchmark_task(path.parent / folder)
    return Scenario(
        path=path,
        title=top.get_text("title") or path.stem,
        about=(top.get_text("about") or "").strip(),
        command=top.get_command("command"),
        agent=top.get_text("agent"),
        model=top.get_text("model"),
        task=top.get_text("task") or (benchmark_task.name if benchmark_task else None),
        seed=top.get_int("seed", 0, 0),
        twins=top.get_int("twins", 3, 0),
        budget=top.get_seconds("budget", (benchmark_task and benchmark_task.budget) or 600.0),
        reset=world.get_text("reset"),
        verify=world.get_text("verify"),
        state=world.get_text("state"),
        answer=world.get_pattern("answer"),
        ledger=ledger,
        ledger_key=ledger_key,
        tools={name: tools.get_route_pattern(name) for name in tools.entries},
        equivalent={name: equivalent.get_texts(name) for name in equivalent.entries},
        practice=_parse_practice_settings(top.get_table("practice"))
        if "practice" in document
        else None,
        rules=match.get_texts("rules"),
        faults=top.get_mappings("faults"),
        benchmark=benchmark_task,
    )


def read_effects_table(top: TypedTable, world: TypedTable) -> tuple[str | None, tuple[str, ...]]:
    """Return ledger and key of the table [effects]; a ledger needs a world that is reset."""
    effects = top.get_table("effects")
    effects.allow_only("ledger key")
    ledger, key = effects.get_text("ledger"), effects.get_texts("key")
    if effects.entries and ledger is None:
        raise effects.make_error("ledger", "is missing: it lists the committed effects")
    if ledger and not world.get_text("reset"):
        raise effects.make_error("ledger", "needs reset in [world]: a used ledger proves nothing")
    return ledger, key


def is_benchmark_task(folder: Path) -> bool:
    """Return whether a folder holds a benchmark task."""
    return harbor.is_harbor_task(folder) or tau2.is_tau2_domain(folder)


def read_benchmark_task(path: Path) -> BenchmarkTask:
    """Return the benchmark task at DIR or DIR#ID. Raises ScenarioError if there is no such task."""
    folder, id = path.parent / path.name.partition("#")[0], path.name.partition("#")[2]
    if tau2.is_tau2_domain(folder):
        return tau2.read_tau2_task(folder, id)
    if harbor.is_harbor_task(folder) and not id:
        return harbor.read_harbor_task(folder)
    raise ScenarioError(path, "", "it holds no task: there is no task.toml, and no tasks.json")


def _read_benchmark_scenario(path: Path) -> Scenario:
    task = read_benchmark_task(path)
    return Scenario(
        path=path.resolve(),
        title=f"A task of the form of {task.benchmark_format}",
        about=task.instruction,
        task=task.name,
        budget=task.budget or 600.0,
        benchmark=task,
    )


def _parse_practice_settings(table: TypedTable) -> PracticeSettings:
    table.allow_only("task model tools stream")
    tools = table.get_text("tools") or "http"
    for known in TOOL_TRANSPORTS:
        if tools == known:
            model = table.get_text("model") or "practice/naive"
            task, stream = table.require_text("task"), table.get_bool("stream")
            return PracticeSettings(task=task, model=model, tools=known, stream=stream)
    raise table.make_error(
        "tools", f"{tools!r} cannot be had{suggest_nearest_name(tools, TOOL_TRANSPORTS)}"
    )
