"""`stumble campaign`: traces x faults x persistence x seeds x repetitions, on several processes."""

import json
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.cli import options
from stumble.cli.seal_options import add_seal_options, to_seal_table
from stumble.cli.trust import require_trust, require_trusted_hash, trust_option
from stumble.errors import ExitCode, UsageError
from stumble.notices import print_warning
from stumble.processors import count_usable_processors

if TYPE_CHECKING:
    from stumble.campaigns.sample_size import PlanTerms
    from stumble.campaigns.scheduler import ProgressListener
    from stumble.campaigns.spec import Campaign
    from stumble.campaigns.worker_plan import WorkerPlan
    from traces.store.trace_store import TraceStore


@click.command(
    epilog="Exit codes: 0 done, 2 invalid configuration, 3 all runs diverged, 4 no fault fired, "
    "5 too few traces for an interval, 6 stumble failed, 124 stopped by --max-cost or --max-time.",
)
@click.argument("file", required=False)
@click.argument("parts", nargs=-1, type=click.Path(exists=True, path_type=Path), metavar="")
@click.option(
    "--traces",
    multiple=True,
    metavar="TAPE|SCENARIO",
    help="Recording (or its pack), a pattern of recordings, or scenario to record first; "
    "repeatable.",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME:KEY=VALUE,...",
    help="Fault to inject, one per run; repeatable. Default: the 15 faults of the default design.",
)
@click.option(
    "--where",
    multiple=True,
    metavar="KEY=VALUE",
    help="Select the calls to inject into: tool=search*.",
)
@click.option(
    "--persist",
    multiple=True,
    metavar="NAME:KEY=VALUE,...",
    help="Later calls to inject into as well; every fault runs with each value. Repeatable.",
)
@click.option(
    "--at",
    type=click.Choice(["http", "mcp", "model-boundary", "model"]),
    help="Injection place.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="NAME",
    help="Go on with another model after the injection, as in stumble fork; each run is made with "
    "each. Repeat it, or separate names by commas; `stumble compare` pairs them.",
)
@click.option(
    "--seeds", metavar="A..B", help="Range of seeds; each seed samples other calls and values."
)
@click.option("--reps", type=click.IntRange(1), help="Runs of each fault at each site.")
@click.option(
    "--twins",
    type=click.IntRange(0),
    help="Clean runs at each site: at least 3 (default: 3), or 0 for facts without a verdict.",
)
@click.option(
    "--name", help="Campaign name, used to resume it and in SQL: where campaign = 'NAME'."
)
@click.option("--jobs", type=click.IntRange(1), help="Number of processes; default: one per core, "
              "or one per world if there are fewer.")  # fmt: skip
