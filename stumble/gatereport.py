"""What a gate found, for people and for what reads test results."""

from collections.abc import Sequence
from xml.etree import ElementTree

from stumble.gate import Check, overall, said

_WORD = {"pass": "pass", "fail": "FAIL", "unknown": "not enough evidence"}


def line(check: Check) -> str:
    """One check in one line, with what would decide it."""
    verdict = _WORD[check.verdict]
    told = f"{check}  {check.rate.whose}{by_budget(check)}{more(check)}"
    return f"{verdict:{len(_WORD['unknown'])}}  {told}"


def by_budget(check: Check) -> str:
    """The rate with runs that their budget ended counted the other way, if there are any."""
    rate = check.rate
    if not rate.by_budget:
        return ""
    other = "unknown" if rate.other_rate is None else f"{rate.other_rate:.3f}"
    return f"; {rate.by_budget} ended by their budget, {other} if they are counted the other way"


def more(check: Check) -> str:
    """How many more injections would decide."""
    if check.verdict != "unknown":
        return ""
    if check.needed is None:
        return f"; {_undecidable(check)}"
    return f"; about {check.needed:,} more injections would decide"


def _undecidable(check: Check) -> str:
    if check.rate.rate is None:
        return "strike this agent first"
    return "the rate is the limit itself: no number of injections would decide"


def plain(check: Check) -> dict[str, object]:
    """The check as plain data."""
    rate = check.rate
    return {
        "verdict": check.verdict,
        "measure": check.limit.measure,
        "at_least" if check.limit.least else "at_most": check.limit.value,
        "confidence": rate.confidence,
        "parts": rate.parts,
        "agent": rate.agent,
        "model": rate.model,
        "world": rate.world,
        "part": rate.part,
        "ops": list(rate.ops),
        "hits": rate.hits,
        "cases": rate.cases,
        "traces": rate.traces,
        "n_eff": rate.n_eff,
        "rate": rate.rate,
        "lo": rate.lo,
        "hi": rate.hi,
        "reason": rate.reason,
        "by_budget": rate.by_budget,
        "other_rate": rate.other_rate,
        "needed": check.needed,
    }


def junit(checks: Sequence[Check]) -> str:
    """A test suite with a test case per check; what is not known is an error, never a pass."""
    suite = ElementTree.Element("testsuite", name="stumble gate", tests=str(max(1, len(checks))))
    for check in checks:
        case = ElementTree.SubElement(
            suite, "testcase", classname=f"stumble.{check.rate.whose}", name=str(check.limit)
        )
        if check.verdict != "pass":
            kind = "failure" if check.verdict == "fail" else "error"
            ElementTree.SubElement(case, kind, message=f"{said(check.rate)}{more(check)}")
    if not checks:
        case = ElementTree.SubElement(suite, "testcase", classname="stumble", name="gate")
        ElementTree.SubElement(case, "error", message="no fault was injected")
    for kind in ("failure", "error"):
        suite.set(f"{kind}s", str(len(suite.findall(f"testcase/{kind}"))))
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def markdown(checks: Sequence[Check]) -> str:
    """A table for the summary of a CI run."""
    rows = [
        f"| {_WORD[check.verdict]} | {check.limit} | {said(check.rate)}{more(check)} "
        f"| {_cell(check.rate.whose)} |"
        for check in checks
    ]
    head = [
        f"### stumble gate: {_WORD[overall(checks)]}",
        "",
        "| verdict | limit | rate [interval] (cases) | of |",
        "|---|---|---|---|",
    ]
    return "\n".join([*head, *(rows or ["| | | no fault was injected | |"]), "", ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
