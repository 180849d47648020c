"""`stumble campaign`: traces x faults x persistence x seeds x repetitions, on several processes."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble import options
from stumble.exits import Wrong

if TYPE_CHECKING:
    from stumble.campaigns.asked import Campaign
    from stumble.campaigns.conduct import Tell
    from traces.store import Store


@click.command(
    short_help="Break many calls of many recordings, and count what came of it.",
    epilog="Exit codes: 0 done, 2 it cannot be, 3 all diverged, 4 nothing fired, 5 too few traces "
    "for an interval, 6 something of ours failed, 124 stopped by --max-cost.",
)
@click.argument("file", required=False)
@click.option(
    "--traces",
    multiple=True,
    metavar="TAPE|SCENARIO",
    help="A recording, or a scenario, which is recorded first; as often as you like.",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME:KEY=VALUE,...",
    help="What goes wrong, one in each run; without any, the 15 of the default design.",
)
@click.option(
    "--where",
    multiple=True,
    metavar="KEY=VALUE",
    help="Which calls the faults may strike: tool=search*.",
)
@click.option(
    "--persist",
    multiple=True,
    metavar="NAME:KEY=VALUE,...",
    help="Which later calls are struck too; every fault is tried with each.",
)
@click.option(
    "--at",
    type=click.Choice(["http", "mcp", "model-boundary", "model"]),
    help="Where faults strike.",
)
@click.option("--seeds", metavar="A..B", help="Each draws other calls and other values.")
@click.option("--reps", type=click.IntRange(1), help="Runs of each fault at each site.")
@click.option(
    "--twins",
    type=click.IntRange(0),
    help="Clean runs at each site: 3 or more, 3 by default, or 0 for facts without a verdict.",
)
@click.option("--name", help="By which it is resumed and asked for: where campaign = 'NAME'.")
@click.option("--jobs", type=click.IntRange(1), help="Processes; by default one for each core, or "
              "for each world that --reset sets back.")  # fmt: skip
@click.option(
    "--max-cost",
    type=click.FloatRange(0, min_open=True),
    metavar="USD",
    help="Begin no run that could cost more than what is left of this.",
)
@click.option(
    "--budget",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="End an agent after this long; 600 by default.",
)
@click.option(
    "--plan",
    "planning",
    is_flag=True,
    help="Say what would be run, what it would cost and what it could show.",
)
@click.option(
    "--detect",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.1,
    show_default=True,
    help="With --plan: the difference that is to be seen.",
)
@click.option(
    "--rate",
    type=click.FloatRange(0, 1),
    default=0.8,
    show_default=True,
    help="With --plan: the rate from which it differs.",
)
@click.option(
    "--power",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.8,
    show_default=True,
    help="With --plan: the chance to see it.",
)
@click.option(
    "--icc",
    type=click.FloatRange(0, 1),
    default=0.2,
    show_default=True,
    help="With --plan: how alike the injections of one trace are.",
)
@options.world_options
@options.host_option
@click.option("--command", "command", metavar="COMMAND", help="The agent, where no tape names it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def campaign(
    file: str | None,
    planning: bool,
    jobs: int | None,
    as_json: bool,
    detect: float,
    rate: float,
    power: float,
    icc: float,
    **given: object,
) -> None:
    """Run every fault at a call of every trace, with clean twins and shams beside, each in a run
    of its own; then judge all of them and say what came of it, with intervals.

    What is wanted stands in a TOML file or in the options, which go before it. A campaign that was
    stopped or killed goes on where it was: the same command again, or its name.

    \b
    stumble campaign --traces refund.tape --traces order.tape --fault http_status:code=503 \\
        --fault digit --persist once --persist same_args --seeds 1..5
    stumble campaign nightly.toml --plan --detect 0.1 --power 0.8
    stumble campaign nightly.toml --max-cost 5
    stumble campaign nightly
    """  # fmt: skip
    from stumble.campaigns.asked import campaign as read
    from stumble.campaigns.session import session
    from stumble.home import authority, store_root
    from traces.store import Store

    store = Store(store_root())
    said, path = _said(store, file, given)
    with options.usage_errors():
        asked = read(said, path)
    processes = _jobs(asked, store, jobs)
    if planning:
        _plan(asked, store, processes, as_json, detect, rate, power, icc)
        return
    gave = session(
        asked,
        store,
        said,
        path,
        ca=authority(),
        jobs=processes,
        show=shown,
        warn=lambda why: click.echo(f"warning: {why}", err=True),
    )
    click.echo(json.dumps(gave.said()) if as_json else "\n".join(gave.lines()))
    raise SystemExit(gave.code)


def _plan(
    asked: "Campaign",
    store: "Store",
    jobs: int,
    as_json: bool,
    detect: float,
    rate: float,
    power: float,
    icc: float,
) -> None:
    from stumble import indexing
    from stumble.campaigns.ground import count_worlds
    from stumble.campaigns.ledger import ledger
    from stumble.campaigns.plan import planned

    indexing.refresh(store)
    done = ledger(store, asked.name)
    jobs = min(jobs, count_worlds(asked, store) or jobs)
    with options.usage_errors():
        plan = planned(asked, done, jobs, detect=detect, rate=rate, power=power, icc=icc)
    click.echo(json.dumps(plan.said()) if as_json else "\n".join(plan.lines()))


def _said(
    store: "Store", file: str | None, given: Mapping[str, object]
) -> tuple[dict[str, object], Path]:
    """The table that is asked for, and the file beside which its paths lie."""
    from scenarios.table import document
    from stumble.campaigns.ledger import Folder

    said: dict[str, object] = {}
    path = Path.cwd() / "campaign"
    if file is not None and file.endswith(".toml"):
        path = Path(file)
        if not path.is_file():
            raise Wrong(f"{file}: there is no such file")
        with options.usage_errors():
            said = {"name": path.stem, **document(path)}
    elif file is not None:
        kept = Folder.known(store, file)
        if kept is None:
            raise Wrong(f"no campaign of this store is called {file!r}, and a file ends in .toml")
        said, path = kept
    return said | _options(said, given), path


def _options(said: Mapping[str, object], given: Mapping[str, object]) -> dict[str, object]:
    """What options say, as a file would say it."""
    plain = ("name", "seeds", "reps", "twins", "max_cost", "budget", "command")
    found = {key: given[key] for key in plain if given[key] is not None}
    for key in ("traces", "persist"):
        texts = given[key]
        if isinstance(texts, tuple) and texts:
            found[key] = list(texts)
    world = {key: given[key] for key in ("reset", "verify", "state") if given[key] is not None}
    if world:
        found["world"] = world
    hosts = given["host_texts"]
    if isinstance(hosts, tuple) and hosts:
        found["hosts"] = options.pairs(hosts)
    return found | _fault_options(said, given)


def _fault_options(said: Mapping[str, object], given: Mapping[str, object]) -> dict[str, object]:
    from stumble.campaigns.asked import default_faults

    texts, where, at = given["faults"], given["where"], given["at"]
    if not texts and not where and not at:
        return {}
    assert isinstance(texts, tuple)
    assert isinstance(where, tuple)
    more: dict[str, object] = {"where": options.pairs(where)} if where else {}
    more |= {"at": at} if at else {}
    tables = [{"fault": text} for text in texts] or said.get("faults") or default_faults()
    assert isinstance(tables, list)
    return {"faults": [table | more for table in tables]}


def cores(jobs: int | None) -> int:
    """As many processes as were asked for, else one for each core."""
    return jobs or os.process_cpu_count() or 1


def _jobs(asked: "Campaign", store: "Store", jobs: int | None) -> int:
    """How many processes: as many as were asked for, else as many as have a world to work in."""
    from stumble.campaigns.ground import count_worlds

    worlds = count_worlds(asked, store)
    if jobs is None:
        return cores(None) if worlds is None else min(cores(None), worlds)
    if worlds is not None and jobs > worlds:
        click.echo(
            f"--jobs {jobs}: {worlds} world{'s' if worlds > 1 else ''} for all runs, so they wait "
            "for one another; [world] instances, or {workspace} in reset, gives more",
            err=True,
        )
    return jobs


@contextmanager
def shown() -> Iterator["Tell"]:
    """Tell how far it is: a bar on a terminal, a line now and then elsewhere."""
    from rich.console import Console

    from stumble.campaigns.progress import bar, lines

    console = Console(stderr=True)
    with (bar if console.is_terminal else lines)(console) as tell:
        yield tell
