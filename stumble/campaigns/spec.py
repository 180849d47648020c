"""The specification of a campaign, from a table: a TOML file or command-line options.

    title = "What our refund agent does with a broken shop"
    traces = ["refund.tape", "lost-ack-on-refund"]   tapes, or scenarios to be recorded first
    persist = ["once", "same_args"]                  every fault is combined with each
    seeds = "1..5"                                   or a list of integers
    reps = 2                                         faulted runs of each fault at each site
    twins = 3                                        clean runs at each site: 3 or more, or 0
    shams = 1
    budget = 600                                     time limit of one run in seconds
    max_cost = 5.0                                   cost limit of all runs in US dollars
    max_time = 36000                                 limit of all runs' seconds, added up
    command = "python my_agent.py"                   omitted if the tapes have it
    agent = "mine"                                   its name
    models = ["gpt-5-mini", "anthropic:NAME"]        each run goes on with each, after the injection

    [world]                                          as in a scenario
    reset = "python reset_shop.py"                   one run at a time uses it, unless the command
    verify = "python check_shop.py"                  names {workspace}, the folder of the run; or
                                                     state, a command that prints the end state
    observed = true                                  without verify and state: judge by files
                                                     left, writes sent and the final answer
    instances = 2                                    number of such worlds: {slot} in the
    port = 8901                                      commands is 0, 1, ..., {port} is 8901, 8902

    [effects]                                        as in a scenario
    ledger = "python list_payments.py"
    key = ["order_id", "amount"]

    [hosts]                                          real address of a host
    shop = "127.0.0.1:8901"                          or 127.0.0.1:{port}

    [tls]                                            which servers the runs trust, as in a fork
    insecure = ["shop"]                              hosts whose certificates are not verified
    ca = "shop-ca.pem"                               more authorities
    client_cert = "me.pem"                           a certificate and its key

    [practice]                                       tasks of the practice world, each by each model
    tasks = ["refund-1", "reorder-2"]
    models = ["practice/naive", "practice/p=0.7"]
    tools = "http"
    max_steps = 120                                  most steps of the practice agent
    options = ["--policy", "retries"]                more options of the practice agent
    log = "noticed"                                  a folder for the log of notices

    [[faults]]                                       as in a scenario; without any, the default
    fault = "http_status:code=503"
    where = { tool = "issue_refund" }

A fault without a site is placed at random at one of the calls that it can change, each with the
same probability, drawn from the seed.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from copy import replace
from pathlib import Path

from msgspec import Struct, field

from faults.plugins import find_operator
from faults.specs.spec_parser import parse_fault
from faults.targeting.triggers import parse_persistence
from scenarios.practice import scripted_model
from scenarios.practice.tasks.registry import ALL_TASKS
from scenarios.scenario import (
    PracticeSettings,
    Scenario,
    find_scenario,
    read_effects_table,
    read_scenario,
)
from scenarios.toml_reader import ScenarioError, TypedTable
from stumble.campaigns.shards import CampaignShard
from stumble.llm.model_choice import ModelChoice
from stumble.packs.pack_cache import open_packed_files
from stumble.packs.read_pack import is_pack
from stumble.packs.tape_patterns import find_tapes, is_tape_name
from stumble.runs.environment.upstream_trust import NO_MORE_TRUST, UpstreamTrust
from stumble.runs.environment.worlds import FRESH_COPY_RESET
from stumble.runs.scenario_runner import MAX_AGENT_STEPS
from stumble.runs.types import Hosts
from stumble.verdicts.exclusions import check_twins
from traces.did_you_mean import suggest_nearest_name
from traces.model import Fault

CAMPAIGN_KEYS = (
    "title name agent models traces persist seeds reps twins shams budget max_cost max_time "
    "command world effects hosts tls practice faults pin in_place writable seal"
)
DEFAULT_OPERATOR_CODES = [
    "T2",
    "T3",
    "E1",
    "E4",
    "E5",
    "S1",
    "S2",
    "S3",
    "S5",
    "V1",
    "V2",
    "V4",
    "V7",
    "X1",
    "X2",
]
"""Codes of the operators of a campaign without faults."""
DEFAULT_OPERATOR_PARAMS: Mapping[str, str] = {"T2": ":cap_ms=1000"}
"""Their parameters; a call that hangs a minute shows no more than one that hangs a second."""


class TraceSource(Struct, frozen=True, kw_only=True):
    """The source of one trace: a tape, the practice world, or an agent in its own world."""

    name: str
    tape: Path | None = None
    practice: PracticeSettings | None = None
    scenario: str | None = None
    command: tuple[str, ...] = ()
    """Command of the agent; empty for the one on the tape, or for the practice agent."""
    tools: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str]:
        """Task and model, the key of its recording among the runs of the campaign."""
        return self.name, self.practice.model if self.practice else ""


class Campaign(Struct, frozen=True, kw_only=True):
    """A parsed and checked campaign."""

    name: str
    sources: tuple[TraceSource, ...]
    faults: tuple[Fault, ...]
    title: str = ""
    agent: str | None = None
    """The name of the user's agent."""
    models: tuple[ModelChoice, ...] = ()
    """The models that go on after the injection; empty for the recorded one."""
    seeds: tuple[int, ...] = (0,)
    reps: int = 1
    twins: int = 3
    shams: int = 1
    budget: float = 600.0
    max_cost: float | None = None
    max_time: float | None = None
    """Limit of the seconds of all runs, added up."""
    reset: str | None = None
    verify: str | None = None
    state: str | None = None
    observed: bool = False
    """Whether runs are judged by what they did beside clean runs, if no command verifies them."""
    ledger: str | None = None
    ledger_key: tuple[str, ...] = ()
    instances: int = 1
    """Number of worlds; each is used by one run at a time."""
    port: int | None = None
    """Port of the first world; the following worlds have the next ports."""
    hosts: Hosts = field(default_factory=dict)
    ported: Mapping[str, str] = field(default_factory=dict)
    """Address by name of the hosts at the port of the run's world."""
    trust: UpstreamTrust = NO_MORE_TRUST
    pin: bool = False
    in_place: bool = False
    writable: tuple[Path, ...] = ()
    """Paths outside of the copies in which commands take effect."""
    max_steps: int = MAX_AGENT_STEPS
    """Most steps of the practice agent."""
    agent_options: tuple[str, ...] = ()
    """More options of the practice agent."""
    log: Path | None = None
    """A folder for the log of what the practice model noticed."""
    seal: str | None = None
    """The digest of the plan if it is sealed."""
    shard: CampaignShard | None = None
    """The part of it to run; None for all."""

    @property
    def own_max_cost(self) -> float | None:
        """The cost limit of this session: of a shard its share."""
        if self.max_cost is None or self.shard is None:
            return self.max_cost
        return self.max_cost / self.shard.count

    @property
    def own_max_time(self) -> float | None:
        """The time limit of this session: of a shard its share."""
        if self.max_time is None or self.shard is None:
            return self.max_time
        return self.max_time / self.shard.count

    def placeholder_values(self, slot: int) -> Mapping[str, str]:
        """Return the values of `{slot}` and `{port}` in the world of this slot."""
        port = {} if self.port is None else {"port": str(self.port + slot)}
        return {"slot": str(slot)} | port

    def hosts_in_slot(self, slot: int) -> Hosts:
        """Return the addresses of hosts for runs in the world of this slot."""
        port = (self.port or 0) + slot
        return dict(self.hosts) | {name: (host, port) for name, host in self.ported.items()}

    @property
    def uses_practice_world(self) -> bool:
        """Whether any run uses the practice world."""
        return any(source.practice for source in self.sources)


