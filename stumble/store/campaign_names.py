"""The names of campaigns in a store: two campaigns of one name are two.

A campaign is what it runs: its experiment. Two people of a team may give the same name to two, and
a store that pulled both would count their runs together. The first that a store knows, by its
plan, has the name; the runs of any other are shown as `NAME@EXPERIMENT`.
"""

import json
from pathlib import Path

import pyarrow as pa

from traces.model import Trajectory

ID_DIGITS = 8
"""Of an experiment's 32 digits."""


class CampaignNames:
    """The names of campaigns in the store at `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._experiments: dict[str, str | None] = {}

    def rename(self, rows: pa.Table, run: Trajectory) -> pa.Table:
        """Return the rows of a run in the relation `trajectories` with its campaign's name here."""
        name = run.campaign
        if name is None:
            return rows
        if name not in self._experiments:
            self._experiments[name] = read_plan_experiment(self._root, name)
        shown = name_campaign(name, run.experiment, self._experiments[name])
        if shown == name:
            return rows
        column = rows.schema.get_field_index("campaign")
        return rows.set_column(column, "campaign", pa.array([shown] * len(rows), pa.string()))


def name_campaign(name: str, experiment: str | None, known: str | None) -> str:
    """Return the name of an experiment if the store has the name for the experiment `known`.

    Recordings of earlier versions have no experiment, and campaigns of theirs none in their plan.
    """
    same = known is None or experiment == known
    return name if same or experiment is None else f"{name}@{experiment[:ID_DIGITS]}"


def read_plan_experiment(root: Path, name: str) -> str | None:
    """Return the experiment that has a name in a store; None without a plan that names it."""
    try:
        plan = json.loads((root / "campaigns" / name / "plan.json").read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    return get_plan_experiment(plan)


def get_plan_experiment(plan: object) -> str | None:
    """Return the experiment of a plan."""
    experiment = plan.get("experiment") if isinstance(plan, dict) else None
    return experiment if isinstance(experiment, str) else None
