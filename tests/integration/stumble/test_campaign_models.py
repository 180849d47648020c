"""A campaign with several models: each has runs and controls of its own."""

from pathlib import Path

import pytest

from scenarios.toml_reader import ScenarioError
from stumble.campaigns.run_matrix import build_run_matrix
from stumble.campaigns.spec import Campaign, parse_campaign
from traces.conversation.derived_steps import derive_tape_steps
from traces.tape.reader import read_tape

pytestmark = pytest.mark.gate

GOLDEN = Path(__file__).resolve().parents[2] / "data/golden"


def plan(*models: str, tape: str = "http.tape") -> Campaign:
    said = {
        "traces": [str(GOLDEN / tape)],
        "faults": [{"fault": "http_status:code=503"}],
        **({"models": list(models)} if models else {}),
    }
    return parse_campaign(said, GOLDEN / "campaign.toml")


def cells(campaign: Campaign, tape: str = "http.tape") -> list[str]:
    recording = read_tape(GOLDEN / tape)
    matrix = build_run_matrix(campaign, recording, derive_tape_steps(recording), world=False)
    return [cell.address for cell in matrix.cells] or list(matrix.no_site)


def test_each_model_has_runs_and_twins_of_its_own() -> None:
    alone = cells(plan())
    both = cells(plan("gpt-5", "anthropic:claude"))
    assert sorted(both) == sorted(
        f"{address}/model {model}" for address in alone for model in ("gpt-5", "anthropic:claude")
    )


def test_twins_of_a_run_are_those_of_its_model() -> None:
    recording = read_tape(GOLDEN / "http.tape")
    campaign = plan("gpt-5", "gpt-5-mini")
    matrix = build_run_matrix(campaign, recording, derive_tape_steps(recording), world=False)
    for cell in matrix.cells:
        assert all(control.endswith(f"/model {cell.model}") for control in cell.controls)
    twins = {cell.address for cell in matrix.cells if cell.condition == "clean"}
    assert {control for cell in matrix.cells for control in cell.controls} == twins


def test_a_model_that_cannot_go_on_is_named() -> None:
    found = cells(plan("gpt-5", "anthropic:claude", tape="websocket.tape"), "websocket.tape")
    assert all(address.endswith("/model gpt-5") for address in found)
    [why] = cells(plan("anthropic:claude", tape="websocket.tape"), "websocket.tape")
    assert "previous_response_id" in why


def test_a_pattern_names_all_tapes_that_fit_and_none_is_an_error(tmp_path: Path) -> None:
    names = ("b.tape", "a.tape", "x[1].tape", "other.txt")
    for name in names:
        (tmp_path / name).write_bytes((GOLDEN / "http.tape").read_bytes())

    def find(*traces: str) -> list[str]:
        said = {"traces": [*traces], "faults": [{"fault": "http_status:code=503"}]}
        return [source.name for source in parse_campaign(said, tmp_path / "c.toml").sources]

    assert find("*.tape") == ["a", "b", "x[1]"]
    assert find("[ab].tape") == ["a", "b"]
    assert find("x[1].tape") == ["x[1]"], "a file of that name is no pattern"
    assert find(f"{tmp_path}/?.tape")[:1] == find("a.tape") == ["a"]
    with pytest.raises(ScenarioError, match="there is no such tape"):
        find("gone*.tape")
    with pytest.raises(ScenarioError, match="there is no such tape"):
        find("gone.tape")