def parse_campaign(table: Mapping[str, object], path: Path) -> Campaign:
    """Parse the table of a campaign; paths are relative to the folder of this file.

    Raises ScenarioError if it is invalid.
    """
    top = TypedTable(path, "", table)
    top.allow_only(CAMPAIGN_KEYS)
    world, hosts, practice = (
        top.get_table("world"),
        top.get_table("hosts"),
        top.get_table("practice"),
    )
    world.allow_only("reset verify state observed instances port")
    practice.allow_only("tasks models tools max_steps log options")
    for key in ("verify", "state"):
        if world.get_text(key) and not world.get_text("reset") and top.get_bool("in_place"):
            raise world.make_error(key, "needs reset, or copies: a used world proves nothing")
    ledger, ledger_key = read_effects_table(top, world)
    scenarios = [
        _read_trace_scenario(top, text)
        for text in top.get_texts("traces")
        if not is_tape_name(text)
    ]
    command, world_commands = (
        top.get_command("command"),
        _read_world_commands(top, world, scenarios),
    )
    sources = (
        *(
            _make_tape_source(tape, command)
            for text in top.get_texts("traces")
            if is_tape_name(text)
            for tape in _find_tapes(top, path, text)
        ),
        *(_parse_scenario_source(each, command) for each in scenarios),
        *_parse_practice_sources(practice, command),
    )
    if not sources:
        raise ScenarioError(path, "traces", "none: name tapes or scenarios, or [practice] tasks")
    return Campaign(
        name=_read_campaign_name(top),
        title=top.get_text("title") or "",
        agent=top.get_text("agent"),
        models=_parse_models(top),
        sources=_number_duplicate_sources(sources),
        faults=_parse_campaign_faults(top, scenarios),
        seeds=_parse_seeds(top),
        reps=top.get_int("reps", 1, 1),
        twins=_read_twin_count(top),
        shams=top.get_int("shams", 1, 0),
        budget=top.get_seconds("budget", 600.0),
        max_cost=top.get_seconds("max_cost", 0) if "max_cost" in table else None,
        max_time=top.get_seconds("max_time", 0) if "max_time" in table else None,
        reset=world_commands[0],
        verify=world_commands[1],
        state=world.get_text("state")
        or next((each.state for each in scenarios if each.state), None),
        observed=world.get_bool("observed"),
        ledger=ledger or next((each.ledger for each in scenarios if each.ledger), None),
        ledger_key=ledger_key or next((each.ledger_key for each in scenarios if each.ledger), ()),
        instances=_read_world_instances(world),
        port=world.get_int("port", 0, 1) if "port" in world.entries else None,
        hosts={
            name: _parse_host_port(hosts, name)
            for name in hosts.entries
            if not _is_port_template(hosts, name)
        },
        ported={
            name: _parse_ported_host(world, hosts, name)
            for name in hosts.entries
            if _is_port_template(hosts, name)
        },
        trust=_read_trust(path, top.get_table("tls")),
        pin=top.get_bool("pin"),
        in_place=top.get_bool("in_place"),
        writable=tuple(_find_writable_path(top, path, text) for text in top.get_texts("writable")),
        max_steps=practice.get_int("max_steps", MAX_AGENT_STEPS, 1),
        agent_options=_read_agent_options(practice),
        log=_resolve_campaign_path(path, text) if (text := practice.get_text("log")) else None,
    )


