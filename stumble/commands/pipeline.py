"""`stumble pipeline`: an agent through all stages of a compiler, graded, and on a tape."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble import options
from stumble.commands import pipeline_golden
from stumble.exits import Exits, Wrong, interrupted

if TYPE_CHECKING:
    from stumble.pipeline.asked import Arm, Asked, Mode
    from stumble.runs import Played
    from traces.model import Fault
    from traces.tape import Tape


@click.group(short_help="Drive an agent through the six stages of a compiler, and grade it.")
def pipeline() -> None:
    """Run agents through the compiler pipeline: six stages, each built on the one before.

    \b
    stumble pipeline run --agent builtin --model openai/gpt-5
    stumble pipeline run --agent 'my-agent -p {task}' --stages T0,T1 --calls 50
    stumble pipeline show RUN
    """


@pipeline.command(
    short_help="Record an agent going through the stages, each graded.",
    epilog="Exit codes: 0 all stages were graded, whatever they came to; 4 no --fault fired.",
)
@click.option(
    "--agent",
    metavar="NAME|COMMAND",
    help="builtin, claude, codex, mini and others, or a command; {task} in it stands for the "
    "task, which comes on standard input where it is not there.",
)
@click.option("--model", help="Handed to the agent.")
@click.option("--name", help="What to call the agent in the store.")
@click.option("--stages", default="T0,T1,T2,T3,T4,T5", show_default=True, metavar="T0,T1,...")
@click.option(
    "--mode",
    type=click.Choice(["guided", "progressive", "autonomous"]),
    default="guided",
    show_default=True,
    help="A conversation and a budget for each stage; one of both for all; or no starter.",
)
@click.option(
    "--language",
    type=click.Choice(["python", "cpp"]),
    default="python",
    show_default=True,
    help="Of the starter.",
)
@click.option(
    "--no-resurrection",
    "arm",
    flag_value="no-resurrection",
    help="What a stage left is what the next one is given, right or not.",
)
@click.option(
    "--from-golden",
    "arm",
    flag_value="from-golden",
    help="Each stage is given golden artifacts: what it cannot solve then, it cannot solve.",
)
@click.option("--calls", type=click.IntRange(1), help="Answers of models, at most.")
@click.option(
    "--seconds", type=options.Seconds(), default=7200, show_default=True, help="Of the agent's."
)
@click.option("--dollars", type=click.FloatRange(0, min_open=True))
@click.option("--tokens", type=click.IntRange(1), help="Of prompts and answers.")
@click.option(
    "--sandbox",
    type=click.Choice(["process", "docker", "none"]),
    default="process",
    show_default=True,
    help="Where the agent works: see `stumble sandbox`; none is as free as its user.",
)
@click.option("--image", help="What docker's containers are made of; see `stumble sandbox build`.")
@click.option(
    "--allow",
    "allow",
    multiple=True,
    metavar="HOST[:PORT]",
    help="Whom a sandboxed agent may reach, by the recorder, besides models.",
)
@click.option(
    "--env", "env", multiple=True, metavar="NAME", help="A variable that it gets; MY_* too."
)
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True, help="Of a grader.")
@click.option(
    "--workload",
    type=click.Choice(["embedded", "yatcc"]),
    default="embedded",
    show_default=True,
    help="Our own compiler of a small C, or the labs of a checkout that you have.",
)
@click.option(
    "--checkout",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where your configured YatCC is; it is copied, never changed.",
)
@click.option(
    "--i-have-permission", "permitted", is_flag=True, help="To have an agent work on YatCC."
)
@click.option("--resume", metavar="RUN", help="Go on where this run was ended.")
@options.match_options
@options.fault_options(required=False)
@options.host_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def run(
    agent: str | None,
    model: str | None,
    name: str | None,
    stages: str,
    mode: "Mode",
    language: str,
    arm: "Arm | None",
    calls: int | None,
    seconds: float,
    dollars: float | None,
    tokens: int | None,
    sandbox: str,
    image: str | None,
    allow: tuple[str, ...],
    env: tuple[str, ...],
    jobs: int,
    workload: str,
    checkout: Path | None,
    permitted: bool,
    resume: str | None,
    scenario_name: str | None,
    rule_texts: tuple[str, ...],
    faults: tuple["Fault", ...],
    seed: int,
    host_texts: tuple[str, ...],
    as_json: bool,
) -> None:
    """Record an agent going through the stages of a compiler, and grade each of them.

    The agent works in a workspace of its own. Each stage is graded on a copy of it, and where one
    fails, golden artifacts take the place of its own before the next one (resurrection). The
    whole is one recording: `stumble replay`, `stumble fork --where stage=T2` and `stumble sql
    "select * from stages"` work on it.

    \b
    stumble pipeline run --agent builtin --model openai/gpt-5 --dollars 2
    stumble pipeline run --agent claude --mode progressive --calls 500 --sandbox docker
    stumble pipeline run --resume 20260101T120000-0a1b2c3d
    stumble pipeline run --agent mini --fault timeout --where stage=T2
    """
    from faults.armed import live
    from scenarios.sandbox.images import IMAGE
    from stumble import matching
    from stumble.home import store_root
    from stumble.pipeline.asked import Asked
    from stumble.pipeline.running import Ground, begun, resumed
    from traces.store import Store

    with options.usage_errors():
        armed = tuple(live(fault) for fault in faults)
    ground = Ground(
        store=Store(store_root()),
        hosts=options.hosts(host_texts),
        agent=name,
        rules=matching.rules(matching.scenario(scenario_name), rule_texts),
        armed=armed,
        seed=seed,
        say=lambda line: click.echo(line, err=True),
    )
    if resume is not None:
        if agent is not None:
            raise Wrong("--resume goes on with the agent of that run: leave --agent out")
        played = resumed(ground, resume)
    else:
        if agent is None:
            raise Wrong("which agent? --agent NAME or a command, or --resume RUN")
        limits = {"calls": calls, "tokens": tokens, "dollars": dollars, "seconds": seconds}
        asked = Asked(
            agent=agent,
            model=model,
            stages=_stages(stages),
            mode=mode,
            arm=arm or "resurrect",
            limits={kind: value for kind, value in limits.items() if value is not None},
            language=language,
            sandbox=sandbox,  # type: ignore[arg-type]
            image=image or IMAGE,
            allow=allow,
            env=env,
            jobs=jobs,
            workload=_workload(workload, checkout, permitted=permitted, mode=mode),
        )
        _check(asked)
        played = begun(ground, asked)
    _end(played, armed=bool(armed), as_json=as_json)


@pipeline.command(short_help="What each stage of a run came to.")
@click.argument("run")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(run: str, as_json: bool) -> None:
    """Show what each stage of a run came to: RUN is its id or its tape."""
    click.echo(_told(_tape(run), as_json=as_json))


@pipeline.command(short_help="Grade a workspace, without any agent.")
@click.argument(
    "folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--as-golden", is_flag=True, help="Programs that answer with golden artifacts.")
@click.option("--starter", type=click.Choice(["python", "cpp"]), help="The untouched starter.")
@click.option("--stages", default="T0,T1,T2,T3,T4,T5", show_default=True, metavar="T0,T1,...")
@click.option("--from-golden", is_flag=True, help="Each stage is given golden artifacts.")
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def grade(
    folder: Path | None,
    as_golden: bool,
    starter: str | None,
    stages: str,
    from_golden: bool,
    jobs: int,
    as_json: bool,
) -> None:
    """Grade a workspace as it lies; it is kept as a run of the agent `folder`.

    With --as-golden or --starter nothing is asked of anybody: these are the rows that others
    stand between, kept as runs of the agents `golden` and `starter`.
    """
    from stumble.home import store_root
    from stumble.pipeline.asked import Asked
    from stumble.pipeline.baseline import golden, of_folder
    from stumble.pipeline.running import Ground, begun
    from traces.store import Store

    if [folder is not None, as_golden, starter is not None].count(True) != 1:
        raise Wrong("what is to be graded? A FOLDER, or --as-golden, or --starter python")
    name = "golden" if as_golden else "starter" if starter else "folder"
    asked = Asked(
        agent="",
        stages=_stages(stages),
        arm="from-golden" if from_golden else "resurrect",
        language=starter or "python",
        jobs=jobs,
    )
    _check(asked)
    ground = Ground(store=Store(store_root()), hosts={}, agent=name)
    prepare = golden if as_golden else of_folder(folder) if folder else None
    _end(begun(ground, asked, prepare), armed=False, as_json=as_json)


@pipeline.command(hidden=True)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def drive(folder: Path) -> None:
    """The command that a pipeline run records."""
    from recorder import loop
    from stumble.pipeline.driver import drive as run

    loop.run(run(folder.absolute()))


def _stages(text: str) -> tuple[str, ...]:
    """The stages that a text names, in their order."""
    from scenarios.compiler.contract import STAGES
    from traces.nearest import nearest

    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in STAGES:
            raise Wrong(f"no stage is called {name!r}{nearest(name, STAGES)}")
    return tuple(stage for stage in STAGES if stage in names)


def _workload(name: str, checkout: Path | None, *, permitted: bool, mode: "Mode") -> str:
    """The workload with its checkout; the notice on its licence goes before everything else."""
    from scenarios.yatcc.checkout import NOTICE
    from stumble.pipeline.yatcc import YATCC

    if name == "embedded":
        if checkout is not None or permitted:
            raise Wrong("--checkout and --i-have-permission go with --workload yatcc")
        return name
    click.echo(NOTICE, err=True)
    if not permitted:
        raise Wrong("nothing was run: it takes --i-have-permission")
    if checkout is None:
        raise Wrong("where is YatCC? --checkout DIR names a configured checkout")
    if mode == "autonomous":
        raise Wrong("YatCC has no workspace without its framework: not --mode autonomous")
    return f"{YATCC}{checkout.resolve()}"


def _check(asked: "Asked") -> None:
    """Wrong, in one line, for what would only come out once the agent runs."""
    import shutil

    from scenarios.agents.presets import preset
    from stumble.pipeline.workload import workload

    if (missing := workload(asked.workload).missing()) is not None:
        raise Wrong(missing)
    if not asked.agent:
        return
    with options.usage_errors():
        start = preset(asked.agent).start("", asked.model)
        if asked.mode == "progressive":
            preset(asked.agent).start("", asked.model, go_on=True)
    if asked.sandbox != "docker" and shutil.which(start.command[0]) is None:
        click.echo(f"stumble: {start.command[0]}: command not found; nothing was run", err=True)
        raise SystemExit(Exits.NO_COMMAND)


def _tape(run: str) -> "Tape":
    from stumble.home import store_root
    from stumble.tapes import load
    from traces.nearest import nearest
    from traces.store import Store

    path = Path(run)
    if not path.is_file():
        tapes = Store(store_root()).tapes
        path = tapes / f"{run}.tape"
        if not path.is_file():
            raise Wrong(f"no run {run!r}{nearest(run, [each.stem for each in tapes.glob('*')])}")
    return load(path)


def _told(tape: "Tape", *, as_json: bool) -> str:
    from stumble.pipeline.table import lines, stages

    found = stages(tape)
    if as_json:
        ending = tape.ending
        return json.dumps(
            {
                "run": tape.trajectory.id,
                "tape": str(tape.path),
                "ended": ending.ended if ending else None,
                "passed": ending.passed if ending else None,
                "stages": [dict(row) for row in found],
            }
        )
    return "\n".join(lines(found))


def _end(played: "Played", *, armed: bool, as_json: bool) -> None:
    """Say what a run came to, and end as it did."""
    from traces.tape import read

    tape = read(played.path)
    click.echo(_told(tape, as_json=as_json))
    click.echo(f"recorded {played.path}", err=True)
    if played.exit.signal is not None:
        click.echo(
            f"it goes on with `stumble pipeline run --resume {tape.trajectory.id}`", err=True
        )
        raise SystemExit(interrupted(played.exit.signal))
    missed = Exits.NOTHING_FIRED if armed and not played.fired else Exits.OK
    raise SystemExit(played.exit.code or missed)


pipeline.add_command(pipeline_golden.golden)
