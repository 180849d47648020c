"""`stumble bench`: run stumble-bench 1 with any model or agent."""

import json
import re
from collections.abc import Mapping
from copy import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.cli import options
from stumble.errors import ExitCode, UsageError
from stumble.notices import print_warning

if TYPE_CHECKING:
    from stumble.extensions import FaultWeights


@click.command(
    epilog="Exit codes: 0 done, 2 invalid configuration, 5 a figure is missing, 6 stumble failed, "
    "130 or 143 stopped by a signal (the table is marked incomplete).",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    help="Model of the practice agent, served at OPENAI_BASE_URL; repeatable. Default: the "
    "practice skills naive, retries and verifies.",
)
@click.option(
    "--command",
    metavar="COMMAND",
    help="Command of your agent; {task}, {prompt} and {model} are replaced.",
)
@click.option(
    "--agent", default="own", show_default=True, help="With --command: name of the agent."
)
@click.option(
    "--from",
    "archive",
    metavar="STORE",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Run nothing; judge the tapes of this store again.",
)
@click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    help="Store for the runs; default: .stumble/bench.",
)
@click.option("--jobs", type=click.IntRange(1), help="Number of processes; default: one per core.")
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Another bench file in the same format; its figures do not compare with stumble-bench 1.",
)
@click.option(
    "--weights",
    metavar="atlas:SOURCE",
    help="Weigh the faults by how often errors of their class occur in a source of the atlas; the "
    "figures do not compare with those of other weights.",
)
@options.in_place_option
@click.option("--explain", is_flag=True, help="Print the pre-specified analysis and run nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def bench(
    models: tuple[str, ...],
    command: str | None,
    agent: str,
    archive: Path | None,
    store: Path | None,
    jobs: int | None,
    file: Path | None,
    weights: str | None,
    in_place: bool,
    explain: bool,
    as_json: bool,
) -> None:
    """Run fixed tasks of the practice world with fixed faults, seeds and weights, and print one
    table: handled, recovered and silently wrong, with intervals. Figures are comparable if the
    hash of the bench file is the same. Finished runs are kept and not repeated.

    \b
    stumble bench
    OPENAI_BASE_URL=https://api.openai.com/v1 stumble bench --model gpt-5-mini
    stumble bench --command "python my_agent.py {prompt}" --agent mine --model gpt-5
    stumble bench --from their-store
    stumble bench --from their-store --weights atlas:tau-airline
    """  # fmt: skip
    from stumble.campaigns.bench import (
        BENCH_FILE,
        bench_progress_to_dict,
        describe_incomplete,
        format_bench_table,
        query_bench_rows,
    )
    from stumble.campaigns.bench import read_bench as read
    from stumble.campaigns.runner import CampaignDisplay, run_campaign_session
    from stumble.campaigns.worker_plan import WorkerPlan
    from stumble.cli.inject_judge.campaign import count_processes, show_campaign_progress
    from stumble.store import index
    from stumble.user_data.paths import prepare_ca_folder, store_root
    from traces.store.trace_store import TraceStore

    with options.usage_errors():
        definition = read(file or BENCH_FILE)
        wild = _weigh_faults(definition.weights, weights) if weights else None
        definition = replace(definition, weights=wild.weights) if wild else definition
    if explain:
        click.echo(definition.analysis)
        return
    if re.fullmatch(r"[A-Za-z0-9._-]+", agent) is None:
        raise UsageError(f"--agent {agent!r}: letters, digits, '.', '_' and '-'")
    if archive is not None and (models or command or store):
        raise UsageError("--from runs nothing: omit --model, --command and --store")
    code: int = ExitCode.OK
    progress: dict[str, object] = {}
    incomplete: str | None = None
    bench_store = TraceStore(archive or store or store_root() / "bench")
    if archive is not None:
        for why in index.refresh_index(bench_store):
            print_warning(why)
    else:
        table_config = definition.to_campaign_table(models, command, agent) | (
            {"in_place": True} if in_place else {}
        )
        with options.usage_errors():
            spec = definition.to_campaign(table_config)
        result = run_campaign_session(
            spec,
            bench_store,
            table_config,
            Path.cwd() / "bench",
            ca=prepare_ca_folder(),
            workers=WorkerPlan(jobs=count_processes(jobs)),
            display=CampaignDisplay(show_campaign_progress, print_warning),
        )
        code, progress, incomplete = (
            result.exit_code,
            bench_progress_to_dict(result),
            describe_incomplete(result),
        )
        for why in (*result.standing.diverged[:3], *result.standing.no_site[:3]):
            click.echo(f"left out: {why}", err=True)
    rows = query_bench_rows(definition, bench_store)
    if not rows and incomplete is None:
        raise UsageError(f"{bench_store.root} has no run of {definition.name}")
    data: dict[str, object] = {
        "bench": definition.title,
        "file": definition.digest,
        "rows": [dict(row) for row in rows],
    }
    table = [*([incomplete] if incomplete else ()), *format_bench_table(definition, rows)]
    if wild is not None:
        data["weights"] = wild.to_dict()
        table.append(wild.describe())
    click.echo(json.dumps(data | progress) if as_json else "\n".join(table))
    missing = any(row["handled_rate_lo"] is None for row in rows)
    raise SystemExit(code if code not in (ExitCode.OK, ExitCode.NOT_ENOUGH) else
                     ExitCode.NOT_ENOUGH if missing else ExitCode.OK)  # fmt: skip


def _weigh_faults(weights: Mapping[str, float], value: str) -> "FaultWeights":
    from stumble.extensions import RateSource, load_extension
    from stumble.user_data.paths import store_root

    rates: RateSource = load_extension("stumble.rates", value.partition(":")[0])
    return rates.weigh_faults(weights, value, store_root())