def fingerprint_surroundings(campaign: Campaign) -> str:
    """Digest the settings that all runs share: runs with another digest are not pooled with them.

    Traces, faults, seeds and repetitions are stored with each run and may be added later.
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
        *([campaign.state] if campaign.state else []),  # without it the digest is as before
        *(["observed"] if campaign.observed else []),
        *([campaign.ledger, *campaign.ledger_key] if campaign.ledger else []),
        *([sorted(campaign.ported.items())] if campaign.ported else []),
        *([sorted(campaign.trust.insecure)] if campaign.trust.insecure else []),
        *([campaign.agent_options] if campaign.agent_options else []),
        *([sorted(map(str, campaign.writable))] if campaign.writable else []),
        sorted({source.practice.tools for source in campaign.sources if source.practice}),
    ]
    return hashlib.sha256(json.dumps(common).encode()).hexdigest()[:16]


def _read_trust(path: Path, tls: TypedTable) -> UpstreamTrust:
    tls.allow_only("insecure ca client_cert")
    files = dict[str, Path]()
    for key in ("ca", "client_cert"):
        if (text := tls.get_text(key)) is not None:
            files[key] = _resolve_campaign_path(path, text)
            if not files[key].is_file():
                raise tls.make_error(key, f"{text}: no such file")
    return UpstreamTrust(insecure=frozenset(tls.get_texts("insecure")), **files)


def _read_campaign_name(top: TypedTable) -> str:
    """Return a name that is valid as a folder, is not an option and needs no quotes in SQL."""
    name = top.get_text("name")
    if name is None:
        digest = hashlib.sha256(json.dumps(top.entries, sort_keys=True, default=str).encode())
        return f"campaign-{digest.hexdigest()[:8]}"
    if re.fullmatch(r"[\w][\w .+@=-]*", name) is None:
        raise top.make_error("name", f"{name!r}: letters, digits, spaces, '_', '.', '-' and '+@='")
    return name


def _read_twin_count(top: TypedTable) -> int:
    count = top.get_int("twins", 3, 0)
    try:
        check_twins(count)
    except ValueError as error:
        raise top.make_error("twins", str(error)) from None
    return count


def _read_world_commands(
    top: TypedTable, said: TypedTable, scenarios: Sequence[Scenario]
) -> tuple[str | None, str | None]:
    """Return the reset and verify commands, from the table or the scenarios."""
    if said.get_text("reset") or said.get_text("verify") or said.get_text("state"):
        return said.get_text("reset") or FRESH_COPY_RESET, said.get_text("verify")
    own = {(each.reset, each.verify) for each in scenarios if each.reset or each.verify}
    if top.get_bool("in_place") and any(reset is None for reset, _ in own):
        raise top.make_error("in_place", "needs a reset in each scenario that is verified")
    worlds = {(reset or FRESH_COPY_RESET, verify) for reset, verify in own}
    if len(worlds) > 1:
        raise top.make_error(
            "traces", "scenarios with worlds of their own: a campaign has one [world]"
        )
    return next(iter(worlds), (None, None))


def _resolve_campaign_path(path: Path, text: str) -> Path:
    return (path.parent / text).absolute()


def _find_writable_path(top: TypedTable, file: Path, text: str) -> Path:
    path = _resolve_campaign_path(file, text)
    if not path.exists():
        raise top.make_error("writable", f"{path}: no such file or folder")
    return path


def _find_tapes(top: TypedTable, file: Path, text: str) -> Sequence[Path]:
    found = find_tapes(file.parent, text)
    if not found:
        path = _resolve_campaign_path(file, text)
        raise top.make_error("traces", f"{path}: there is no such tape")
    return found


def _make_tape_source(path: Path, command: tuple[str, ...]) -> TraceSource:
    tape = open_packed_files(path).main_tape if is_pack(path) else path
    return TraceSource(name=path.stem, tape=tape, command=command)


def _read_trace_scenario(top: TypedTable, text: str) -> Scenario:
    try:
        return read_scenario(find_scenario(text))
    except LookupError as error:
        raise top.make_error("traces", str(error.args[0])) from None


def _parse_scenario_source(said: Scenario, given: tuple[str, ...]) -> TraceSource:
    """Return the source; the practice world is for the scenario's agent, not for a given one."""
    command = given or said.command
    if said.practice is None and not command:
        raise ScenarioError(said.path, "", "it is not for the practice world: say command")
    return TraceSource(
        name=said.task or said.name,
        practice=None if given else said.practice,
        scenario=said.name,
        command=command,
        tools=said.tools,
        rules=said.rules,
    )


