"""`stumble judge`: second opinions on the verdicts, and how well claims are read."""

import json
from pathlib import Path

import click


@click.command(
    short_help="Second opinions on who noticed; how well claims are read.",
    epilog="Exit codes: 0 asked or calibrated, 2 wrong options or file, 5 nothing to ask about.",
)
@click.option("--llm", "model", metavar="MODEL",
              help="Any model that litellm knows, of another family than the agent's.")  # fmt: skip
@click.option("--calibrate", "finals", metavar="JSONL",
              type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Labelled final answers: print how well claims are read.")  # fmt: skip
@click.option("--max-cost", type=click.FloatRange(0), default=1.0, show_default=True,
              help="US dollars after which no more is asked.")  # fmt: skip
@click.option("--max-calls", type=click.IntRange(1), help="Calls after which no more is asked.")
@click.option("--labels", "labelled", metavar="CSV",
              type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="What people said: injection_id, noticed.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def judge(
    model: str | None,
    finals: Path | None,
    max_cost: float,
    max_calls: int | None,
    labelled: Path | None,
    as_json: bool,
) -> None:
    """Show a model what agents did after each consumed injection and each sham, without saying
    which is which, and hold its opinions against the hard signals, against itself in other words,
    and against labels of people. An opinion counts only with a verbatim quote of the agent.

    Opinions are kept in the store, are paid for once, and never enter a rate.

    With --calibrate, read what agents claim in a file of labelled final answers, without a model
    or a store, and print labels against readings. A line of the file is a JSON object with
    last_messages, last_tools (call, result), ended, language and label.claim: delivered, partial,
    abstained, asks, admits_failure or none.

    \b
    stumble judge --llm anthropic/claude-haiku-4-5 --max-cost 0.50 --labels mine.csv
    stumble judge --calibrate finals.jsonl
    """
    if (model is None) == (finals is None):
        raise click.UsageError("give either --llm or --calibrate")
    if finals is not None:
        _calibrate(finals, as_json=as_json)
    elif model is not None:
        _ask(model, max_cost, max_calls, labelled, as_json=as_json)


def _calibrate(finals: Path, *, as_json: bool) -> None:
    from stumble.calibrating import calibrate, to_dict, to_lines

    found = calibrate(finals)
    click.echo(json.dumps(to_dict(found)) if as_json else "\n".join(to_lines(found)))


def _ask(
    model: str, max_cost: float, max_calls: int | None, labelled: Path | None, *, as_json: bool
) -> None:
    import asyncio

    from faults.judge import judge as by_rules
    from faults.referee import case
    from stumble import indexing
    from stumble.exits import Exits
    from stumble.home import store_root
    from stumble.opinions import Referee, account, hear, labels, said
    from traces.store import Store

    human = labels(labelled) if labelled else None
    store = Store(store_root())
    for refused in indexing.refresh(store):
        click.echo(f"warning: not indexed: {refused}", err=True)
    referee = Referee(
        name=model, folder=store.root / "opinions", most_usd=max_cost, most_calls=max_calls
    )
    cases = [
        (shown, by_rules(injection, faulted, twins), injection.sham)
        for faulted, twins in indexing.all_tried(store)
        for injection in faulted.tape.injections
        if injection.repeat_of is None and (shown := case(injection, faulted)) is not None
    ]
    if not cases:
        click.echo("stumble: no injection of this store was consumed: nothing to ask", err=True)
        raise SystemExit(Exits.NOT_ENOUGH)
    heard = asyncio.run(hear(referee, cases))
    found = account(referee, heard, human)
    click.echo(json.dumps(said(found, heard)) if as_json else "\n".join(found.lines()))
