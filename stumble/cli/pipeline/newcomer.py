"""`stumble pipeline doctor` and `demo`: what a first run needs, and a run without a key."""

from pathlib import Path

import click

from stumble.errors import ExitCode

DEMO_MODEL = "openai/practice/solver:T0=good,T1=good,T2=half,T3=good,T4=fair,T5=good"
"""It fails at the parser, so that the demo shows a resurrection."""
_NEXT = """
  stumble pipeline show {run} --cases
  stumble replay {tape}
  stumble fork {tape} --fault truncate --where stage={stage}
  stumble leaderboard"""


@click.command(short_help="Run all stages with a scripted model; no key, no network.")
@click.option(
    "--stages",
    default="T0,T1,T2,T3,T4,T5",
    show_default=True,
    metavar="T0,T1,...",
    help="Stages to run.",
)
@click.option(
    "--sandbox",
    type=click.Choice(["process", "docker", "none"]),
    default="process",
    show_default=True,
    help="Sandbox of the agent.",
)
@click.option(
    "--agent",
    default="builtin",
    show_default=True,
    metavar="NAME|COMMAND",
    help="Agent, as for `stumble pipeline run`; it finds the model by OPENAI_BASE_URL.",
)
@click.option("--model", default=DEMO_MODEL, show_default=True, help="Scripted model.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def demo(stages: str, sandbox: str, agent: str, model: str, as_json: bool) -> None:
    """Record and grade the built-in agent in all six stages, with a scripted model.

    The model puts prepared programs in place. That of T2, the parser, is too weak to pass, so
    golden artifacts replace its output, and the later stages build on these. Takes two minutes.
    """
    from scenarios.practice.pipeline_model import serve_practice_model
    from stumble.cli.pipeline.pipeline import (
        check_pipeline_config,
        end_pipeline_run,
        name_embedded_workload,
        parse_stage_names,
    )
    from stumble.pipeline.config import PipelineConfig
    from stumble.pipeline.runner import PipelineEnvironment, record_pipeline_run
    from stumble.user_data.paths import store_root
    from traces.store.trace_store import TraceStore

    config = PipelineConfig(
        agent=agent,
        model=model,
        stages=parse_stage_names(stages),
        sandbox=sandbox,  # type: ignore[arg-type]
        workload=name_embedded_workload(None),
    )
    check_pipeline_config(config)
    with serve_practice_model() as hosts:
        environment = PipelineEnvironment(
            store=TraceStore(store_root()),
            hosts=hosts,
            agent="solver" if agent == "builtin" else None,
            say=lambda line: click.echo(line, err=True),
        )
        result = record_pipeline_run(environment, config)
    if not as_json:
        words = {"run": result.id, "tape": result.path, "stage": config.stages[-1]}
        click.echo(f"Go on with:{_NEXT.format(**words)}\n", err=True)
    end_pipeline_run(result, armed=False, as_json=as_json)


@click.command(short_help="Check what a run needs on this machine.")
@click.option(
    "--workload", type=click.Choice(["embedded", "yatcc"]), default="embedded", show_default=True
)
@click.option(
    "--checkout",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of your configured YatCC.",
)
def doctor(workload: str, checkout: Path | None) -> None:
    """List the programs, sandboxes and agents that are here, and what is missing.

    Nothing is installed and no agent is started. Exit codes: 0 a run is possible, 1 it is not.

    \b
    stumble pipeline doctor
    stumble pipeline doctor --workload yatcc --checkout ~/YatCC
    """
    import os

    from recorder import event_loop
    from stumble.cli.pipeline.pipeline import resolve_workload
    from stumble.pipeline.doctor import examine_pipeline

    name = resolve_workload(
        workload, checkout, permitted=workload == "yatcc", mode="guided", seed=None
    )
    lines = event_loop.run_event_loop(examine_pipeline(name, os.environ))
    for line in lines:
        mark = "-" if line.ok is None else "ok" if line.ok else "MISSING"
        click.echo(f"{mark:8}{line.what}")
        if line.next:
            click.echo(f"        {line.next}")
    if any(line.ok is False for line in lines):
        raise SystemExit(ExitCode.FINDING)
