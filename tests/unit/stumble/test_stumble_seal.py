"""Seals: equal plans have one digest, any change has another, and what differs is named."""

import json
from copy import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.toml_reader import ScenarioError
from stumble.campaigns.spec import parse_campaign as read_campaign
from stumble.errors import UsageError
from stumble.experiments.seals.analysis_terms import AnalysisTerms, parse_sealed_terms, parse_terms
from stumble.experiments.seals.canonical_json import hash_canonical_json, to_canonical_json
from stumble.experiments.seals.seal_contents import collect_seal_contents
from stumble.experiments.seals.seal_file import ExperimentSeal, find_value_differences, read_seal

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(-9, 9, width=16)
TEXTS = st.text('ab"é\n', max_size=3)
VALUES = st.recursive(
    SCALARS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
SAID = {
    "name": "nightly",
    "seeds": [1, 2],
    "practice": {"tasks": ["refund-1", "price-1"], "models": ["practice/naive"]},
    "faults": [{"fault": "digit"}, {"fault": "http_status:code=503"}],
    "seal": {"margin": 0.1},
}


def shuffled(value: object) -> object:
    """The same value with its keys the other way round."""
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    return [shuffled(each) for each in value] if isinstance(value, list) else value


@settings(max_examples=30)
@given(VALUES)
def test_order_and_spacing_of_a_file_do_not_matter(value: object) -> None:
    again = json.loads(json.dumps(shuffled(value), indent=3))
    assert to_canonical_json(again) == to_canonical_json(value)
    assert hash_canonical_json(again) == hash_canonical_json(value)


def alike(one: object, other: object) -> bool:
    """Whether two values are the same: numbers by their value, and true is no number."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and one == other


@settings(max_examples=50)
@given(VALUES, VALUES)
def test_values_have_one_digest_if_and_only_if_they_are_the_same(
    one: object, other: object
) -> None:
    assert (hash_canonical_json(one) == hash_canonical_json(other)) == alike(one, other)
    assert (list(find_value_differences(one, other)) == []) == alike(one, other)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: 2}, {"a": b""}, {"a": {1, 2}}])
def test_what_json_cannot_hold_exactly_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"place in a canonical text|keys have to be text"):
        to_canonical_json(value)


def sealed(tmp_path: Path, **more: object) -> ExperimentSeal:
    said = SAID | more
    path = tmp_path / "nightly.toml"
    return ExperimentSeal(
        contents=collect_seal_contents(
            read_campaign(said, path), parse_terms(said, path), tmp_path.absolute()
        )
    )


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"seeds": [1, 2, 3]}, "plan.seeds: sealed [1, 2], now [1, 2, 3]"),
        ({"reps": 2}, "plan.reps: sealed 1, now 2"),
        ({"twins": 4}, "plan.twins: sealed 3, now 4"),
        ({"budget": 5}, "plan.budget: sealed 600.0, now 5.0"),
        ({"faults": [{"fault": "digit"}]}, "plan.faults: sealed 2, now 1"),
        (
            {"faults": [{"fault": "digit"}, {"fault": "http_status:code=500"}]},
            "plan.faults[1].params.code: sealed 503, now 500",
        ),
        ({"persist": ["same_args"]}, 'plan.faults[0].persist: sealed "once", now "same_args"'),
        ({"seal": {"margin": 0.2}}, "analysis.margin: sealed 0.1, now 0.2"),
        ({"seal": {"margin": 0.1, "looks": 2}}, "analysis.looks: sealed [1.0], now [0.5, 1.0]"),
        (
            {"practice": {"tasks": ["refund-1", "price-1"], "models": ["practice/verifies"]}},
            'agent.runs[0].model: sealed "practice/naive", now "practice/verifies"',
        ),
        ({"practice": {"tasks": ["refund-1"], "models": ["practice/naive"]}}, "plan.traces"),
        (
            {"world": {"reset": "true", "verify": "false"}},
            'world.verify: sealed nothing, now "false"',
        ),
        ({"command": "python agent.py --prompt be-brief"}, "agent.runs[0].command: sealed []"),
    ],
)
def test_a_change_of_the_plan_is_named(tmp_path: Path, more: dict[str, object], named: str) -> None:
    one, other = sealed(tmp_path), sealed(tmp_path, **more)
    assert one.digest != other.digest
    assert any(
        line.startswith(named) for line in find_value_differences(one.contents, other.contents)
    )


def test_what_is_said_as_a_default_is_no_change(tmp_path: Path) -> None:
    more = {"reps": 1, "twins": 3, "title": "of last night", "max_cost": 2.0}
    assert sealed(tmp_path, **more).digest == sealed(tmp_path).digest


def test_another_judge_is_another_seal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = sealed(tmp_path)
    monkeypatch.setattr("stumble.experiments.seals.seal_contents.JUDGE_VERSION", 99)
    [line] = find_value_differences(before.contents, sealed(tmp_path).contents)
    assert line.startswith("judge.version: sealed ")
    assert line.endswith("now 99")


def test_files_of_commands_are_fixed_by_what_they_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text("PROMPT = 'be brief'")
    (tmp_path / "check.py").write_text("exit(0)")
    (tmp_path / "shop.db").write_bytes(b"SQLite\0\1")
    (tmp_path / "run.log").write_text("started")
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "one.md").write_text("hello")
    more: dict[str, object] = {
        "command": "python agent.py --log run.log",
        "world": {"reset": "true", "verify": "python check.py shop.db"},
        "seal": {"margin": 0.1, "files": ["prompts/*.md"], "except": ["run.log"]},
    }
    before = sealed(tmp_path, **more)
    assert before.get_part("agent")["files"].keys() == {"agent.py", "prompts/one.md"}  # type: ignore[attr-defined]
    assert before.get_part("world")["unfixed"] == ["shop.db"]
    (tmp_path / "shop.db").write_bytes(b"SQLite\0\2")
    (tmp_path / "run.log").write_text("started again")
    assert sealed(tmp_path, **more).digest == before.digest
    for name in ("agent.py", "check.py", "prompts/one.md"):
        kept = (tmp_path / name).read_text()
        (tmp_path / name).write_text("other")
        [line] = find_value_differences(before.contents, sealed(tmp_path, **more).contents)
        assert f"files.{name}: sealed" in line
        (tmp_path / name).write_text(kept)
    with pytest.raises(UsageError, match="names no file"):
        sealed(tmp_path, **more | {"seal": {"margin": 0.1, "files": ["nothing/*.md"]}})


def test_of_long_texts_the_place_is_shown_in_which_they_differ(tmp_path: Path) -> None:
    [line] = find_value_differences(
        {"a": "x" * 500 + "old" + "y" * 500}, {"a": "x" * 500 + "new" + "y" * 500}
    )
    assert "old" in line
    assert "new" in line
    assert len(line) < 400


def test_a_seal_is_read_back_and_one_that_was_edited_is_refused(tmp_path: Path) -> None:
    seal, path = sealed(tmp_path), tmp_path / "nightly.seal.json"
    seal.write(path)
    assert read_seal(path) == ExperimentSeal(contents=json.loads(json.dumps(seal.contents)))
    assert read_seal(path).digest == seal.digest
    document = json.loads(path.read_text())
    path.write_text(json.dumps(shuffled(document)))
    assert read_seal(path).digest == seal.digest
    path.write_text(json.dumps(document | {"analysis": document["analysis"] | {"margin": 0.3}}))
    with pytest.raises(UsageError, match="was changed by hand"):
        read_seal(path)
    for text in ("", "[]", "{}", '{"seal": "x", "format": 1, "campaign": "c"}'):
        path.write_text(text)
        with pytest.raises(UsageError, match="is no seal"):
            read_seal(path)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({}, "seal.margin: is missing"),
        ({"margin": 1.5}, "is not a share between 0 and 1"),
        ({"margin": True}, "is not a share"),
        ({"margin": 0.1, "alpha": 0.5}, "is not a share between 0 and 0.5"),
        ({"margin": 0.1, "measure": "recovery"}, "none of ends-right, handled, silent"),
        ({"margin": 0.1, "looks": 0}, "neither a number of looks"),
        ({"margin": 0.1, "looks": [0.5]}, "the last is 1"),
        ({"margin": 0.1, "looks": [0.5, 0.4, 1]}, "rising"),
        ({"margin": 0.1, "looks": 21}, "at most 20"),
        ({"margin": 0.1, "spending": "linear"}, "none of obrien-fleming, pocock"),
        ({"margin": 0.1, "margins": 1}, "no such key"),
    ],
)
def test_terms_that_cannot_be_are_refused(table: dict[str, object], said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        parse_terms({"seal": table}, Path("nightly.toml"))


def test_terms_come_back_from_a_seal() -> None:
    terms = AnalysisTerms(
        margin=0.1, measures=("silent", "handled"), looks=(0.5, 1.0), against="before"
    )
    assert parse_sealed_terms(json.loads(json.dumps(terms.to_dict())), Path()) == terms
    assert parse_sealed_terms(replace(terms, against=None).to_dict(), Path()).against is None