@click.option(
    "--on",
    metavar="ray|ray://HOST:PORT",
    help="Make the runs on the nodes of a Ray cluster (extra ray): that of RAY_ADDRESS or of this "
    "machine, or the one at an address. --jobs is the number of workers; default: one per "
    "processor of the cluster.",
)
@click.option(
    "--runtime-env",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --on: Ray's runtime environment of the workers (YAML or JSON), with an image, say.",
)
@click.option(
    "--shard",
    "shard_text",
    metavar="N/COUNT",
    help="Run this part alone, of COUNT; auto/COUNT takes N from SLURM_ARRAY_TASK_ID or "
    "JOB_COMPLETION_INDEX. `stumble campaign merge` joins the parts.",
)
@click.option(
    "--max-cost",
    type=click.FloatRange(0, min_open=True),
    metavar="USD",
    help="Cost limit in US dollars; a run that could exceed it is not started.",
)
@click.option(
    "--max-time",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Limit of the time of all runs, added up; after it no run is started.",
)
@click.option(
    "--budget",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Time limit of each agent in seconds; default: 600.",
)
@click.option(
    "--plan",
    "planning",
    is_flag=True,
    help="Run nothing; print the runs, their cost and their statistical power.",
)
@click.option(
    "--detect",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.1,
    show_default=True,
    help="With --plan: difference between rates to detect.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0, 1),
    default=0.8,
    show_default=True,
    help="With --plan: baseline rate.",
)
@click.option(
    "--power",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.8,
    show_default=True,
    help="With --plan: probability of detecting the difference.",
)
@click.option(
    "--max-silent",
    type=click.FloatRange(0, 1),
    help="With --plan: limit of `gate --max-silent` to pass; print the recordings that it needs. "
    "With --until: the limit to decide.",
)
@click.option(
    "--until",
    type=click.Choice(["decided"]),
    help="Look after each fifth of the traces, and end as soon as --max-silent is met or violated.",
)
@click.option(
    "--icc",
    type=click.FloatRange(0, 1),
    default=0.2,
    show_default=True,
    help="With --plan: intraclass correlation of the injections in one trace.",
)
@trust_option
@add_seal_options
@options.world_command_options
@options.in_place_option
@options.writable_option
@options.host_option
@options.upstream_trust_options
@click.option(
    "--command", "command", metavar="COMMAND", help="Agent command; default: the recorded one."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def campaign(
    file: str | None,
    parts: tuple[Path, ...],
    shard_text: str | None,
    on: str | None,
    runtime_env: Path | None,
    planning: bool,
    jobs: int | None,
    as_json: bool,
    detect: float,
    rate: float,
    power: float,
    icc: float,
    max_silent: float | None,
    until: str | None,
    sealing: bool,
    **given: object,
) -> None:
    """Run every fault at a call of every trace, one fault per run, with clean twins and shams;
    then judge all runs and print rates with intervals.

    FILE is a TOML file, a pack of one, or the name of a campaign; options override its values.
    The same command, or the campaign's name, resumes a campaign that was stopped or killed.

    With --shard, each machine makes its part in a store of its own, with its share of --max-cost
    and --max-time; `stumble campaign merge FOLDER|PACK...` joins their stores, or packs of them,
    into this one.

    \b
    stumble campaign --traces refund.tape --traces order.tape --fault http_status:code=503 \\
        --fault digit --persist once --persist same_args --seeds 1..5
    stumble campaign nightly.toml --plan --detect 0.1 --power 0.8
    stumble campaign nightly.toml --plan --max-silent 0.02
    stumble campaign nightly.toml --max-cost 5
    stumble campaign nightly.toml --until decided --max-silent 0.05
    stumble campaign nightly
    stumble campaign nightly.toml --on ray://head.example:10001 --jobs 64
    stumble campaign nightly.stumble --shard 3/16
    stumble campaign merge shard-1/ shard-2/ shard-3.stumble
    stumble campaign nightly.toml --seal --margin 0.1 --against before --looks 4
    """  # fmt: skip
    from stumble.campaigns.environment import check_workspaces
    from stumble.campaigns.runner import CampaignDisplay
    from stumble.campaigns.shards import parse_shard
    from stumble.campaigns.spec import parse_campaign as read
    from stumble.campaigns.worker_plan import check_ray_campaign, parse_worker_plan
    from stumble.cli.seal_output import print_campaign_end, print_seal
    from stumble.experiments.seals.seal_store import apply_seal
    from stumble.experiments.sequential_run import run_sealed_campaign, run_until_decided
    from stumble.user_data.paths import prepare_ca_folder, store_root
    from traces.store.trace_store import TraceStore

    store = TraceStore(store_root())
    if file == "merge":
        _merge_parts(store, parts, as_json)
        return
    if parts:
        raise UsageError(f"{parts[0]}: one campaign at a time; `campaign merge` takes several")
    workers = parse_worker_plan(jobs, on, runtime_env)
    table, path = _load_campaign_table(store, file, given)
    with options.usage_errors():
        spec = read(table, path)
        spec = replace(spec, shard=parse_shard(shard_text) if shard_text else None)
    for line in check_workspaces(spec, store):
        print_warning(line)
    if sealing:
        print_seal(spec, store, table, path, as_json)
        return
    with options.usage_errors():
        spec = apply_seal(spec, table, path, store)
    if on is not None:
        check_ray_campaign(spec)
    workers = _limit_workers(spec, store, workers, planning=planning)
    if planning:
        from stumble.campaigns.sample_size import PlanTerms

        assert workers.jobs is not None
        terms = PlanTerms(detect=detect, rate=rate, power=power, icc=icc, max_silent=max_silent)
        _print_campaign_plan(spec, store, workers.jobs, as_json, terms)
        return
    _require_campaign_trust(spec, file)
    if max_silent is not None and until is None:
        raise UsageError("--max-silent goes with --plan or --until decided; else see stumble gate")
    run = run_sealed_campaign
    if until is not None:
        run = partial(run_until_decided, max_silent=_find_limit_to_decide(spec, max_silent))
    result = run(
        spec,
        store,
        table,
        path,
        ca=prepare_ca_folder(),
        workers=workers,
        display=CampaignDisplay(show_campaign_progress, print_warning),
    )
    print_campaign_end(result, as_json)


def _find_limit_to_decide(spec: "Campaign", max_silent: float | None) -> float:
    """Return the limit of `--until decided`; raise UsageError if it has none, or others decide."""
    if max_silent is None:
        raise UsageError("--until decided needs the limit to decide: --max-silent SHARE")
    if spec.seal:
        raise UsageError("a sealed campaign ends at the looks of its seal: leave out --until")
    if spec.shard is not None:
        raise UsageError("--until decided needs all traces: leave out --shard")
    return max_silent


def _require_campaign_trust(spec: "Campaign", file: str | None) -> None:
    """Check that a packed campaign, and each recorded trace, may start what it names.

    Raises UsageError if not.
    """
    from stumble.packs.pack_cache import open_packed_files
    from stumble.packs.pack_manifest import PACK_SUFFIX
    from stumble.store.tape_files import load_tape
    from traces.tape.reader import read_tape_lazily

    if file is not None and file.endswith(PACK_SUFFIX):
        root_hash = open_packed_files(Path(file)).manifest.root_hash
        require_trusted_hash(root_hash, file, dict(_list_commands(spec)))
    for source in spec.sources:
        if source.tape is not None:
            recording = load_tape(source.tape, read_tape_lazily)
            require_trust(recording, source.command, in_place=spec.in_place)


def _list_commands(spec: "Campaign") -> Iterator[tuple[str, str]]:
    for command in dict.fromkeys(each.command for each in spec.sources if each.command):
        yield "agent", shlex.join(command)
    for name in ("reset", "verify", "state", "ledger"):
        if text := getattr(spec, name):
            yield name, text


def _merge_parts(store: "TraceStore", parts: tuple[Path, ...], as_json: bool) -> None:
    from stumble.campaigns.merge_shards import merge_shards
    from stumble.terminal_progress import show_terminal_progress

    with show_terminal_progress("merging runs") as tell:
        merged, refused = merge_shards(store, parts, tell)
    for why in refused:
        print_warning(f"not merged: {why}")
    for each in merged:
        click.echo(json.dumps(each.to_dict()) if as_json else "\n".join(each.to_lines()))
    if refused or not all(each.is_whole for each in merged):
        raise SystemExit(ExitCode.FINDING)


def _print_campaign_plan(
    asked: "Campaign",
    store: "TraceStore",
    jobs: int,
    as_json: bool,
    terms: "PlanTerms",
) -> None:
    from stumble.campaigns.completed_runs import find_completed_runs
    from stumble.campaigns.environment import count_worlds
    from stumble.campaigns.estimate import estimate_campaign
    from stumble.experiments.gate_rates import fetch_gate_rates
    from stumble.gate.limits import GateCheck, GateLimit, check_gate_limits
    from stumble.gate.report import format_check_line, gate_check_to_dict
    from stumble.store import index

    index.refresh_index(store)
    done = find_completed_runs(store, asked.name)
    jobs = min(jobs, count_worlds(asked, store) or jobs)
    with options.usage_errors():
        plan = estimate_campaign(asked, done, jobs, terms)
    checks: tuple[GateCheck, ...] = ()
    if terms.max_silent is not None and done.runs:
        rates = fetch_gate_rates(store, confidence=0.95, which={"campaign": asked.name})
        limit = GateLimit(measure="silent", value=terms.max_silent, least=False, confidence=0.95)
        checks = check_gate_limits(rates, [limit])
    if as_json:
        so_far = [gate_check_to_dict(each) for each in checks]
        click.echo(json.dumps(plan.to_dict() | {"so_far": so_far}))
    else:
        lines = (f"so far: {format_check_line(each)}" for each in checks)
        click.echo("\n".join([*plan.to_lines(), *lines]))


def _load_campaign_table(
    store: "TraceStore", file: str | None, given: Mapping[str, object]
) -> tuple[dict[str, object], Path]:
    """Return the campaign table, and the file that its relative paths refer to.

    Raises UsageError if the file or the campaign does not exist.
    """
    from scenarios.toml_reader import read_toml_document
    from stumble.campaigns.completed_runs import CampaignFolder
    from stumble.packs.pack_cache import open_packed_files
    from stumble.packs.pack_manifest import PACK_SUFFIX
    from stumble.packs.packed_campaigns import load_packed_campaign

    table: dict[str, object] = {}
    path = Path.cwd() / "campaign"
    if file is not None and file.endswith(".toml"):
        path = Path(file)
        if not path.is_file():
            raise UsageError(f"{file}: no such file")
        with options.usage_errors():
            table = {"name": path.stem, **read_toml_document(path)}
    elif file is not None and file.endswith(PACK_SUFFIX):
        table, path = load_packed_campaign(open_packed_files(Path(file)))
    elif file is not None:
        stored_plan = CampaignFolder.load_plan(store, file)
        if stored_plan is None:
            raise UsageError(
                f"no campaign {file!r} in this store; the name of a campaign file ends in .toml"
            )
        table, path = stored_plan
    return table | _options_to_table(table, given), path


def _options_to_table(said: Mapping[str, object], given: Mapping[str, object]) -> dict[str, object]:
    """Return the given options as a campaign table."""
    plain = ("name", "seeds", "reps", "twins", "max_cost", "max_time", "budget", "command")
    from stumble.runs.environment.upstream_trust import NO_MORE_TRUST, UpstreamTrust

    table = {key: given[key] for key in plain if given[key] is not None}
    if given["in_place"]:
        table["in_place"] = True
    if isinstance(writable := given["writable"], tuple) and writable:
        table["writable"] = [str(path.absolute()) for path in writable]
    for key in ("traces", "persist"):
        texts = given[key]
        if isinstance(texts, tuple) and texts:
            table[key] = list(texts)
    if isinstance(models := given["models"], tuple) and models:
        table["models"] = [name.strip() for text in models for name in text.split(",")]
    world = {key: given[key] for key in ("reset", "verify", "state") if given[key] is not None}
    if world:
        table["world"] = world
    if (ledger := given["ledger"]) is not None:
        names = given["ledger_key"]
        table["effects"] = {"ledger": ledger} | ({"key": str(names).split(",")} if names else {})
    hosts = given["host_texts"]
    if isinstance(hosts, tuple) and hosts:
        table["hosts"] = options.parse_option_pairs(hosts)
    assert isinstance(trust := given["trust"], UpstreamTrust)
    if trust != NO_MORE_TRUST:
        table["tls"] = trust.to_table()
    return table | _fault_options_to_table(said, given) | to_seal_table(said, given)


def _fault_options_to_table(
    said: Mapping[str, object], given: Mapping[str, object]
) -> dict[str, object]:
    from stumble.campaigns.spec import default_faults

    texts, where, at = given["faults"], given["where"], given["at"]
    if not texts and not where and not at:
        return {}
    assert isinstance(texts, tuple)
    assert isinstance(where, tuple)
    more: dict[str, object] = {"where": options.parse_option_pairs(where)} if where else {}
    more |= {"at": at} if at else {}
    tables = [{"fault": text} for text in texts] or said.get("faults") or default_faults()
    assert isinstance(tables, list)
    return {"faults": [table | more for table in tables]}


def count_processes(jobs: int | None) -> int:
    """Return `jobs`, or one process per core if it is None."""
    return jobs or count_usable_processors()


def _limit_workers(
    asked: "Campaign", store: "TraceStore", workers: "WorkerPlan", *, planning: bool
) -> "WorkerPlan":
    """Return the plan with a number of workers, by default at most one per world.

    On a cluster the number may stay open until it is known, unless the campaign is only planned,
    and there is never more than one worker per world: machines have no lock in common.
    Prints a note if `jobs` exceeds the number of worlds.
    """
    from stumble.campaigns.environment import count_worlds

    worlds, jobs = count_worlds(asked, store), workers.jobs
    if jobs is None and workers.ray is not None and worlds is None:
        if planning:
            raise UsageError("--plan with --on: add --jobs, the number of workers of the cluster")
        return workers
    if jobs is None:
        most = worlds or count_processes(None)
        return replace(workers, jobs=most if workers.ray else min(count_processes(None), most))
    if worlds is not None and jobs > worlds:
        click.echo(
            f"--jobs {jobs}: {worlds} world{'s' if worlds > 1 else ''} for all runs, so runs wait "
            "for a free one; [world] instances, or {workspace} in reset, adds worlds",
            err=True,
        )
        return replace(workers, jobs=worlds) if workers.ray else workers
    return workers


@contextmanager
def show_campaign_progress() -> Iterator["ProgressListener"]:
    """Show progress: a bar on a terminal, occasional lines elsewhere."""
    from rich.console import Console

    from stumble.campaigns.progress import print_progress_lines, show_progress_bar

    console = Console(stderr=True)
    with (show_progress_bar if console.is_terminal else print_progress_lines)(console) as tell:
        yield tell
