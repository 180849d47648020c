"""Paths of seals, and comparison of a campaign with its seal.

`NAME.seal.json` is in the folder of the campaign's file, to be kept under version control; the
store has a copy, which identifies its runs. A campaign with a seal runs only as it was sealed.
"""

import json
from collections.abc import Mapping
from copy import replace
from pathlib import Path

from scenarios.toml_reader import read_toml_document
from stumble.campaigns.completed_runs import CampaignFolder
from stumble.campaigns.spec import Campaign, parse_campaign
from stumble.errors import UsageError
from stumble.experiments.seals.analysis_terms import AnalysisTerms, parse_terms
from stumble.experiments.seals.kept_verdicts import import_verdicts
from stumble.experiments.seals.seal_contents import collect_seal_contents
from stumble.experiments.seals.seal_file import ExperimentSeal, find_value_differences, read_seal
from traces.store.trace_store import TraceStore

type CampaignTable = Mapping[str, object]


def seal_path(name: str, folder: Path) -> Path:
    """Return the path of the seal in the folder of a campaign's file."""
    return folder.absolute().parent / f"{name}.seal.json"


def make_seal(
    campaign: Campaign, said: CampaignTable, folder: Path, store: TraceStore
) -> tuple[ExperimentSeal, Path]:
    """Seal a campaign. Raises UsageError if it has runs, ScenarioError if terms are missing."""
    terms = parse_terms(said, folder)
    with store.open_locked() as connection:
        [(runs,)] = connection.execute(
            "SELECT count(*) FROM trajectories WHERE campaign = $name", {"name": campaign.name}
        ).fetchall()
    if runs:
        raise UsageError(
            f"the campaign {campaign.name} has {runs} runs already, and a seal comes before the "
            "first: give this one another --name"
        )
    seal = ExperimentSeal(contents=collect_seal_contents(campaign, terms, folder.absolute().parent))
    path = seal_path(campaign.name, folder)
    seal.write(path)
    seal.write(_stored_seal_path(store, campaign.name))
    return seal, path


def find_seal(name: str, folder: Path | None, store: TraceStore) -> ExperimentSeal | None:
    """Return the seal of a campaign, or None. Raises UsageError if file and stored copy differ."""
    file_path = seal_path(name, folder) if folder else None
    stored_path = _stored_seal_path(store, name)
    seals = {path: read_seal(path) for path in (file_path, stored_path) if path and path.exists()}
    if len({seal.digest for seal in seals.values()}) > 1:
        assert file_path is not None
        raise UsageError(
            f"{file_path} is not the seal under which {name} was run in this store "
            f"({seals[stored_path].short_digest}): "
            + "; ".join(
                find_value_differences(seals[stored_path].contents, seals[file_path].contents)
            )
        )
    return next(iter(seals.values()), None)


def apply_seal(
    campaign: Campaign, said: CampaignTable, folder: Path, store: TraceStore
) -> Campaign:
    """Return the campaign with its seal, if any. Raises UsageError if it was changed."""
    seal = find_seal(campaign.name, folder, store)
    if seal is None:
        return campaign
    changed = find_campaign_changes(seal, campaign, said, folder)
    if changed:
        raise UsageError(_describe_seal_changes(seal, changed))
    if not _stored_seal_path(store, campaign.name).exists():
        seal.write(_stored_seal_path(store, campaign.name))
    import_verdicts(seal, folder, store)
    _store_option_keys(store, campaign.name, said, folder)
    return replace(campaign, seal=seal.digest)


def find_campaign_changes(
    seal: ExperimentSeal, campaign: Campaign, said: CampaignTable, folder: Path
) -> tuple[str, ...]:
    """Return the differences of a campaign from its seal."""
    terms: AnalysisTerms = parse_terms(
        {"seal": {**seal.get_part("analysis"), **_read_seal_table(said)}}, folder
    )
    now = collect_seal_contents(campaign, terms, folder.absolute().parent)
    # The judge reads what the runs left, and its sealed verdicts are kept: see kept_verdicts.
    return tuple(find_value_differences(seal.contents, now | {"judge": seal.contents["judge"]}))


def find_file_changes(seal: ExperimentSeal, store: TraceStore) -> tuple[str, ...]:
    """Return the differences of the campaign's present file from its seal.

    Options of the last session override the file, as they did then.
    """
    plan = CampaignFolder.load_plan(store, seal.name)
    if plan is None:
        return ()
    table, beside = plan
    if beside.suffix == ".toml" and beside.exists():
        options = json.loads(_stored_options_path(store, seal.name).read_text())
        table = {"name": seal.name, **read_toml_document(beside)} | {
            k: table[k] for k in options if k in table
        }
    return find_campaign_changes(seal, parse_campaign(table, beside), table, beside)


def _read_seal_table(said: CampaignTable) -> dict[str, object]:
    table = said.get("seal")
    return dict(table) if isinstance(table, dict) else {}


def _describe_seal_changes(seal: ExperimentSeal, changed: tuple[str, ...]) -> str:
    lines = "".join(f"\n  {line}" for line in changed)
    return (
        f"the campaign {seal.name} is sealed "
        f"({seal.short_digest}), and this is not what was sealed:"
        f"{lines}\nrun it as it was sealed, or give this one another --name"
    )


def _stored_seal_path(store: TraceStore, name: str) -> Path:
    return store.root / "campaigns" / name / "seal.json"


def _stored_options_path(store: TraceStore, name: str) -> Path:
    return store.root / "campaigns" / name / "options.json"


def _store_option_keys(store: TraceStore, name: str, said: CampaignTable, folder: Path) -> None:
    """Store the keys given by options: they override the file later too."""
    file = read_toml_document(folder) if folder.suffix == ".toml" and folder.exists() else {}
    keys = sorted(key for key in said if said[key] != file.get(key, said[key]) or key not in file)
    path = _stored_options_path(store, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(keys))
