"""`stumble probe`: compare a model's next step after a clean and a faulted tool result."""

import json
import sys
from collections.abc import Mapping, Sequence
from copy import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from stumble.cli import options
from stumble.errors import ExitCode, HarnessError, UsageError

if TYPE_CHECKING:
    from stumble.runs.next_step_probe import ProbeQuestion, ProbeSample
    from traces.model import Fault


@click.command(
    epilog="Exit codes: 0 done, 5 too few answers to compare, 6 the model gave no answer, "
    "124 stopped by --max-cost.",
)
@options.tape_argument
@options.fault_injection_options(required=True)
@click.option("--model", required=True, help="Any litellm model: openai/gpt-5, ollama/llama3.")
@click.option(
    "--k",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="Number of answers to sample for the clean result, and for the faulted one.",
)
@click.option(
    "--parallel",
    type=click.IntRange(1),
    default=4,
    show_default=True,
    help="Parallel requests.",
)
@click.option(
    "--max-cost",
    type=click.FloatRange(0),
    metavar="USD",
    help="Cost limit in US dollars; default: no limit.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit of one answer in seconds.",
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
    """Send the recorded request with a tool's result to a model, k times unchanged and k times
    with the fault in the result, and compare the model's next steps.

    Keys and addresses come from litellm's variables: OPENAI_API_KEY, ANTHROPIC_API_KEY,
    OPENAI_API_BASE...

    \b
    stumble probe refund.tape --fault digit --where tool=get_order --model openai/gpt-5 --k 10
    stumble probe refund.tape --fault truncate:keep=0.3 --model anthropic/claude-sonnet-4-5 \\
        --max-cost 0.50
    """  # fmt: skip
    from recorder import event_loop
    from stumble.llm.client import LitellmClient
    from stumble.runs import next_step_probe as probing
    from stumble.runs.fork import find_fork_point
    from stumble.store.tape_files import load_tape
    from stumble.user_data.paths import new_trajectory_id, store_root

    if any(fault.at in ("http", "mcp", "model") for fault in faults):
        raise UsageError("a probe sends model requests only: --at has to be model-boundary")
    recording = load_tape(tape)
    with options.usage_errors():
        boundary_faults = [replace(fault, at="model-boundary") for fault in faults]
        question = probing.build_probe_question(
            find_fork_point(recording, boundary_faults, seed=seed), seed
        )
    each = probing.estimate_answer_cost(question, model)
    _announce_probe(question, model, k, each, max_cost)
    provider = LitellmClient(model, timeout=timeout)
    with click.progressbar(length=2 * k, label="asked", file=sys.stderr,
                           hidden=as_json) as bar:  # fmt: skip
        samples = event_loop.run_event_loop(
            probing.sample_next_steps(
                question,
                partial(provider.ask, question.dialect),
                model=model,
                k=k,
                parallel=parallel,
                most_usd=max_cost,
                seen=lambda sample: bar.update(1),
            )
        )
    data = _probe_to_dict(question, samples, model, k, seed)
    result_path = store_root() / "probes" / f"{new_trajectory_id()}.json"
    result_path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    result_path.write_text(json.dumps(data))
    code = _choose_probe_exit(samples, k)
    click.echo(
        json.dumps(data)
        if as_json
        else f"{_format_probe_report(data)}\nanswers kept in {result_path}"
    )
    raise SystemExit(code)


def _announce_probe(
    question: "ProbeQuestion", model: str, k: int, each: float | None, most: float | None
) -> None:
    injection = question.injection
    if most is not None:
        if each is None:
            raise UsageError(f"no price is known for {model}, so --max-cost cannot be enforced")
        if 2 * k * each > most:
            fits = int(most / (2 * each))
            less = f"--k {fits} fits" if fits else "not even --k 1 fits"
            raise UsageError(
                f"{2 * k} questions cost about ${2 * k * each:.4f}, over --max-cost; {less}"
            )
    cost = "at a price that is not known" if each is None else f"for about ${2 * k * each:.4f}"
    click.echo(
        f"{injection.op} on the result of {injection.tool}: {2 * k} questions to {model} {cost}",
        err=True,
    )


def _probe_to_dict(
    question: "ProbeQuestion", samples: Sequence["ProbeSample"], model: str, k: int, seed: int
) -> dict[str, object]:
    """Return the result as JSON-compatible data."""
    from stumble.runs import next_step_probe as probing

    by = {
        group: [x.action for x in samples if x.group == group and x.action is not None]
        for group in ("clean", "faulted")
    }
    both = bool(by["clean"] and by["faulted"])
    costs = [sample.cost_usd for sample in samples if sample.error is None]
    injection = question.injection
    return {
        "model": model,
        "tool": injection.tool,
        "fault": injection.op,
        "params": dict(injection.params),
        "original": (injection.original or b"").decode("utf-8", "replace"),
        "mutated": (injection.mutated or b"").decode("utf-8", "replace"),
        "recorded_action": probing.to_canonical_action(question.recorded)
        if question.recorded
        else None,
        "asked": len(samples),
        "wanted": 2 * k,
        "errors": [sample.error for sample in samples if sample.error],
        "actions": {name: dict(counts) for name, counts in probing.count_actions(samples).items()},
        "repeats": {g: sum(x.repeats for x in samples if x.group == g) for g in by},
        "distance": probing.measure_action_distance(by["clean"], by["faulted"]) if both else None,
        "p_value": probing.compute_permutation_p_value(by["clean"], by["faulted"], seed),
        "cost_usd": None if None in costs else sum(c for c in costs if c is not None),
        "samples": [to_builtins(sample) for sample in samples],
    }


def _format_probe_report(table: Mapping[str, object]) -> str:
    actions, repeats, cost = table["actions"], table["repeats"], table["cost_usd"]
    assert isinstance(actions, dict)
    assert isinstance(repeats, dict)
    lines = ["clean  faulted  next action"]
    for name, counts in actions.items():
        mark = "  (as recorded)" if name == table["recorded_action"] else ""
        clean, faulted = counts.get("clean", 0), counts.get("faulted", 0)
        lines.append(f"{clean:5}  {faulted:7}  {_shorten_action(name)}{mark}")
    lines.append(f"{repeats['clean']:5}  {repeats['faulted']:7}  made the faulted call again")
    if table["distance"] is not None:
        lines.append(
            f"distance {table['distance']:.2f} of 1, permutation p = {table['p_value']:.3f}"
        )
    errors = table["errors"]
    if isinstance(errors, list) and errors:
        lines.append(f"{len(errors)} without an answer, the first: {errors[0]}")
    lines.append("cost: not known" if cost is None else f"cost: ${cost:.4f}")
    return "\n".join(lines)


def _shorten_action(name: str) -> str:
    return name if len(name) <= 96 else f"{name[:95]}…"


def _choose_probe_exit(samples: Sequence["ProbeSample"], k: int) -> ExitCode:
    answered = [sample for sample in samples if sample.action is not None]
    if samples and not answered:
        raise HarnessError(f"the model gave no answer: {samples[0].error}")
    if len(samples) < 2 * k:
        return ExitCode.BUDGET
    return ExitCode.OK if len({sample.group for sample in answered}) == 2 else ExitCode.NOT_ENOUGH
