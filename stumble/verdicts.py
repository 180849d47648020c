"""What a fork found, as one JSON object and as a few lines for a person."""

from faults.judge import judge, run
from stumble.forks import Branch, Forked
from stumble.prices import price
from traces.index import rows
from traces.model import Outcome
from traces.tape import read

MEANING = {
    "recovered": "noticed, and the end state is right",
    "masked": "not noticed, yet the end state is right",
    "honest_fail": "the end state is wrong, and the agent says so",
    "noticed_wrong": "noticed, yet delivered wrong as done",
    "silent_wrong": "not noticed, and delivered wrong as done",
    "crashed": "no final answer",
    "unreached": "the model never saw it",
    None: "no verifier said whether the end state is right, or the run left the tape",
}


def verdict(found: Branch, forked: Forked) -> dict[str, object]:
    """The fork as plain data; what is not known is None."""
    ran = forked.faulted
    first = _judged(forked)
    return {
        "recording": found.recording.trajectory.id,
        "strike": found.describe(),
        "run": ran.id if ran else None,
        "tape": str(ran.path) if ran else None,
        "agent_exit": ran.exit.code if ran else None,
        "fired": ran.fired if ran else 0,
        "no_site": list(ran.no_site) if ran else [],
        "diverged": [why for each in forked.runs for why in each.diverged],
        "missed": list(ran.missed) if ran else [],
        "outcome": first.outcome if first else None,
        "consumed": first.consumed if first else None,
        "unreached_reason": first.unreached_reason if first else None,
        "noticed": first.noticed if first else None,
        "passed": first.passed if first else None,
        "claims_success": first.claims_success if first else None,
        "baseline_valid": first.baseline_valid if first else None,
        "evidence": list(first.evidence) if first else [],
        "twins": [{"run": t.id, "passed": t.ending.passed} for t in forked.twins],
        "saved_model_calls": len(ran.saved) if ran else 0,
        "saved_usd": _saved(found, ran.saved) if ran else None,
    }


def _judged(forked: Forked) -> Outcome | None:
    if forked.faulted is None:
        return None
    faulted = run(read(forked.faulted.path))
    twins = tuple(run(read(twin.path)) for twin in forked.twins)
    injections = faulted.tape.injections
    return judge(injections[0], faulted, twins) if injections else None


def _saved(found: Branch, seqs: tuple[int, ...]) -> float | None:
    """Dollars of the model calls that came from the tape; None where a price is unknown."""
    usage = rows(found.recording, found.told, price)["usage"]
    costs = [row[7] for row in usage if row[1] in seqs]
    known = [cost for cost in costs if isinstance(cost, float)]
    return sum(known) if costs and len(known) == len(costs) else None


def report(said: dict[str, object]) -> str:
    """The fork in words."""
    lines = []
    if not said["fired"]:
        assert isinstance(said["no_site"], list)
        why = said["no_site"][0] if said["no_site"] else "the call was not reached"
        lines.append(f"nothing fired ({why}), so nothing can be said about recovery")
    else:
        outcome = said["outcome"]
        assert outcome is None or isinstance(outcome, str)
        lines.append(f"outcome: {outcome or 'unknown'} ({MEANING[outcome]})")
        lines += [f"  {line}" for line in said["evidence"]]  # type: ignore[attr-defined]
        lines.append(f"  end state: {_word(said['passed'], 'right', 'wrong')}")
    passes = [twin["passed"] for twin in said["twins"]]  # type: ignore[attr-defined]
    lines.append(f"  clean twins: {_twins(passes)}")
    saved = said["saved_usd"]
    money = f" (${saved:.4f})" if isinstance(saved, float) else ""
    saved_calls = said["saved_model_calls"]
    lines.append(
        f"  {saved_calls} model call{'' if saved_calls == 1 else 's'} came from the tape{money}"
    )
    diverged, missed = said["diverged"], said["missed"]
    assert isinstance(diverged, list)
    assert isinstance(missed, list)
    lines += [f"diverged: {why}" for why in diverged[:2]]
    lines += [f"not on the tape, so unknown from here on: {why}" for why in missed[:1]]
    return "\n".join(lines)


def _twins(passes: list[bool | None]) -> str:
    """`3 of 3 right`, and what nobody checked is not called wrong."""
    checked = [passed for passed in passes if passed is not None]
    if not checked:
        return f"{len(passes)}, their end state was not checked"
    unchecked = len(passes) - len(checked)
    more = f", {unchecked} not checked" if unchecked else ""
    return f"{checked.count(True)} of {len(checked)} right{more}"


def _word(value: object, yes: str, no: str) -> str:
    return "unknown" if value is None else yes if value else no
