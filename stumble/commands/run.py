"""`stumble run`: a scenario, in the practice world or with an agent of yours."""

import json
import os
import shlex
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from scenarios.practice import KEY
from stumble import matching, options
from stumble.exits import Exits, Wrong, interrupted
from stumble.progress import progress

if TYPE_CHECKING:
    from scenarios.benchmarks.stage import Stage
    from stumble.scenes import Scene, Setting
    from stumble.verdicts import Findings
    from traces.model import Fault
    from traces.store import Store
    from traces.tape import Tape


@click.command(
    short_help="Run a scenario: record, strike, compare, judge.",
    epilog="Exit codes: 0 judged, 2 the scenario is wrong, 3 diverged first, 4 nothing fired, "
    "5 cannot be judged.",
)
@click.argument("name")
@click.option("--command", "text", metavar="COMMAND", help="Your agent, in place of practice's.")
@click.option("--tape", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="A recording of it, so that no new one is made.")  # fmt: skip
@options.fault_options(required=False, seed=None, aims=True)
@click.option("--twins", type=click.IntRange(0), 
              help="Clean continuations: 3 or more, or 0 for facts without a verdict.")  # fmt: skip
@options.world_options
@options.host_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def run(
    name: str,
    text: str | None,
    tape: Path | None,
    faults: "tuple[Fault, ...]",
    where: tuple[str, ...],
    seed: int | None,
    twins: int | None,
    reset: str | None,
    verify: str | None,
    state: str | None,
    host_texts: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run a ready scenario by its name, one in a file, or the task of a benchmark in a folder:
    record the agent once, strike the recording where the scenario says, or --fault instead of it,
    and judge what the agent made of it.

    Without --command the practice agent works in the practice world, which needs nothing. With
    it your agent does what it does; name the tool that is to be struck where it is called
    otherwise, and how your world is set back and checked.

    \b
    stumble run lost-ack-on-refund
    stumble run lost-ack-on-refund --command "python my_agent.py" --where tool=create_refund \\
        --reset "python reset_shop.py" --verify "python check_shop.py"

    A task folder of Harbor (Terminal-Bench 2) brings its instruction, workspace and tests. The
    agent is given the instruction where its command says {instruction}, else as its last word,
    and in STUMBLE_INSTRUCTION; a new workspace is made before each run, and the tests judge a
    copy of it. There is no container: /app, /logs and /tests are shown by mount namespaces, and
    a task that needs more of its Dockerfile than WORKDIR, COPY and ENV is refused.

    A tau2 domain in one folder (tools.py, db.json, policy.md, tasks.json) brings tools: an MCP
    server at {mcp_url}, in MCP_URL too, on data that is new for each run. The verdict compares
    that data with what the expected calls leave, and looks for what had to be said. No user is
    simulated: the instruction says all at once. With `benchmark = "DIR"` a scenario file names a
    task of either form and says what goes wrong.

    \b
    stumble run tasks/fix-ledger --command "my-agent -p {instruction}" \\
        --fault truncate:keep=0.3 --where tool=bash --nth 2
    stumble run domains/airline#12 --command "my-agent --mcp {mcp_url} {instruction}" \\
        --fault lost_ack --where side=write
    """
    from recorder import loop
    from stumble import indexing
    from stumble.benchmarks import told as instructed
    from stumble.exclusions import check_twins
    from stumble.home import store_root
    from stumble.scenes import scene
    from stumble.tapes import load
    from traces.store import Store

    with options.usage_errors():
        told = scene(name, faults)
        told = told if faults else told.aimed(options.pairs(where))
    said = told.scenario
    twins = said.twins if twins is None else twins
    with options.usage_errors():
        check_twins(twins)
    if not told.faults:
        raise Wrong(f"{name} is a task without a fault: say --fault")
    try:
        command = tuple(shlex.split(text)) if text else said.command
        if command and said.benchmark is not None:
            command = instructed(command, said.benchmark)
    except ValueError as error:
        raise Wrong(f"--command {text!r}: {error}") from None
    recording: Tape | None = None
    if tape is not None:
        recording = load(tape)
        matching.check(recording.trajectory.rules, tape)
        command = command or recording.trajectory.command
    if command:
        options.checked(command)
    elif tape is not None or said.practice is None:
        why = f"{tape} names no command" if tape else f"{said.path} is not for the practice world"
        raise Wrong(f"{why}: say --command")
    elif reset or verify or state or host_texts:
        raise Wrong(
            "--reset, --verify, --state and --host are for an agent of yours: say --command"
        )
    if said.benchmark is not None and (reset or verify or state):
        raise Wrong(f"{name} brings its own world: --reset, --verify and --state say nothing")
    store = Store(store_root())
    try:
        gave = loop.run(
            _run(
                told,
                command,
                recording,
                store,
                seed=said.seed if seed is None else seed,
                twins=twins,
                reset=reset or said.reset,
                verify=verify or said.verify,
                state=state or said.state,
                host_texts=host_texts,
            )
        )
    except LookupError as error:
        click.echo(f"nothing fired: not_fired, {error.args[0]}", err=True)
        raise SystemExit(Exits.NOTHING_FIRED) from None
    indexing.refresh(store)
    data = {"scenario": said.name} | gave.said()
    click.echo(json.dumps(data) if as_json else "\n".join(gave.report()))
    signal = next((ran.exit.signal for ran in gave.forked.runs if ran.exit.signal), None)
    raise SystemExit(gave.code if signal is None else interrupted(signal))


async def _run(
    told: "Scene",
    command: tuple[str, ...],
    recording: "Tape | None",
    store: "Store",
    *,
    seed: int,
    twins: int,
    reset: str | None,
    verify: str | None,
    state: str | None,
    host_texts: tuple[str, ...],
) -> "Findings":
    from stumble.benchmarks import staged
    from stumble.home import authority
    from stumble.scenes import practising, recorded, struck
    from stumble.stagecraft import apart
    from stumble.theatre import theatre

    said, ours = told.scenario, not command
    with TemporaryDirectory(prefix="stumble-") as name:
        folder = Path(name)
        async with AsyncExitStack() as stack:
            if ours and said.practice is not None:
                os.environ.setdefault("OPENAI_API_KEY", KEY)
                at = practising(said, said.practice, folder)
                setting = await stack.enter_async_context(at)
            elif said.benchmark is not None:
                brought = said.benchmark
                for line in brought.weaker:
                    click.echo(f"weaker than in {brought.form}: {line}", err=True)
                stage = await stack.enter_async_context(staged(brought))
                setting = _brought(told, command, store, stage, host_texts)
            else:
                setting = _own(told, command, store, reset, verify, state, host_texts)
            here = not ours and said.benchmark is None
            if recording is None:
                click.echo(f"{said.name}: recording", err=True)
                recording = await recorded(
                    told, setting, store, ca=authority(), scratch=folder,
                    workspace=Path.cwd() if here else None, snapshot=_kept(store) if here else None,
                )  # fmt: skip
            copies = None
            if here:
                live = "after the strike the agent is live"
                set_apart = apart(
                    recording.trajectory, store, live=live, in_place=False, keep=False
                )
                click.echo(set_apart.where(), err=True)
                copies = set_apart.workspace
            house = theatre(ca=authority(), scratch=folder, hosts=setting.hosts, out=True)
            return await struck(
                told,
                setting,
                recording,
                await stack.enter_async_context(house),
                store,
                seed=seed,
                twins=twins,
                workspace=copies,
                progress=lambda what: click.echo(what, err=True),
            )


def _own(
    told: "Scene",
    command: tuple[str, ...],
    store: "Store",
    reset: str | None,
    verify: str | None,
    state: str | None,
    host_texts: tuple[str, ...],
) -> "Setting":
    """The user's own agent, in their own world."""
    from stumble.launch import Cold
    from stumble.runs import Labels
    from stumble.scenes import Setting
    from stumble.worlds import by_command

    said = told.scenario

    def launch(name: str) -> Cold:
        output = store.log(f"{said.name}-{name}")
        return Cold(command=command, budget=said.budget, output=output)

    return Setting(
        hosts=options.hosts(host_texts),
        world=by_command(reset, verify, said.answer if reset == said.reset else None, state=state),
        launch=launch,
        labels=Labels(agent=said.agent, model=said.model, scenario=said.name, task=said.task),
    )


def _brought(
    told: "Scene",
    command: tuple[str, ...],
    store: "Store",
    stage: "Stage",
    host_texts: tuple[str, ...],
) -> "Setting":
    """The user's own agent, at a task that brings its world."""
    from stumble.benchmarks import launched
    from stumble.launch import Cold
    from stumble.runs import Labels
    from stumble.scenes import Setting

    said = told.scenario
    brought = said.benchmark
    assert brought is not None

    def launch(name: str) -> Cold:
        output = store.log(f"{said.name}-{name}")
        return launched(Cold(command=command, budget=said.budget, output=output), stage, brought)

    return Setting(
        hosts={**stage.hosts, **options.hosts(host_texts)},
        world=stage.world,
        launch=launch,
        labels=Labels(agent=said.agent, model=said.model, scenario=said.name, task=said.task),
    )


def _kept(store: "Store") -> str | None:
    """The name of a snapshot of this folder; None, said with the reason, where there is none."""
    from scenarios.workspace.snapshot import Limits
    from stumble.workspaces import snapshot

    try:
        with progress("keeping the workspace") as seen:
            return snapshot(Path.cwd(), store, Limits(), seen).name
    except ValueError as error:
        click.echo(f"workspace not kept: {error}", err=True)
        return None
