"""Checks of a gate as SARIF 2.1.0, for code scanning.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/sarif-v2.1.0-errata01-os-complete.html
"""

import hashlib
import json
from collections.abc import Sequence
from importlib.metadata import version

from stumble.gate.check_case import CheckCase

SCHEMA_URL = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
FINGERPRINT = "stumbleGate/v1"


def render_sarif(cases: Sequence[CheckCase], nothing: str, source: str) -> str:
    """Render a log with a result for each check that does not pass.

    A violated limit is an error. A limit without enough evidence has the kind `open` (3.27.9),
    whose level has to be `none`: it is neither green nor red. Without any case there is one such
    result with the message `nothing`. `source` is the file, relative to the root of the
    repository, at which the results are shown.
    """
    found = [
        case
        for case in cases or (CheckCase(name="gate", verdict="unknown", message=nothing),)
        if case.verdict != "pass"
    ]
    names = list(dict.fromkeys(case.name for case in found))
    rules = [{"id": name, "shortDescription": {"text": f"Limit: {name}"}} for name in names]
    driver = {"name": "stumble", "semanticVersion": version("stumble"), "rules": rules}
    results = [_to_result(case, names.index(case.name), source) for case in found]
    log = {
        "$schema": SCHEMA_URL,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _to_result(case: CheckCase, rule: int, source: str) -> dict[str, object]:
    """Return a result; its fingerprint leaves the figures out, so a new rate is no new alert."""
    subject = case.classname.removeprefix("stumble").removeprefix(".")
    is_failure = case.verdict == "fail"
    location: dict[str, object] = {
        "physicalLocation": {"artifactLocation": {"uri": source}, "region": {"startLine": 1}}
    }
    if subject:
        location["logicalLocations"] = [{"fullyQualifiedName": subject}]
    same = hashlib.sha256(f"{case.name}\n{subject}".encode()).hexdigest()
    return {
        "ruleId": case.name,
        "ruleIndex": rule,
        "kind": "fail" if is_failure else "open",
        "level": "error" if is_failure else "none",
        "message": {"text": ": ".join(filter(None, (subject, case.name, case.message)))},
        "locations": [location],
        "partialFingerprints": {FINGERPRINT: same},
    }
