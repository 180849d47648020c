"""`stumble pipeline`: run an agent through the stages of a compiler, grade and record it."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from stumble.cli import options
from stumble.cli.pipeline import newcomer
from stumble.errors import ExitCode, HarnessError, UsageError, signal_to_exit_code

if TYPE_CHECKING:
    from stumble.pipeline.config import Arm, Mode, PipelineConfig
    from stumble.runs.types import RunResult
    from traces.model import Fault
    from traces.tape.reader import Tape


@click.group()
def pipeline() -> None:
    """Run agents through the compiler pipeline: six stages, each built on the one before.

    \b
    stumble pipeline doctor
    stumble pipeline demo
    stumble pipeline run --agent builtin --model openai/gpt-5
    stumble pipeline run --agent 'my-agent -p {task}' --stages T0,T1 --calls 50
    stumble pipeline show RUN
    """


@pipeline.command(
    short_help="Record an agent through all stages and grade each.",
    epilog="Exit codes: 0 all stages were graded, with any scores; 4 no --fault fired.",
)
@click.option(
    "--agent",
    metavar="NAME|COMMAND",
    help="Preset (builtin, claude, codex, mini and others) or command; {task} in it is replaced "
    "by the task, otherwise the task is on standard input; {model} by --model.",
)
@click.option("--model", help="Model name, passed to the agent.")
@click.option("--name", help="Name of the agent in the store.")
@click.option(
    "--stages",
    default="T0,T1,T2,T3,T4,T5",
    show_default=True,
    metavar="T0,T1,...",
    help="Stages to run.",
)
@click.option(
    "--mode",
    type=click.Choice(["guided", "progressive", "autonomous"]),
    default="guided",
    show_default=True,
    help="guided: one conversation and budget per stage; progressive: one of both for all "
    "stages; autonomous: like progressive, without a starter project.",
)
@click.option(
    "--language",
    type=click.Choice(["python", "cpp"]),
    default="python",
    show_default=True,
    help="Language of the starter project.",
)
@click.option(
    "--no-resurrection",
    "arm",
    flag_value="no-resurrection",
    help="Give each stage the output of the previous one, right or wrong.",
)
@click.option(
    "--from-golden",
    "arm",
    flag_value="from-golden",
    help="Give every stage golden artifacts, which grades each stage alone.",
)
@click.option(
    "--attempts",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How often the agent may try a stage: while its score does not pass, it is told the score "
    "and what is left, and started again. The last attempt counts.",
)
@click.option("--calls", type=click.IntRange(1), help="Maximum number of model calls.")
@click.option(
    "--seconds",
    type=options.PositiveSeconds(),
    default=7200,
    show_default=True,
    help="Time limit of the agent in seconds.",
)
@click.option(
    "--dollars",
    type=click.FloatRange(0, min_open=True),
    help="Cost limit in US dollars, for all stages together in every mode; default: no limit.",
)
@click.option("--tokens", type=click.IntRange(1), help="Token limit (prompt + completion).")
@click.option(
    "--sandbox",
    type=click.Choice(["process", "docker", "none"]),
    default="process",
    show_default=True,
    help="Sandbox of the agent, see `stumble sandbox`; none: the agent has the rights of the user.",
)
@click.option("--image", help="Docker image of the sandbox; see `stumble sandbox build`.")
@click.option(
    "--allow",
    "allow",
    multiple=True,
    metavar="HOST[:PORT]",
    help="Extra host a sandboxed agent may reach through the recorder; repeatable.",
)
@click.option(
    "--env",
    "env",
    multiple=True,
    metavar="NAME",
    help="Environment variable to pass to the agent; patterns such as MY_* work. Repeatable.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Parallel grading processes.",
)
@click.option(
    "--workload",
    type=click.Choice(["embedded", "yatcc"]),
    default="embedded",
    show_default=True,
    help="embedded: a compiler for a small C, part of stumble; yatcc: the labs of your checkout.",
)
@click.option(
    "--checkout",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of your configured YatCC; it is copied, never changed.",
)
@click.option(
    "--i-have-permission",
    "permitted",
    is_flag=True,
    help="Confirm that you may let an agent work on YatCC.",
)
@click.option(
    "--programs-seed",
    type=click.IntRange(0),
    help="Seed that the graded programs are drawn from, kept with the run. Default: a random one.",
)
@click.option("--resume", metavar="RUN", help="Resume this interrupted run.")
@options.match_options
@options.fault_injection_options(required=False)
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
    attempts: int,
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
    programs_seed: int | None,
    resume: str | None,
    scenario_name: str | None,
    rule_texts: tuple[str, ...],
    faults: tuple["Fault", ...],
    seed: int,
    host_texts: tuple[str, ...],
    as_json: bool,
) -> None:
    """Record an agent that writes a compiler stage by stage, and grade each stage.

    The agent works in a new workspace. Each stage is graded on a copy of it; if it fails, golden
    artifacts replace its output before the next stage (resurrection). The run is one recording:
    `stumble replay`, `stumble fork --where stage=T2` and `stumble sql "select * from stages"`
    work on it.

    \b
    stumble pipeline run --agent builtin --model openai/gpt-5 --dollars 2
    stumble pipeline run --agent claude --mode progressive --calls 500 --sandbox docker
    stumble pipeline run --resume 20260101T120000-0a1b2c3d
    stumble pipeline run --agent mini --fault hang --where stage=T2
    """
    from faults.targeting.bound_fault import bind_without_recording
    from sandbox.docker.images import DEFAULT_IMAGE
    from stumble.cli import match_options
    from stumble.pipeline.config import PipelineConfig
    from stumble.pipeline.forecast import ask_model, forecast_run
    from stumble.pipeline.runner import (
        PipelineEnvironment,
        record_pipeline_run,
        resume_pipeline_run,
    )
    from stumble.user_data.paths import store_root
    from traces.store.trace_store import TraceStore

    with options.usage_errors():
        bound_faults = tuple(bind_without_recording(fault) for fault in faults)
    environment = PipelineEnvironment(
        store=TraceStore(store_root()),
        hosts=options.parse_host_options(host_texts),
        agent=name,
        rules=match_options.collect_match_rules(
            match_options.load_match_scenario(scenario_name), rule_texts
        ),
        armed=bound_faults,
        seed=seed,
        say=lambda line: click.echo(line, err=True),
    )
    if resume is not None:
        if agent is not None:
            raise UsageError("--resume uses the agent of that run: omit --agent")
        result = resume_pipeline_run(environment, resume)
    else:
        if agent is None:
            raise UsageError("no agent: give --agent with a preset or a command, or --resume RUN")
        limits = {"calls": calls, "tokens": tokens, "dollars": dollars, "seconds": seconds}
        config = PipelineConfig(
            agent=agent,
            model=model,
            stages=parse_stage_names(stages),
            mode=mode,
            arm=arm or "resurrect",
            attempts=attempts,
            limits={kind: value for kind, value in limits.items() if value is not None},
            language=language,
            sandbox=sandbox,  # type: ignore[arg-type]
            image=image or DEFAULT_IMAGE,
            allow=allow,
            env=env,
            jobs=jobs,
            workload=resolve_workload(
                workload, checkout, permitted=permitted, mode=mode, seed=programs_seed
            ),
        )
        check_pipeline_config(config)
        if not environment.hosts:
            ask_model(config)
        for line in forecast_run(config, environment.store.root):
            click.echo(f"pipeline: {line}", err=True)
        result = record_pipeline_run(environment, config)
    end_pipeline_run(result, armed=bool(bound_faults), as_json=as_json)


@pipeline.command(short_help="Show the scores of each stage of a run.")
@click.argument("run")
@click.option("--cases", is_flag=True, help="Also list the cases that are not right, and why.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with all cases.")
def show(run: str, cases: bool, as_json: bool) -> None:
    """Show the scores of each stage of a run. RUN is its id or its tape.

    \b
    stumble pipeline show 20261121T101500-3f2a --cases
    """
    from stumble.pipeline.stage_report import format_stage_cases

    tape = _load_pipeline_tape(run)
    click.echo(_format_pipeline_run(tape, as_json=as_json))
    if cases and not as_json:
        click.echo("\n".join(format_stage_cases(tape)))


@pipeline.command(short_help="Grade a workspace without an agent.")
@click.argument(
    "folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--as-golden", is_flag=True, help="Grade programs that return the golden artifacts.")
@click.option(
    "--starter", type=click.Choice(["python", "cpp"]), help="Grade the unchanged starter project."
)
@click.option(
    "--stages",
    default="T0,T1,T2,T3,T4,T5",
    show_default=True,
    metavar="T0,T1,...",
    help="Stages to grade.",
)
@click.option("--from-golden", is_flag=True, help="Give every stage golden artifacts.")
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=2,
    show_default=True,
    help="Parallel grading processes.",
)
@click.option(
    "--programs-seed",
    type=click.IntRange(0),
    help="Seed that the graded programs are drawn from, kept with the run. Default: a random one.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def grade(
    folder: Path | None,
    as_golden: bool,
    starter: str | None,
    stages: str,
    from_golden: bool,
    jobs: int,
    programs_seed: int | None,
    as_json: bool,
) -> None:
    """Grade a workspace as it is; the result is stored as a run of the agent `folder`.

    --as-golden and --starter grade the two reference points of the scale, stored as runs of the
    agents `golden` and `starter`; no model is called.
    """
    from stumble.pipeline.config import PipelineConfig
    from stumble.pipeline.reference_workspaces import copy_from_folder, lay_out_golden
    from stumble.pipeline.runner import PipelineEnvironment, record_pipeline_run
    from stumble.user_data.paths import store_root
    from traces.store.trace_store import TraceStore

    if [folder is not None, as_golden, starter is not None].count(True) != 1:
        raise UsageError("nothing to grade: give one of FOLDER, --as-golden, --starter python")
    name = "golden" if as_golden else "starter" if starter else "folder"
    config = PipelineConfig(
        agent="",
        stages=parse_stage_names(stages),
        arm="from-golden" if from_golden else "resurrect",
        language=starter or "python",
        jobs=jobs,
        workload=name_embedded_workload(programs_seed),
    )
    check_pipeline_config(config)
    environment = PipelineEnvironment(store=TraceStore(store_root()), hosts={}, agent=name)
    prepare = lay_out_golden if as_golden else copy_from_folder(folder) if folder else None
    end_pipeline_run(
        record_pipeline_run(environment, config, prepare), armed=False, as_json=as_json
    )


@pipeline.command(hidden=True)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def drive(folder: Path) -> None:
    """Drive the agent through the stages: the command that a pipeline run records."""
    from recorder import event_loop
    from stumble.pipeline.driver import drive_pipeline as run

    event_loop.run_event_loop(run(folder.absolute()))


def parse_stage_names(text: str) -> tuple[str, ...]:
    """Parse comma-separated stage names; return them in pipeline order. Raises UsageError."""
    from scenarios.pipeline.compiler.types import STAGES
    from traces.did_you_mean import suggest_nearest_name

    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in STAGES:
            raise UsageError(f"no stage {name!r}{suggest_nearest_name(name, STAGES)}")
    return tuple(stage for stage in STAGES if stage in names)


def name_embedded_workload(seed: int | None) -> str:
    """Return the name of the workload with this seed, or a random one."""
    from secrets import randbelow

    return f"embedded:{1 + randbelow(2**53 - 1) if seed is None else seed}"


def resolve_workload(
    name: str, checkout: Path | None, *, permitted: bool, mode: "Mode", seed: int | None
) -> str:
    """Return the workload's name with its seed or checkout. Prints the licence notice of YatCC
    first.

    Raises UsageError if options conflict or permission was not confirmed.
    """
    from scenarios.pipeline.yatcc.checkout import NOTICE
    from scenarios.pipeline.yatcc.workload import YATCC_PREFIX

    if name == "embedded":
        if checkout is not None or permitted:
            raise UsageError("--checkout and --i-have-permission need --workload yatcc")
        return name_embedded_workload(seed)
    if seed is not None:
        raise UsageError("--programs-seed is for the embedded workload: YatCC has its own programs")
    click.echo(NOTICE, err=True)
    if not permitted:
        raise UsageError("nothing was run: YatCC needs --i-have-permission")
    if checkout is None:
        raise UsageError("YatCC needs --checkout DIR, a configured checkout")
    if mode == "autonomous":
        raise UsageError("YatCC always needs its framework: --mode autonomous is not possible")
    return f"{YATCC_PREFIX}{checkout.resolve()}"


def check_pipeline_config(asked: "PipelineConfig") -> None:
    """Raise UsageError for errors that would otherwise appear only when the agent runs."""
    import shutil

    from scenarios.agents.presets import parse_agent_preset
    from scenarios.pipeline.workload import find_workload

    if (missing := find_workload(asked.workload).missing()) is not None:
        raise UsageError(missing)
    if not asked.agent:
        return
    with options.usage_errors():
        start = parse_agent_preset(asked.agent).to_start_command("", asked.model)
        if asked.mode == "progressive":
            parse_agent_preset(asked.agent).to_start_command("", asked.model, go_on=True)
    if asked.sandbox != "docker" and shutil.which(start.command[0]) is None:
        click.echo(f"stumble: {start.command[0]}: command not found; nothing was run", err=True)
        raise SystemExit(ExitCode.NO_COMMAND)


def _load_pipeline_tape(run: str) -> "Tape":
    from stumble.store.tape_files import load_tape
    from stumble.user_data.paths import store_root
    from traces.did_you_mean import suggest_nearest_name
    from traces.store.trace_store import TraceStore

    path = Path(run)
    if not path.is_file():
        tapes = TraceStore(store_root()).tapes
        path = tapes / f"{run}.tape"
        if not path.is_file():
            runs = [each.stem for each in tapes.glob("*")]
            raise UsageError(f"no run {run!r}{suggest_nearest_name(run, runs)}")
    return load_tape(path)


def _format_pipeline_run(tape: "Tape", *, as_json: bool) -> str:
    from stumble.pipeline.stage_report import (
        describe_unwritten_programs,
        format_stage_table,
        read_stage_rows,
    )
    from traces.pipeline.stages import derive_stage_cases

    rows = read_stage_rows(tape)
    if as_json:
        ending = tape.ending
        return json.dumps(
            {
                "run": tape.trajectory.id,
                "tape": str(tape.path),
                "ended": ending.ended if ending else None,
                "passed": ending.passed if ending else None,
                "stages": [dict(row) for row in rows],
                "cases": [to_builtins(case) for case in derive_stage_cases(tape.marks)],
            }
        )
    return "\n".join((*format_stage_table(rows), *describe_unwritten_programs(rows)))


def end_pipeline_run(played: "RunResult", *, armed: bool, as_json: bool) -> None:
    """Print the scores of a run, and exit with its code.

    Raises HarnessError if the model did not answer in a stage, unless that was the fault.
    """
    from stumble.pipeline.stage_report import describe_silent_provider, read_stage_rows
    from traces.tape.reader import read_tape

    tape = read_tape(played.path)
    click.echo(_format_pipeline_run(tape, as_json=as_json))
    click.echo(f"recorded {played.path}", err=True)
    if played.exit.signal is not None:
        click.echo(f"resume it with `stumble pipeline run --resume {tape.trajectory.id}`", err=True)
        raise SystemExit(signal_to_exit_code(played.exit.signal))
    silent = describe_silent_provider(read_stage_rows(tape))
    if silent is not None and not played.fired:
        raise HarnessError(silent)
    missed = ExitCode.NOTHING_FIRED if armed and not played.fired else ExitCode.OK
    raise SystemExit(played.exit.code or missed)


for command in (newcomer.demo, newcomer.doctor):
    pipeline.add_command(command)
