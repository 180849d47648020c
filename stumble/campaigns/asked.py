"""What a campaign wants, read from a table: a TOML file, or the options of a command line.

    title = "What our refund agent does with a broken shop"
    traces = ["refund.tape", "lost-ack-on-refund"]   tapes, or scenarios, which are recorded first
    persist = ["once", "same_args"]                  every fault is tried with each
    seeds = "1..5"                                   or a list of whole numbers
    reps = 2                                         faulted runs of each fault at each site
    twins = 3                                        clean runs at each site: 3 or more, or 0
    shams = 1
    budget = 600                                     seconds that one run may take
    max_cost = 5.0                                   US dollars that all runs may cost
    command = "python my_agent.py"                   left out where the tapes name it
    agent = "mine"                                   what it is called

    [world]                                          as in a scenario
    reset = "python reset_shop.py"                   one run at a time uses it, unless the command
    verify = "python check_shop.py"                  names {workspace}, the folder of the run; or
                                                     state, which prints the end state
    instances = 2                                    how many such worlds there are: {slot} in the
    port = 8901                                      commands is 0, 1, ..., {port} is 8901, 8902

    [hosts]                                          where a host of this name really is
    shop = "127.0.0.1:8901"                          or 127.0.0.1:{port}

    [practice]                                       tasks of the practice world, each by each model
    tasks = ["refund-1", "reorder-2"]
    models = ["practice/naive", "practice/p=0.7"]
    tools = "http"
    max_steps = 120                                  steps that the practice agent may take
    log = "noticed"                                  a folder: what the model noticed

    [[faults]]                                       as in a scenario; without any, the default
    fault = "http_status:code=503"
    where = { tool = "issue_refund" }

A fault that does not say where it strikes is placed by chance: at one of the calls that it can
strike, each with the same chance, drawn from the seed.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from faults.plugins import find as find_operator
from faults.reading import fault as read_fault
from faults.when import persist as read_persist
from scenarios.file import Practice, Scenario, find
from scenarios.file import read as read_scenario
from scenarios.practice import model
from scenarios.practice.tasks import EVERY
from scenarios.table import ScenarioError, Table
from stumble.exclusions import check_twins
from stumble.runs import Hosts
from stumble.scenes import MOST_STEPS
from traces.model import Fault
from traces.nearest import nearest

KEYS = (
    "title name agent traces persist seeds reps twins shams budget max_cost command world hosts "
    "practice faults pin in_place"
)
DEFAULT = ["T2", "T3", "E1", "E4", "E5", "S1", "S2", "S3", "S5", "V1", "V2", "V4", "V7", "X1", "X2"]
"""The operators of a campaign that names none, by their codes."""
PARAMS: Mapping[str, str] = {"T2": ":cap_ms=1000"}
"""What they are given; a call that hangs for a minute says no more than one that hangs a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where one trace comes from: a tape, or the practice world, or an agent in its own world."""

    name: str
    tape: Path | None = None
    practice: Practice | None = None
    scenario: str | None = None
    command: tuple[str, ...] = ()
    """The agent; empty for the one that the tape names, or for the practice agent."""
    tools: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """What finds its recording among the runs of the campaign: task and model."""
        return self.name, self.practice.model if self.practice else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """All that is wanted; ValueError or LookupError, before anything runs, where it cannot be."""

    name: str
    sources: tuple[Source, ...]
    faults: tuple[Fault, ...]
    title: str = ""
    agent: str | None = None
    """What the user's own agent is called."""
    seeds: tuple[int, ...] = (0,)
    reps: int = 1
    twins: int = 3
    shams: int = 1
    budget: float = 600.0
    max_cost: float | None = None
    reset: str | None = None
    verify: str | None = None
    state: str | None = None
    instances: int = 1
    """How many worlds there are to reset; a run has one of them to itself."""
    port: int | None = None
    """Of the first world; those that follow have the next ones."""
    hosts: Hosts = field(default_factory=dict)
    ported: Mapping[str, str] = field(default_factory=dict)
    """Hosts that are at the port of the world of the run, by their name."""
    pin: bool = False
    in_place: bool = False
    max_steps: int = MOST_STEPS
    """Steps that the practice agent may take."""
    log: Path | None = None
    """A folder in which the practice model says what it noticed."""

    def filled(self, slot: int) -> Mapping[str, str]:
        """What stands in the place of `{slot}` and `{port}` in the world of this number."""
        port = {} if self.port is None else {"port": str(self.port + slot)}
        return {"slot": str(slot)} | port

    def hosts_of(self, slot: int) -> Hosts:
        """Where hosts are for runs in the world of this number."""
        port = (self.port or 0) + slot
        return dict(self.hosts) | {name: (host, port) for name, host in self.ported.items()}

    @property
    def practises(self) -> bool:
        """Whether any of it is done in the practice world."""
        return any(source.practice for source in self.sources)


