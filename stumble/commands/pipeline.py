"""`stumble pipeline`: an agent through all stages of a compiler, graded, and on a tape."""

from pathlib import Path

import click


@click.group(short_help="Drive an agent through the six stages of a compiler, and grade it.")
def pipeline() -> None:
    """Run agents through the compiler pipeline: six stages, each built on the one before.

    \b
    stumble pipeline run --agent 'my-agent -p {task}' --stages T0,T1
    stumble sql "select * from stages"
    """


@pipeline.command(short_help="Record an agent going through the stages.")
@click.option("--agent", required=True, metavar="COMMAND", help="{task} stands for the task.")
@click.option("--model", help="What to call the model, if its own answers do not say.")
@click.option("--stages", default="T0,T1,T2,T3,T4,T5", show_default=True)
def run(agent: str, model: str | None, stages: str) -> None:
    """Record an agent going through the stages, and grade each of them."""
    from stumble.pipeline.asked import Asked
    from stumble.pipeline.running import run as record

    raise SystemExit(record(Asked(agent=agent, model=model, stages=tuple(stages.split(",")))))


@pipeline.command(hidden=True)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def drive(folder: Path) -> None:
    """The command that a pipeline run records."""
    from recorder import loop
    from stumble.pipeline.driver import drive as run

    raise SystemExit(loop.run(run(folder.absolute())))
