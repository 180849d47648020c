"""What of a campaign is on tapes already: the tapes are the only ledger.

A run is played into a folder of the campaign's own and its tape moved among the others when it is
whole, so each tape that the store has is a run that is done. What lies in that folder when nobody
plays was left by somebody who was killed, and is worth nothing.
"""

import fcntl
import json
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stumble.exits import Wrong
from stumble.home import new_experiment
from traces.store import Store
from traces.tape import read

PATIENCE = 30.0
"""Seconds that workers of a session that was killed get to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The runs of a campaign that are done."""

    recordings: Mapping[tuple[str, str], Path]
    """By task and model."""
    runs: Mapping[tuple[str, str], str]
    """How each ended, by the id of the recording and the address of the cell."""
    cost: float
    """US dollars that recordings and runs are known to have cost."""


_RUNS = """
    SELECT
        trajectory_id, parent_id, cell, task, ended, source,
        (
            SELECT CASE WHEN count(*) = count(u.cost_usd) THEN coalesce(sum(u.cost_usd), 0) END
            FROM usage AS u
            JOIN exchanges AS e ON e.trajectory_id = u.trajectory_id AND e.seq = u.seq
            WHERE u.trajectory_id = t.trajectory_id AND e.answered_by = 'live'
        ) AS cost_usd
    FROM trajectories AS t
    WHERE campaign = $campaign AND ended IS NOT NULL
    ORDER BY recorded_at, trajectory_id
"""


def ledger(store: Store, campaign: str) -> Ledger:
    """What is done of a campaign; the store has to have the rows of all its tapes."""
    recordings, runs, spent = {}, {}, 0.0
    with store.reading() as connection:
        found = connection.execute(_RUNS, {"campaign": campaign}).fetchall()
    for id, parent, cell, task, ended, source, cost in found:
        path = store.tapes / f"{id}.tape"
        if not path.exists():
            continue
        spent += cost or 0.0
        if source == "record":
            # The column names what answered where nobody said a model; a source is known by what
            # was said.
            recordings[task, read(path).trajectory.model or ""] = path
        else:
            runs[parent, cell] = ended
    return Ledger(recordings=recordings, runs=runs, cost=spent)


class Folder:
    """A campaign's own folder in the store: what was asked for, and runs that are under way."""

    def __init__(self, store: Store, name: str) -> None:
        self.root = store.root / "campaigns" / name
        self.root.mkdir(parents=True, exist_ok=True)
        self.runs = self.root / "runs"
        self.plan = self.root / "plan.json"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else works on this campaign now; Wrong where somebody does."""
        with (self.root / ".lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Wrong(
                    f"the campaign {self.root.name} is being run by somebody else; wait for it, "
                    "or give this one another --name"
                ) from None
            with self._locked(fcntl.LOCK_EX):
                shutil.rmtree(self.runs, ignore_errors=True)
                self.runs.mkdir()
            try:
                yield
            finally:
                with self._locked(fcntl.LOCK_EX):
                    shutil.rmtree(self.runs, ignore_errors=True)

    @contextmanager
    def working(self) -> Iterator[None]:
        """A worker is at work; who comes after us waits until it has ended."""
        with self._locked(fcntl.LOCK_SH):
            yield

    @contextmanager
    def _locked(self, kind: int) -> Iterator[None]:
        deadline = time.monotonic() + PATIENCE
        with (self.root / ".workers").open("a") as file:
            while True:
                try:
                    fcntl.flock(file, kind | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise Wrong(
                            f"workers of an earlier session of {self.root.name} have not ended"
                        ) from None
                    time.sleep(0.05)
            yield

    def keep(self, said: Mapping[str, object], beside: Path, common: str) -> None:
        """Write down what is asked for; Wrong where runs of another kind bear this name."""
        before = _kept(self.plan)
        if before is not None and before["surroundings"] != common:
            raise Wrong(
                f"the campaign {self.root.name} was begun with another agent, world, host or "
                "budget, and its runs are not to be mixed with these: give this one another --name"
            )
        # One that an older version began has runs that name no experiment, and stays one.
        experiment = before.get("experiment") if before is not None else new_experiment()
        aside = self.plan.with_suffix(".part")
        kept = {"surroundings": common, "beside": str(beside.absolute()), "said": said}
        aside.write_text(json.dumps(kept | {"experiment": experiment}, indent=1))
        aside.replace(self.plan)

    @property
    def experiment(self) -> str | None:
        """The experiment that its runs are, whatever session makes them."""
        kept = _kept(self.plan) or {}
        found = kept.get("experiment")
        return found if isinstance(found, str) else None

    @classmethod
    def known(cls, store: Store, name: str) -> tuple[dict[str, object], Path] | None:
        """What was asked for under a name the last time, and the file beside which it was."""
        kept = _kept(store.root / "campaigns" / name / "plan.json")
        if kept is None or not isinstance(said := kept["said"], dict):
            return None
        return said, Path(str(kept["beside"]))


def _kept(plan: Path) -> dict[str, object] | None:
    if not plan.exists():
        return None
    found: dict[str, object] = json.loads(plan.read_text())
    return found
