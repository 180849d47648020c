"""`stumble bench`: stumble-bench 1, for any model and any agent."""

import json
import re
from pathlib import Path

import click

from stumble import options
from stumble.exits import Exits, Wrong


@click.command(
    short_help="Run stumble-bench 1: fixed tasks and faults, one table.",
    epilog="Exit codes: 0 done, 2 it cannot be, 5 a figure is missing, 6 something of ours failed, "
    "130 or 143 stopped by a signal: the table is marked incomplete.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    help="For the practice agent, which asks at OPENAI_BASE_URL; as often as you like. "
    "By default the practice skills naive, retries and verifies.",
)
@click.option(
    "--command",
    metavar="COMMAND",
    help="An agent of yours; {task}, {prompt} and {model} in it are filled in.",
)
@click.option(
    "--agent", default="own", show_default=True, help="With --command: what it is called."
)
@click.option(
    "--from",
    "archive",
    metavar="STORE",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Run nothing: judge the tapes of this store again.",
)
@click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the runs are kept; .stumble/bench by default.",
)
@click.option("--jobs", type=click.IntRange(1), help="Processes; by default one for each core.")
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Another set in the same words, which is another bench.",
)
@click.option("--explain", is_flag=True, help="Print the analysis, as it was said beforehand.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def bench(
    models: tuple[str, ...],
    command: str | None,
    agent: str,
    archive: Path | None,
    store: Path | None,
    jobs: int | None,
    file: Path | None,
    explain: bool,
    as_json: bool,
) -> None:
    """Run fixed tasks of the practice world with fixed faults, seeds and weights, and print one
    table: handled, recovered and silently wrong, with intervals. Two people's figures compare
    where the hash of the file is the same. What was run stays, and is not run again.

    \b
    stumble bench
    OPENAI_BASE_URL=https://api.openai.com/v1 stumble bench --model gpt-5-mini
    stumble bench --command "python my_agent.py {prompt}" --agent mine --model gpt-5
    stumble bench --from their-store
    """  # fmt: skip
    from stumble import indexing
    from stumble.campaigns.bench import (
        FILE,
        describe_incomplete,
        lines,
        standing,
        to_progress,
    )
    from stumble.campaigns.bench import bench as read
    from stumble.campaigns.session import session
    from stumble.commands.campaign import cores, shown
    from stumble.home import authority, store_root
    from traces.store import Store

    with options.usage_errors():
        found = read(file or FILE)
    if explain:
        click.echo(found.analysis)
        return
    if re.fullmatch(r"[A-Za-z0-9._-]+", agent) is None:
        raise Wrong(f"--agent {agent!r}: letters, digits, '.', '_' and '-'")
    if archive is not None and (models or command or store):
        raise Wrong("--from runs nothing: leave --model, --command and --store out")
    code: int = Exits.OK
    progress: dict[str, object] = {}
    incomplete: str | None = None
    kept = Store(archive or store or store_root() / "bench")
    if archive is not None:
        for why in indexing.refresh(kept):
            click.echo(f"warning: {why}", err=True)
    else:
        said = found.table(models, command, agent)
        with options.usage_errors():
            asked = found.campaign(said)
        gave = session(
            asked,
            kept,
            said,
            Path.cwd() / "bench",
            ca=authority(),
            jobs=cores(jobs),
            show=shown,
            warn=lambda why: click.echo(f"warning: {why}", err=True),
        )
        code, progress, incomplete = gave.code, to_progress(gave), describe_incomplete(gave)
        for why in (*gave.standing.diverged[:3], *gave.standing.no_site[:3]):
            click.echo(f"left out: {why}", err=True)
    rows = standing(found, kept)
    if not rows and incomplete is None:
        raise Wrong(f"{kept.root} holds no run of {found.name}")
    data = {"bench": found.title, "file": found.digest, "rows": [dict(row) for row in rows]}
    table = [*([incomplete] if incomplete else ()), *lines(found, rows)]
    click.echo(json.dumps(data | progress) if as_json else "\n".join(table))
    missing = any(row["handled_rate_lo"] is None for row in rows)
    raise SystemExit(code if code not in (Exits.OK, Exits.NOT_ENOUGH) else
                     Exits.NOT_ENOUGH if missing else Exits.OK)  # fmt: skip