def _parse_practice_sources(table: TypedTable, command: tuple[str, ...]) -> tuple[TraceSource, ...]:
    models, tasks = table.get_texts("models"), table.get_texts("tasks")
    if "tasks" in table.entries and not models:
        raise table.make_error("models", "is missing")
    tools = table.get_text("tools") or "http"
    if tools not in ("http", "mcp", "local"):
        raise table.make_error("tools", f"{tools!r} cannot be had")
    for task in tasks:
        if task not in ALL_TASKS:
            raise table.make_error(
                "tasks", f"no task is called {task!r}{suggest_nearest_name(task, ALL_TASKS)}"
            )
    for name in models:
        if name.startswith("practice/") and scripted_model.parse_model_skill(name) is None:
            raise table.make_error("models", f"no model is called {name!r}, as practice/p=0.7")
    return tuple(
        TraceSource(
            name=task,
            practice=PracticeSettings(task=task, model=name, tools=tools),  # type: ignore[arg-type]
            command=command,
        )
        for name in models
        for task in tasks
    )


def _parse_models(top: TypedTable) -> tuple[ModelChoice, ...]:
    try:
        return tuple(map(ModelChoice.parse, dict.fromkeys(top.get_texts("models"))))
    except ValueError as error:
        raise top.make_error("models", str(error)) from None


