"""What a fork found, as one JSON object and as a few lines for a person."""

from faults.judge import judge, run
from stumble.forks import Branch, Forked
from stumble.prices import price
from traces.index import rows
from traces.tape import read

MEANING = {
    "recovered": "noticed, and the end state is right",
    "masked": "not noticed, yet the end state is right",
    "honest_fail": "the end state is wrong, and the agent says so",
    "noticed_wrong": "noticed, yet delivered wrong as done",
    "silent_wrong": "not noticed, and delivered wrong as done",
    "crashed": "no final answer",
    "unreached": "the model never saw it",
    None: "unknown",
}


def verdict(found: Branch, forked: Forked) -> dict[str, object]:
    """The fork as plain data."""
    faulted = run(read(forked.faulted.path))
    twins = tuple(run(read(twin.path)) for twin in forked.twins)
    outcomes = [judge(injection, faulted, twins) for injection in faulted.tape.injections]
    first = outcomes[0] if outcomes else None
    return {
        "recording": found.recording.trajectory.id,
        "strike": found.describe(),
        "run": forked.faulted.id,
        "tape": str(forked.faulted.path),
        "agent_exit": forked.faulted.exit.code,
        "fired": forked.faulted.fired,
        "no_site": list(forked.faulted.no_site),
        "diverged": [why for each in (*forked.twins, forked.faulted) for why in each.diverged],
        "missed": list(forked.faulted.missed),
        "outcome": first.outcome if first else None,
        "consumed": first.consumed if first else None,
        "unreached_reason": first.unreached_reason if first else None,
        "noticed": first.noticed if first else None,
        "passed": first.passed if first else None,
        "claims_success": first.claims_success if first else None,
        "baseline_valid": first.baseline_valid if first else None,
        "evidence": list(first.evidence) if first else [],
        "twins": [{"run": t.id, "passed": t.ending.passed} for t in forked.twins],
        "saved_model_calls": len(forked.faulted.saved),
        "saved_usd": _saved(found, forked),
    }


def _saved(found: Branch, forked: Forked) -> float | None:
    """Dollars of the model calls that came from the tape; None where a price is unknown."""
    usage = rows(found.recording, found.told, price)["usage"]
    costs = [row[7] for row in usage if row[1] in forked.faulted.saved]
    known = [cost for cost in costs if isinstance(cost, float)]
    return sum(known) if costs and len(known) == len(costs) else None


def report(said: dict[str, object]) -> str:
    """The fork in words."""
    lines = []
    if not said["fired"]:
        why = f": {said['no_site']}" if said["no_site"] else ": the call was never reached"
        lines.append(f"nothing fired{why}; nothing can be said about recovery")
    else:
        outcome = said["outcome"]
        assert outcome is None or isinstance(outcome, str)
        lines.append(f"outcome: {outcome or 'unknown'} ({MEANING[outcome]})")
        lines += [f"  {line}" for line in said["evidence"]]  # type: ignore[attr-defined]
        lines.append(f"  end state: {_word(said['passed'], 'right', 'wrong')}")
    passes = [twin["passed"] for twin in said["twins"]]  # type: ignore[attr-defined]
    valid = _word(said["baseline_valid"], "valid", "not valid")
    lines.append(f"  clean twins: {passes.count(True)} of {len(passes)} right; baseline {valid}")
    saved = said["saved_usd"]
    money = f" (${saved:.4f})" if isinstance(saved, float) else ""
    lines.append(f"  {said['saved_model_calls']} model calls came from the tape{money}")
    diverged, missed = said["diverged"], said["missed"]
    assert isinstance(diverged, list)
    assert isinstance(missed, list)
    lines += [f"diverged: {why}" for why in diverged[:2]]
    lines += [f"not on the tape, so unknown from here on: {why}" for why in missed[:1]]
    return "\n".join(lines)


def _word(value: object, yes: str, no: str) -> str:
    return "unknown" if value is None else yes if value else no
