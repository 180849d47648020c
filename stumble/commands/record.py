"""`stumble record`: run an agent and keep what it said and heard."""

from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from stumble import matching, options
from stumble.exits import Exits, Wrong, interrupted
from stumble.progress import progress

if TYPE_CHECKING:
    from scenarios.workspace.snapshot import Limits
    from stumble.runs import Played
    from traces.model import Fault
    from traces.store import Store
    from traces.tape import Tape


@click.command(
    short_help="Run an agent and keep what it said and heard.",
    context_settings={"allow_interspersed_args": False},
    epilog="The exit code is the agent's own; 127 if its command was not found, 4 if it ended "
    "well but no --fault fired.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The new tape; by default one in the store.",
)
@click.option("--agent", help="What to call the agent in the store.")
@click.option("--model", help="What to call the model, if its own answers do not say.")
@click.option("--task", help="What to call the task.")
@options.host_option
@click.option(
    "--tool",
    "tool_texts",
    multiple=True,
    metavar="NAME=METHOD PATH",
    help='Which requests a tool makes: --tool issue_refund="POST */refunds".',
)
@click.option(
    "--upstream",
    "upstream_texts",
    multiple=True,
    metavar="[PORT=]URL",
    help="Give a base URL of ours that stands for this one, for clients that know no proxy.",
)
@click.option(
    "--base-url-env",
    "base_url_names",
    multiple=True,
    metavar="NAME[=URL]",
    help="Variables that are set to it; by default those that the URL's clients read.",
)
@options.match_options
@options.world_options
@options.fault_options(required=False)
@options.budget_option(None)
@click.option(
    "--redact/--no-redact",
    default=True,
    show_default=True,
    help="Replace keys and other secrets before anything is written.",
)
@click.option(
    "--websocket/--no-websocket",
    default=True,
    show_default=True,
    help="Let agents open WebSockets; without, they are told to ask over HTTP (426).",
)
@options.snapshot_options
@options.agent_command
def record(
    output: Path | None,
    agent: str | None,
    model: str | None,
    task: str | None,
    host_texts: tuple[str, ...],
    tool_texts: tuple[str, ...],
    upstream_texts: tuple[str, ...],
    base_url_names: tuple[str, ...],
    rule_texts: tuple[str, ...],
    scenario_name: str | None,
    reset: str | None,
    verify: str | None,
    state: str | None,
    budget: float | None,
    redact: bool,
    websocket: bool,
    faults: tuple["Fault", ...],
    seed: int,
    limits: "Limits | None",
    command: tuple[str, ...],
) -> None:
    """Run an agent, in any language and unchanged, and record all its traffic on a tape.

    What is in the current folder before is kept in the store, so that replays and forks can work
    in a copy of it. Caches (node_modules, .venv) and files that hold secrets by their name (.env,
    *.pem) are left out; a `.stumbleignore` in the syntax of .gitignore leaves out more, or with
    `!node_modules/` less. In a replay what was left out is shown from where it still is.

    With --fault the live run is struck: --nth and other triggers count the calls of the run as
    the model asks for them. What it did cannot be judged, since there are no clean twins: that
    takes a recording and `stumble fork`.

    \b
    stumble record -o refund.tape -- python my_agent.py
    stumble record --agent mini -- mini -m openai/gpt-4o -t "do the task" -y
    stumble record --match ignore:body.run_id -- python my_agent.py
    stumble record --upstream https://api.openai.com/v1 -- ./agent-without-proxy
    stumble record --snapshot-mb 2000 -- claude -p "fix the failing test"
    stumble record --no-snapshot -- python my_agent.py
    stumble record --fault http_status:code=503 --when probability=0.1 -- python my_agent.py
    stumble record --scenario tasks/fix-ledger -- my-agent -p {instruction}
    """
    command = options.checked(command)
    if output is not None:
        options.check_new(output)

    from faults.armed import live
    from recorder import loop
    from stumble import indexing
    from stumble.benchmarks import launched, staged
    from stumble.benchmarks import told as instructed
    from stumble.home import authority, new_experiment, new_id, store_root
    from stumble.launch import Cold
    from stumble.recording import record as run
    from stumble.runs import Labels
    from stumble.upstreams import read as read_upstreams
    from stumble.worlds import by_command
    from traces.store import Store
    from traces.tape import read

    scenario = matching.scenario(scenario_name)
    rules = matching.rules(scenario, rule_texts)
    with options.usage_errors():
        armed = tuple(live(fault) for fault in faults)
    upstreams = read_upstreams(upstream_texts, base_url_names)
    tools = options.tools(tool_texts)
    world, hosts = by_command(reset, verify, state=state), options.hosts(host_texts)
    brought = scenario.benchmark if scenario else None
    if brought is not None:
        if world is not None:
            raise Wrong(
                f"{scenario_name} brings its own world: --reset, --verify and --state say nothing"
            )
        command, budget, limits = instructed(command, brought), budget or brought.budget, None
    store, id = Store(store_root()), new_id()
    path = output or store.tapes / f"{id}.tape"
    taken = _snapshot(store, limits) if limits else None

    async def recording(scratch: Path) -> "Played":
        async with AsyncExitStack() as stack:
            launch = Cold(command=command, budget=budget)
            stage = await stack.enter_async_context(staged(brought)) if brought else None
            return await run(
                path,
                launched(launch, stage, brought) if stage and brought else launch,
                id=id,
                ca=authority(),
                scratch=scratch,
                hosts={**stage.hosts, **hosts} if stage else hosts,
                world=stage.world if stage else world,
                labels=Labels(
                    agent=agent,
                    model=model,
                    scenario=scenario.name if scenario else None,
                    task=task or (brought.name if brought else None),
                    experiment=new_experiment() if armed else None,
                ),
                rules=rules,
                tools=tools,
                redact=redact,
                websocket=websocket,
                upstreams=upstreams,
                say=lambda line: click.echo(line, err=True),
                workspace=None if brought else Path.cwd(),
                snapshot=taken,
                armed=armed,
                seed=seed,
            )

    if brought is not None:
        for line in brought.weaker:
            click.echo(f"weaker than in {brought.form}: {line}", err=True)
    with TemporaryDirectory(prefix="stumble-") as scratch, options.started(command, path):
        played = loop.run(recording(Path(scratch)))
    # All of a tape is in the memory while it is looked at, so not for longer than that.
    for line in _said(read(path), played, redact=redact):
        click.echo(line, err=True)
    indexing.adopt(store, path, id)
    indexing.refresh(store)
    if played.exit.budget:
        click.echo(f"the agent was ended after {budget:g} s (--budget)", err=True)
    if played.exit.signal is not None:
        raise SystemExit(interrupted(played.exit.signal))
    missed = Exits.NOTHING_FIRED if faults and not played.fired else Exits.OK
    raise SystemExit(Exits.BUDGET if played.exit.budget else played.exit.code or missed)


def _said(tape: "Tape", played: "Played", *, redact: bool) -> list[str]:
    """What was recorded, in words, with what a person should know of it."""
    from stumble.summary import struck, summary, troubles, unseen

    warnings = [*troubles([played]), *unseen(tape)]
    if not redact:
        warnings.insert(0, f"secrets are in it; `stumble scrub {tape.path}` takes them out")
    said = f"recorded {tape.path}: {summary(tape).line()}"
    return [said, *struck(tape, played), *(f"warning: {why}" for why in warnings)]


def _snapshot(store: "Store", limits: "Limits") -> str | None:
    """The name of the snapshot of this folder; None, said with the reason, where there is none."""
    from stumble.workspaces import notes, snapshot

    try:
        with progress("keeping the workspace") as told:
            taken = snapshot(Path.cwd(), store, limits, told)
    except ValueError as error:
        click.echo(
            f"workspace not kept: {error}; see .stumbleignore, --snapshot-mb and "
            "--snapshot-files in `stumble record --help`",
            err=True,
        )
        return None
    for line in notes(taken):
        click.echo(f"workspace: {line}", err=True)
    return taken.name
