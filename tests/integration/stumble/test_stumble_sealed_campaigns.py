"""Seals in a store: what was sealed is what is run, and what changed since is named."""

import json
from pathlib import Path

import pytest

from stumble.campaigns.spec import parse_campaign as read_campaign
from stumble.errors import UsageError
from stumble.experiments.seals.analysis_terms import parse_terms
from stumble.experiments.seals.seal_contents import collect_seal_contents
from stumble.experiments.seals.seal_file import ExperimentSeal
from stumble.experiments.seals.seal_store import (
    apply_seal,
    find_campaign_changes,
    find_file_changes,
    find_seal,
    make_seal,
)
from traces.store.trace_store import TraceStore

SAID = {
    "name": "nightly",
    "seeds": [1, 2],
    "practice": {"tasks": ["refund-1", "price-1"], "models": ["practice/naive"]},
    "faults": [{"fault": "digit"}],
    "seal": {"margin": 0.1},
}


def sealed(tmp_path: Path, **more: object) -> ExperimentSeal:
    said, path = SAID | more, tmp_path / "nightly.toml"
    found = collect_seal_contents(
        read_campaign(said, path), parse_terms(said, path), tmp_path.absolute()
    )
    return ExperimentSeal(contents=found)


def test_a_sealed_campaign_is_run_as_it_was_sealed_or_not_at_all(tmp_path: Path) -> None:
    store, beside = TraceStore(tmp_path / ".stumble"), tmp_path / "nightly.toml"
    campaign = read_campaign(SAID, beside)
    assert apply_seal(campaign, SAID, beside, store).seal is None
    seal, path = make_seal(campaign, SAID, beside, store)
    assert path == tmp_path / "nightly.seal.json"
    assert apply_seal(campaign, SAID, beside, store).seal == seal.digest
    without = {key: value for key, value in SAID.items() if key != "seal"}
    assert apply_seal(read_campaign(without, beside), without, beside, store).seal == seal.digest
    other = SAID | {"seeds": [1]}
    with pytest.raises(UsageError, match=r"plan\.seeds: sealed \[1, 2\], now \[1\]"):
        apply_seal(read_campaign(other, beside), other, beside, store)
    path.unlink()
    assert apply_seal(campaign, SAID, beside, store).seal == seal.digest
    sealed(tmp_path, reps=4).write(path)
    with pytest.raises(
        UsageError, match=r"is not the seal under which .* plan\.reps: sealed 1, now 4"
    ):
        find_seal("nightly", beside, store)


def test_a_file_that_changed_after_the_runs_is_seen(tmp_path: Path) -> None:
    store, beside = TraceStore(tmp_path / ".stumble"), tmp_path / "nightly.toml"
    text = 'seeds = [1]\n[practice]\ntasks = ["refund-1"]\nmodels = ["practice/naive"]\n'
    beside.write_text(text + "[seal]\nmargin = 0.1\n")
    said = {
        "name": "nightly",
        "reps": 2,
        "seeds": [1],
        "practice": {"tasks": ["refund-1"], "models": ["practice/naive"]},
        "seal": {"margin": 0.1},
    }
    campaign = read_campaign(said, beside)
    seal, _ = make_seal(campaign, said, beside, store)
    assert find_campaign_changes(seal, campaign, said, beside) == ()
    assert find_file_changes(seal, store) == ()  # nothing was run yet
    apply_seal(campaign, said, beside, store)
    plan = store.root / "campaigns" / "nightly" / "plan.json"
    plan.write_text(json.dumps({"surroundings": "", "beside": str(beside), "said": said}))
    assert find_file_changes(seal, store) == ()  # reps = 2 is an option's
    beside.write_text(text.replace("[1]", "[1, 2]") + "[seal]\nmargin = 0.2\n")
    assert find_file_changes(seal, store) == (
        "plan.seeds: sealed [1], now [1, 2]",
        "analysis.margin: sealed 0.1, now 0.2",
    )