def _read_agent_options(table: TypedTable) -> tuple[str, ...]:
    """Return more options of the practice agent, which they have to parse."""
    from scenarios.practice.agents.retry_policies import POLICIES

    options = table.get_texts("options")
    if options and (len(options) != 2 or options[0] != "--policy" or options[1] not in POLICIES):
        known = ", ".join(f'["--policy", "{name}"]' for name in POLICIES)
        raise table.make_error("options", f"{options!r}: one of {known}")
    return options


def _number_duplicate_sources(sources: tuple[TraceSource, ...]) -> tuple[TraceSource, ...]:
    """Append a number to the names of sources with the same key."""
    numbered: list[TraceSource] = []
    for source in sources:
        same_key = sum(other.key == source.key for other in numbered)
        numbered.append(
            replace(source, name=f"{source.name}-{same_key + 1}") if same_key else source
        )
    return tuple(numbered)


def _parse_campaign_faults(top: TypedTable, scenarios: list[Scenario]) -> tuple[Fault, ...]:
    """Return every fault with each persistence; a fault with `persist` has only that."""
    tables: list[Mapping[str, object]] = list(top.get_mappings("faults"))
    tables = tables or [table for parsed in scenarios for table in parsed.faults]
    tables = tables or list(default_faults())
    persists = top.get_texts("persist") or ("once",)
    for number, text in enumerate(persists):
        try:
            parse_persistence(Fault(name="sham", persist=text))
        except ValueError as error:
            raise top.make_error(f"persist[{number}]", str(error)) from None
    faults: list[Fault] = []
    for number, table in enumerate(tables):
        try:
            parsed = parse_fault(table)
            fault_persists = (parsed.persist,) if "persist" in table else persists
            repeated = [replace(parsed, persist=text) for text in fault_persists]
        except ValueError as error:
            raise top.make_error(f"faults[{number}]", str(error)) from None
        faults += [fault for fault in repeated if fault not in faults]
    return tuple(faults)


def default_faults() -> list[Mapping[str, object]]:
    """Return one fault of each default operator."""
    operators = {code: find_operator(code) for code in DEFAULT_OPERATOR_CODES}
    return [
        {"fault": each.name + DEFAULT_OPERATOR_PARAMS.get(code, "")}
        for code, each in operators.items()
    ]


def _parse_seeds(top: TypedTable) -> tuple[int, ...]:
    seeds = top.entries.get("seeds", [0])
    if isinstance(seeds, str):
        first, dots, last = seeds.partition("..")
        if not dots or not first.isdecimal() or not last.isdecimal() or int(first) > int(last):
            raise top.make_error("seeds", f"{seeds!r} is not FIRST..LAST")
        return tuple(range(int(first), int(last) + 1))
    if not isinstance(seeds, list) or not seeds:
        raise top.make_error("seeds", f'{seeds!r} is not a list of whole numbers, nor "1..5"')
    for seed in seeds:
        if not isinstance(seed, int) or isinstance(seed, bool) or seed < 0:
            raise top.make_error("seeds", f"{seed!r} is not a whole number from 0")
    return tuple(dict.fromkeys(seeds))


def _read_world_instances(world: TypedTable) -> int:
    count = world.get_int("instances", 1, 1)
    reset = world.get_text("reset") or ""
    if count > 1 and "{slot}" not in reset and "{port}" not in reset:
        raise world.make_error(
            "instances", f"{count} worlds, and reset names no {{slot}} or {{port}}"
        )
    if "{port}" in reset and "port" not in world.entries:
        raise world.make_error("port", "is missing, and reset names {port}")
    return count


def _is_port_template(hosts: TypedTable, name: str) -> bool:
    return hosts.require_text(name).endswith(":{port}")


def _parse_ported_host(world: TypedTable, hosts: TypedTable, name: str) -> str:
    if "port" not in world.entries:
        raise hosts.make_error(name, "names {port}, and [world] has no port")
    return hosts.require_text(name).removesuffix(":{port}")


def _parse_host_port(table: TypedTable, name: str) -> tuple[str, int]:
    host, _, port = table.require_text(name).rpartition(":")
    if not host or not port.isdecimal():
        raise table.make_error(name, "is not HOST:PORT")
    return host, int(port)
