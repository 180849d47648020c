"""`stumble judge`: second opinions of a model on verdicts; calibration of the claim reader."""

import json
from pathlib import Path

import click


@click.command(
    epilog="Exit codes: 0 done, 2 invalid options or file, 5 no consumed injection to judge.",
)
@click.option("--llm", "model", metavar="MODEL",
              help="Any litellm model, preferably of another family than the agent's.")  # fmt: skip
@click.option("--calibrate", "finals", metavar="JSONL",
              type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="File of labelled final answers; print the accuracy of the claim "
              "reader.")  # fmt: skip
@click.option("--wrong", "shows_wrong", is_flag=True,
              help="With --calibrate, also print the finals that are not read as labelled, by "
              "label, reading and language.")  # fmt: skip
@click.option("--max-cost", type=click.FloatRange(0), default=1.0, show_default=True,
              metavar="USD", help="Cost limit of --llm in US dollars.")  # fmt: skip
@click.option("--max-calls", type=click.IntRange(1), metavar="N",
              help="Maximum number of model calls of --llm; default: no limit.")  # fmt: skip
@click.option("--labels", "labelled", metavar="CSV",
              type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Human labels, with columns injection_id and noticed.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def judge(
    model: str | None,
    finals: Path | None,
    shows_wrong: bool,
    max_cost: float,
    max_calls: int | None,
    labelled: Path | None,
    as_json: bool,
) -> None:
    """Ask a model whether agents noticed their faults, or calibrate the claim reader.

    With --llm, show a model the steps after each consumed injection and each sham, without
    marking which is which, and compare its opinions with the hard signals, with its opinions on
    a rephrased prompt, and with human labels. An opinion counts only with a verbatim quote of
    the agent. Opinions are cached in the store and never enter a rate.

    With --calibrate, classify the claims in a file of labelled final answers, without a model or
    a store, and print labels against readings. A line of the file is a JSON object with
    last_messages, last_tools (call, result), ended, language and label.claim: delivered, partial,
    abstained, asks, admits_failure or none.

    \b
    stumble judge --llm anthropic/claude-haiku-4-5 --max-cost 0.50 --labels mine.csv
    stumble judge --calibrate finals.jsonl --wrong
    """
    if (model is None) == (finals is None):
        raise click.UsageError("give either --llm or --calibrate")
    if shows_wrong and finals is None:
        raise click.UsageError("--wrong needs --calibrate")
    if finals is not None:
        _print_calibration(finals, shows_wrong=shows_wrong, as_json=as_json)
    elif model is not None:
        _ask_llm_judge(model, max_cost, max_calls, labelled, as_json=as_json)


def _print_calibration(finals: Path, *, shows_wrong: bool, as_json: bool) -> None:
    from stumble.verdicts.claim_calibration import (
        calibrate_claims,
        calibration_to_dict,
        calibration_to_lines,
        wrong_readings_to_dicts,
        wrong_readings_to_lines,
    )

    calibration = calibrate_claims(finals)
    if as_json:
        wrong = {"wrong": wrong_readings_to_dicts(calibration)} if shows_wrong else {}
        click.echo(json.dumps(calibration_to_dict(calibration) | wrong))
        return
    click.echo("\n".join(calibration_to_lines(calibration)))
    if shows_wrong:
        click.echo("\n".join(wrong_readings_to_lines(calibration)))


def _ask_llm_judge(
    model: str, max_cost: float, max_calls: int | None, labelled: Path | None, *, as_json: bool
) -> None:
    import asyncio

    from faults.judging.judge import judge_run
    from faults.judging.llm_judge import make_opinion_case
    from stumble.errors import ExitCode
    from stumble.llm.judge import (
        LlmJudge,
        collect_opinions,
        opinions_to_dict,
        summarize_opinions,
    )
    from stumble.store.judged_rows import load_injected_forks
    from stumble.store.open_store import open_indexed_store
    from stumble.verdicts.run_labels import read_run_labels

    labels = read_run_labels(labelled) if labelled else ()
    human = {each.injection_id: each.noticed for each in labels if each.noticed is not None}
    store = open_indexed_store()
    referee = LlmJudge(
        name=model, folder=store.root / "opinions", most_usd=max_cost, most_calls=max_calls
    )
    cases = [
        (shown, judged.verdict, judged.injection.sham)
        for faulted, twins in load_injected_forks(store)
        for judged in judge_run(faulted, twins)
        if (shown := make_opinion_case(judged.injection, faulted)) is not None
    ]
    if not cases:
        click.echo("stumble: no consumed injection in this store: nothing to judge", err=True)
        raise SystemExit(ExitCode.NOT_ENOUGH)
    opinions = asyncio.run(collect_opinions(referee, cases))
    summary = summarize_opinions(referee, opinions, human if labelled else None)
    click.echo(
        json.dumps(opinions_to_dict(summary, opinions))
        if as_json
        else "\n".join(summary.to_lines())
    )
