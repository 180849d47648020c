"""`stumble probe`: what a model does next with a struck tool result; needs no agent."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble import options
from stumble.exits import Exits, Failed, Wrong

if TYPE_CHECKING:
    from stumble.probe import Question, Sample
    from traces.model import Fault


@click.command(
    short_help="Ask a model what it does next with a struck tool result.",
    epilog="Exit codes: 0 asked, 5 too few answers to compare, 6 the model could not be asked, "
    "124 stopped by --max-cost.",
)
@options.tape_path
@options.fault_options(required=True)
@click.option("--model", required=True, help="Any model of litellm: openai/gpt-5, ollama/llama3.")
@click.option(
    "--k",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="Answers with the clean result, and as many with the struck one.",
)
@click.option(
    "--parallel",
    type=click.IntRange(1),
    default=4,
    show_default=True,
    help="Questions under way at once.",
)
@click.option(
    "--max-cost", type=click.FloatRange(0), metavar="USD", help="Ask no more than this can pay for."
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="How long one answer may take.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def probe(
    tape: Path,
    faults: tuple["Fault", ...],
    seed: int,
    model: str,
    k: int,
    parallel: int,
    max_cost: float | None,
    timeout: float,
    as_json: bool,
) -> None:
    """Send the recorded request that carries a tool's result to a model, k times as it was and
    k times with the result struck, and compare what the model does next.

    Keys and addresses are litellm's: OPENAI_API_KEY, ANTHROPIC_API_KEY, OPENAI_API_BASE...

    \b
    stumble probe refund.tape --fault digit --where tool=get_order --model openai/gpt-5 --k 10
    stumble probe refund.tape --fault truncate:keep=0.3 --model anthropic/claude-sonnet-4-5 \\
        --max-cost 0.50
    """  # fmt: skip
    from recorder import loop
    from stumble import probe as probing
    from stumble.forks import branch
    from stumble.home import new_id, store_root
    from stumble.models import Model
    from stumble.tapes import load

    if any(fault.at in ("http", "mcp", "model") for fault in faults):
        raise Wrong("a probe sends a model request only, so it strikes at the model boundary")
    recording = load(tape)
    with options.usage_errors():
        told = [replace(fault, at="model-boundary") for fault in faults]
        question = probing.question(branch(recording, told, seed=seed), seed)
    each = probing.estimate(question, model)
    _announce(question, model, k, each, max_cost)
    provider = Model(model, timeout=timeout)
    with click.progressbar(length=2 * k, label="asked", file=sys.stderr,
                           hidden=as_json) as bar:  # fmt: skip
        samples = loop.run(
            probing.probe(
                question,
                partial(provider.ask, question.dialect),
                model=model,
                k=k,
                parallel=parallel,
                most_usd=max_cost,
                seen=lambda sample: bar.update(1),
            )
        )
    said = _said(question, samples, model, k, seed)
    kept = store_root() / "probes" / f"{new_id()}.json"
    kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    kept.write_text(json.dumps(said))
    code = _exit(samples, k)
    click.echo(json.dumps(said) if as_json else f"{_report(said)}\nanswers kept in {kept}")
    raise SystemExit(code)


def _announce(
    question: "Question", model: str, k: int, each: float | None, most: float | None
) -> None:
    struck = question.injection
    if most is not None:
        if each is None:
            raise Wrong(f"no price is known for {model}, so --max-cost cannot be kept")
        if 2 * k * each > most:
            fits = int(most / (2 * each))
            less = f"--k {fits} fits" if fits else "not even --k 1 fits"
            raise Wrong(
                f"{2 * k} questions cost about ${2 * k * each:.4f}, over --max-cost; {less}"
            )
    cost = "at a price that is not known" if each is None else f"for about ${2 * k * each:.4f}"
    click.echo(
        f"{struck.op} on the result of {struck.tool}: {2 * k} questions to {model} {cost}", err=True
    )


def _said(
    question: "Question", samples: Sequence["Sample"], model: str, k: int, seed: int
) -> dict[str, object]:
    """The whole as plain data."""
    from stumble import probe as probing

    by = {
        group: [x.action for x in samples if x.group == group and x.action is not None]
        for group in ("clean", "faulted")
    }
    both = bool(by["clean"] and by["faulted"])
    costs = [sample.cost_usd for sample in samples if sample.error is None]
    struck = question.injection
    return {
        "model": model,
        "tool": struck.tool,
        "fault": struck.op,
        "params": dict(struck.params),
        "original": (struck.original or b"").decode("utf-8", "replace"),
        "mutated": (struck.mutated or b"").decode("utf-8", "replace"),
        "recorded_action": probing.action(question.recorded) if question.recorded else None,
        "asked": len(samples),
        "wanted": 2 * k,
        "errors": [sample.error for sample in samples if sample.error],
        "actions": {name: dict(counts) for name, counts in probing.tally(samples).items()},
        "repeats": {g: sum(x.repeats for x in samples if x.group == g) for g in by},
        "distance": probing.distance(by["clean"], by["faulted"]) if both else None,
        "p_value": probing.p_value(by["clean"], by["faulted"], seed),
        "cost_usd": None if None in costs else sum(c for c in costs if c is not None),
        "samples": [asdict(sample) for sample in samples],
    }


def _report(said: Mapping[str, object]) -> str:
    actions, repeats, cost = said["actions"], said["repeats"], said["cost_usd"]
    assert isinstance(actions, dict)
    assert isinstance(repeats, dict)
    lines = ["clean  faulted  next action"]
    for name, counts in actions.items():
        mark = "  (as recorded)" if name == said["recorded_action"] else ""
        clean, faulted = counts.get("clean", 0), counts.get("faulted", 0)
        lines.append(f"{clean:5}  {faulted:7}  {_short(name)}{mark}")
    lines.append(f"{repeats['clean']:5}  {repeats['faulted']:7}  made the struck call again")
    if said["distance"] is not None:
        lines.append(f"distance {said['distance']:.2f} of 1, permutation p = {said['p_value']:.3f}")
    errors = said["errors"]
    if isinstance(errors, list) and errors:
        lines.append(f"{len(errors)} without an answer, the first: {errors[0]}")
    lines.append("cost: not known" if cost is None else f"cost: ${cost:.4f}")
    return "\n".join(lines)


def _short(name: str) -> str:
    return name if len(name) <= 96 else f"{name[:95]}…"


def _exit(samples: Sequence["Sample"], k: int) -> Exits:
    answered = [sample for sample in samples if sample.action is not None]
    if samples and not answered:
        raise Failed(f"the model could not be asked: {samples[0].error}")
    if len(samples) < 2 * k:
        return Exits.BUDGET
    return Exits.OK if len({sample.group for sample in answered}) == 2 else Exits.NOT_ENOUGH