def campaign(said: Mapping[str, object], path: Path) -> Campaign:
    """The campaign of a table that was said in this file; what it names lies beside that."""
    top = Table(path, "", said)
    top.only(KEYS)
    world, hosts, practice = top.table("world"), top.table("hosts"), top.table("practice")
    world.only("reset verify state instances port")
    practice.only("tasks models tools max_steps log")
    for key in ("verify", "state"):
        if world.text(key) and not world.text("reset"):
            raise world.wrong(key, "needs reset: a used world proves nothing")
    scenarios = [_scenario(top, text) for text in top.texts("traces") if not _is_tape(text)]
    command, own = top.words("command"), _world(top, world, scenarios)
    sources = (
        *(_tape(top, path, text, command) for text in top.texts("traces") if _is_tape(text)),
        *(_told(each, command) for each in scenarios),
        *_practised(practice, command),
    )
    if not sources:
        raise ScenarioError(path, "traces", "none: name tapes or scenarios, or [practice] tasks")
    return Campaign(
        name=_name(top),
        title=top.text("title") or "",
        agent=top.text("agent"),
        sources=_apart(sources),
        faults=_faults(top, scenarios),
        seeds=_seeds(top),
        reps=top.whole("reps", 1, 1),
        twins=_twins(top),
        shams=top.whole("shams", 1, 0),
        budget=top.seconds("budget", 600.0),
        max_cost=top.seconds("max_cost", 0) if "max_cost" in said else None,
        reset=own[0],
        verify=own[1],
        state=world.text("state") or next((each.state for each in scenarios if each.state), None),
        instances=_instances(world),
        port=world.whole("port", 0, 1) if "port" in world.said else None,
        hosts={name: _address(hosts, name) for name in hosts.said if not _is_ported(hosts, name)},
        ported={
            name: _ported(world, hosts, name) for name in hosts.said if _is_ported(hosts, name)
        },
        pin=top.true("pin"),
        in_place=top.true("in_place"),
        max_steps=practice.whole("max_steps", MOST_STEPS, 1),
        log=_beside(path, text) if (text := practice.text("log")) else None,
    )


def surroundings(campaign: Campaign) -> str:
    """What names all that its runs have in common: runs with another one are not pooled with it.

    Traces, faults, seeds and repetitions may be added to a campaign later: each run says its own.
    """
    commands = sorted({source.command for source in campaign.sources if source.command})
    common = [
        commands,
        campaign.reset,
        campaign.verify,
        sorted(campaign.hosts.items()),
        campaign.budget,
        campaign.pin,
        campaign.in_place,
        campaign.max_steps,
        *([campaign.state] if campaign.state else []),  # without it the name stays what it was
        *([sorted(campaign.ported.items())] if campaign.ported else []),
        sorted({source.practice.tools for source in campaign.sources if source.practice}),
    ]
    return hashlib.sha256(json.dumps(common).encode()).hexdigest()[:16]


def _name(top: Table) -> str:
    """A name that can be a folder's, is not an option and needs no quotes in SQL."""
    name = top.text("name")
    if name is None:
        digest = hashlib.sha256(json.dumps(top.said, sort_keys=True, default=str).encode())
        return f"campaign-{digest.hexdigest()[:8]}"
    if re.fullmatch(r"[\w][\w .+@=-]*", name) is None:
        raise top.wrong("name", f"{name!r}: letters, digits, spaces, '_', '.', '-' and '+@='")
    return name


def _twins(top: Table) -> int:
    found = top.whole("twins", 3, 0)
    try:
        check_twins(found)
    except ValueError as error:
        raise top.wrong("twins", str(error)) from None
    return found


def _world(top: Table, said: Table, scenarios: Sequence[Scenario]) -> tuple[str | None, str | None]:
    """What sets the world back and what judges it, said here or by the scenarios."""
    if said.text("reset"):
        return said.text("reset"), said.text("verify")
    worlds = {(each.reset, each.verify) for each in scenarios if each.reset}
    if len(worlds) > 1:
        raise top.wrong("traces", "scenarios with worlds of their own: a campaign has one [world]")
    return next(iter(worlds), (None, None))


def _is_tape(text: str) -> bool:
    return text.endswith(".tape")


def _beside(path: Path, text: str) -> Path:
    return (path.parent / text).absolute()


def _tape(top: Table, file: Path, text: str, command: tuple[str, ...]) -> Source:
    path = _beside(file, text)
    if not path.is_file():
        raise top.wrong("traces", f"{path}: there is no such tape")
    return Source(name=path.stem, tape=path, command=command)


