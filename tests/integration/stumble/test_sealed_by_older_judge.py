"""A campaign that was sealed under an earlier judge: its own verdicts answer, today's beside them.

The recordings are those of the published study, which judge 6 judged.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.campaign_folder import Bench
from traces.model import JUDGE_VERSION

RESULTS = Path(__file__).resolve().parents[3] / "docs" / "results" / "real-model"
CANDIDATE, BASELINE = "t0-read-back", "t0-none"
GATE = ("gate", "--campaign", CANDIDATE, "--require-seal")


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """The folder of two parts with their seals and verdicts, and a store with their runs."""
    bench = Bench(tmp_path_factory.mktemp("study"))
    for name in (CANDIDATE, BASELINE):
        for ending in ("toml", "seal.json", "verdicts.csv", "stumble"):
            shutil.copy(RESULTS / f"{name}.{ending}", bench.folder)
        assert bench.stumble("unpack", f"{name}.stumble").code == 0
    went_on = bench.stumble("campaign", f"{CANDIDATE}.toml", "--jobs", "1", "--json")
    assert (went_on.code, went_on.json["answer"]) == (0, "pass")
    return bench


def edit_verdicts(bench: Bench, name: str, edit: Callable[[str], str]) -> None:
    path = bench.folder / ".stumble" / "campaigns" / name / "verdicts.csv"
    path.write_text(edit((RESULTS / f"{name}.verdicts.csv").read_text()))


@pytest.mark.gate
def test_both_judges_answer(study: Bench) -> None:
    result = study.stumble(*GATE)
    assert result.code == 0, result.err
    assert "by the verdicts of judge 6, kept when it was sealed" in result.out
    assert f"by judge {JUDGE_VERSION} of today: PASS, 1.000 and 0.000" in result.out
    [check] = study.stumble(*GATE, "--json").json["checks"]
    assert (check["judge"], check["by_today"]["judge"]) == (6, JUDGE_VERSION)


@pytest.mark.gate
def test_the_kept_verdicts_decide_and_not_those_of_today(study: Bench) -> None:
    edit_verdicts(study, CANDIDATE, lambda text: text.replace("True,True,True", "True,False,False"))
    try:
        result = study.stumble(*GATE, "--json")
    finally:
        edit_verdicts(study, CANDIDATE, str)
    [check] = result.json["checks"]
    assert (check["answer"], check["candidate"]["rate"]) != ("pass", 1.0), json.dumps(check)
    assert (check["by_today"]["answer"], check["by_today"]["candidate"]["rate"]) == ("pass", 1.0)


@pytest.mark.gate
def test_without_kept_verdicts_there_is_no_answer_but_that_of_today_beside(study: Bench) -> None:
    edit_verdicts(study, BASELINE, lambda text: text.splitlines()[0] + "\n")
    try:
        result = study.stumble(*GATE)
    finally:
        edit_verdicts(study, BASELINE, str)
    assert result.code == 5, result.err
    assert result.out.startswith("INCONCLUSIVE")
    assert "the verdicts of the judge that was sealed were not kept" in result.out
    assert f"by judge {JUDGE_VERSION} of today: PASS" in result.out