def _scenario(top: Table, text: str) -> Scenario:
    try:
        return read_scenario(find(text))
    except LookupError as error:
        raise top.wrong("traces", str(error.args[0])) from None


def _told(said: Scenario, command: tuple[str, ...]) -> Source:
    command = command or said.command
    if said.practice is None and not command:
        raise ScenarioError(said.path, "", "it is not for the practice world: say command")
    return Source(
        name=said.task or said.name,
        practice=None if command else said.practice,
        scenario=said.name,
        command=command,
        tools=said.tools,
        rules=said.rules,
    )


def _practised(table: Table, command: tuple[str, ...]) -> tuple[Source, ...]:
    models, tasks = table.texts("models"), table.texts("tasks")
    if "tasks" in table.said and not models:
        raise table.wrong("models", "is missing")
    tools = table.text("tools") or "http"
    if tools not in ("http", "mcp", "local"):
        raise table.wrong("tools", f"{tools!r} cannot be had")
    for task in tasks:
        if task not in EVERY:
            raise table.wrong("tasks", f"no task is called {task!r}{nearest(task, EVERY)}")
    for name in models:
        if name.startswith("practice/") and model.skill(name) is None:
            raise table.wrong("models", f"no model is called {name!r}, as practice/p=0.7")
    return tuple(
        Source(
            name=task,
            practice=Practice(task=task, model=name, tools=tools),  # type: ignore[arg-type]
            command=command,
        )
        for name in models
        for task in tasks
    )


def _apart(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    """The sources, those of one name told apart by a number."""
    found: list[Source] = []
    for source in sources:
        alike = sum(other.key == source.key for other in found)
        found.append(replace(source, name=f"{source.name}-{alike + 1}") if alike else source)
    return tuple(found)


def _faults(top: Table, scenarios: list[Scenario]) -> tuple[Fault, ...]:
    """Every fault with each persistence; one that says its own has that alone."""
    tables: list[Mapping[str, object]] = list(top.tables("faults"))
    tables = tables or [table for each in scenarios for table in each.faults]
    tables = tables or list(default_faults())
    persists = top.texts("persist") or ("once",)
    for number, text in enumerate(persists):
        try:
            read_persist(Fault(name="sham", persist=text))
        except ValueError as error:
            raise top.wrong(f"persist[{number}]", str(error)) from None
    found: list[Fault] = []
    for number, table in enumerate(tables):
        try:
            each = read_fault(table)
            own = (each.persist,) if "persist" in table else persists
            wanted = [replace(each, persist=text) for text in own]
        except ValueError as error:
            raise top.wrong(f"faults[{number}]", str(error)) from None
        found += [fault for fault in wanted if fault not in found]
    return tuple(found)


def default_faults() -> list[Mapping[str, object]]:
    """One fault of each operator that a campaign tries without being told."""
    found = {code: find_operator(code) for code in DEFAULT}
    return [{"fault": each.name + PARAMS.get(code, "")} for code, each in found.items()]


def _seeds(top: Table) -> tuple[int, ...]:
    said = top.said.get("seeds", [0])
    if isinstance(said, str):
        first, dots, last = said.partition("..")
        if not dots or not first.isdecimal() or not last.isdecimal() or int(first) > int(last):
            raise top.wrong("seeds", f"{said!r} is not FIRST..LAST")
        return tuple(range(int(first), int(last) + 1))
    if not isinstance(said, list) or not said:
        raise top.wrong("seeds", f'{said!r} is not a list of whole numbers, nor "1..5"')
    for seed in said:
        if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
            raise top.wrong("seeds", f"{seed!r} is not a whole number from 0")
    return tuple(dict.fromkeys(said))


def _instances(world: Table) -> int:
    count = world.whole("instances", 1, 1)
    reset = world.text("reset") or ""
    if count > 1 and "{slot}" not in reset and "{port}" not in reset:
        raise world.wrong("instances", f"{count} worlds, and reset names no {{slot}} or {{port}}")
    if "{port}" in reset and "port" not in world.said:
        raise world.wrong("port", "is missing, and reset names {port}")
    return count


def _is_ported(hosts: Table, name: str) -> bool:
    return hosts.needed(name).endswith(":{port}")


def _ported(world: Table, hosts: Table, name: str) -> str:
    if "port" not in world.said:
        raise hosts.wrong(name, "names {port}, and [world] has no port")
    return hosts.needed(name).removesuffix(":{port}")


def _address(table: Table, name: str) -> tuple[str, int]:
    host, _, port = table.needed(name).rpartition(":")
    if not host or not port.isdecimal():
        raise table.wrong(name, "is not HOST:PORT")
    return host, int(port)
