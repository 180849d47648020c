"""Tasks handed to a runner that loses, repeats and delays: each cell has one result."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stumble.campaigns.completed_runs import CompletedRuns, merge_shard_numbers
from stumble.campaigns.run_matrix import RunCell, RunEstimate, RunMatrix
from stumble.campaigns.scheduler import (
    MAX_TRIES,
    CampaignProgress,
    CampaignScheduler,
    run_all_tasks,
)
from stumble.campaigns.shards import CampaignShard, parse_shard
from stumble.campaigns.spec import Campaign, TraceSource
from stumble.campaigns.worker import (
    JudgeDone,
    JudgeTask,
    PrepareDone,
    PrepareTask,
    RunDone,
    RunTask,
    TaskLost,
    TaskReport,
    WorkerTask,
)
from stumble.errors import HarnessError, UsageError
from traces.model import Fault

CELLS = tuple(
    RunCell(
        address=f"get_order#{call}@http/{what}",
        call=f"call-{call}",
        condition="clean" if "clean" in what else "fault",
        fault=Fault(name="digit", params={"field": "amount"}),
        seed=0,
    )
    for call in range(9)
    for what in ("clean/0", "clean/1", "digit/seed 0/rep 0")
)
NONE_DONE = CompletedRuns(recordings={}, runs={}, cost=0.0)


def campaign(sources: int = 4, **more: object) -> Campaign:
    found = tuple(TraceSource(name=f"s{n}", tape=Path(f"/t/{n}.tape")) for n in range(sources))
    return replace(Campaign(name="c", sources=found, faults=()), **more)  # type: ignore[arg-type]


class UnreliableRunner:
    """A runner of four tasks at a time; what it loses, repeats and delays is drawn."""

    def __init__(self, folder: Path, seed: int, lost: float = 0.1, repeated: float = 0.3) -> None:
        self._folder, self._draw = folder, random.Random(seed)
        self._lost, self._repeated = lost, repeated
        self._tasks: list[WorkerTask] = []
        self._late: list[tuple[WorkerTask, TaskReport]] = []
        self._number = 0
        self._losses: Counter[str] = Counter()
        # What is lost more often ends the campaign, which is a test of its own.
        self._most_losses = MAX_TRIES - 1 if lost < 1 else MAX_TRIES
        self.started: Counter[str] = Counter()
        self.judged: Counter[str] = Counter()

    @property
    def running(self) -> Sequence[WorkerTask]:
        return tuple(self._tasks)

    @property
    def free(self) -> int:
        return 4 - len(self._tasks)

    def submit(self, task: WorkerTask) -> None:
        self._tasks.append(task)

    def results(self, timeout: float) -> Iterator[tuple[WorkerTask, TaskReport]]:
        if self._late and self._draw.random() < 0.5:
            yield self._late.pop(self._draw.randrange(len(self._late)))
        task = self._tasks.pop(self._draw.randrange(len(self._tasks)))
        if self._draw.random() < self._lost and self._losses[str(task)] < self._most_losses:
            self._losses[str(task)] += 1
            if self._draw.random() < 0.5:  # it was done, and nobody heard of it until later
                self._late.append((task, self._report(task)))
            yield task, TaskLost("a node has gone")
            return
        report = self._report(task)
        yield task, report
        if self._draw.random() < self._repeated:
            self._late.append((task, self._report(task)))

    def cancel(self) -> None:
        self._tasks.clear()

    def close(self) -> None:
        self.cancel()

    def _report(self, task: WorkerTask) -> TaskReport:
        match task:
            case PrepareTask(source=number, tape=tape):
                assert tape is not None
                estimate = RunEstimate(calls=0, usd=0.0, seconds=0.0)
                return PrepareDone(
                    source=number,
                    tape=tape,
                    recording=f"r{number}",
                    layout=RunMatrix(cells=CELLS, no_site=(), estimate=estimate),
                    cost_usd=0.0,
                    new=False,
                )
            case RunTask(cell=cell):
                self._number += 1
                self.started[f"{task.tape.stem} {cell.address}"] += 1
                path = self._folder / f"run-{self._number}.tape"
                path.write_text(f"{task.tape.stem} {cell.address}")
                return RunDone(
                    id=path.stem,
                    path=path,
                    cell=cell,
                    ended="final",
                    fired=1,
                    why=None,
                    cost_usd=0.5,
                    seconds=2.0,
                )
            case JudgeTask(ids=ids):
                self.judged.update(ids)
                return JudgeDone(ids)


@given(st.integers(0, 1 << 30))
def test_each_cell_has_one_result_whatever_is_lost_or_repeated(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "tapes").mkdir()
    standing = CampaignProgress()
    runner = UnreliableRunner(folder, seed, lost=0.03)
    scheduler = CampaignScheduler(campaign(), NONE_DONE, standing, folder / "tapes")
    run_all_tasks(scheduler, runner, lambda now: None)
    kept = Counter(path.read_text() for path in (folder / "tapes").iterdir())
    wanted = {f"{n} {cell.address}" for n in range(4) for cell in CELLS}
    assert set(kept) == wanted
    assert max(kept.values()) == 1
    assert (standing.wanted, standing.done) == (len(wanted), len(wanted))
    assert standing.cost == 0.5 * len(wanted)
    assert set(runner.judged) == {path.stem for path in (folder / "tapes").iterdir()}


def test_what_is_always_lost_ends_the_campaign_as_a_failure_of_the_harness(tmp_path: Path) -> None:
    runner = UnreliableRunner(tmp_path, 0, lost=1.0)
    scheduler = CampaignScheduler(campaign(), NONE_DONE, CampaignProgress(), tmp_path)
    with pytest.raises(HarnessError, match=r"a node has gone while it had .*, 3 times"):
        run_all_tasks(scheduler, runner, lambda now: None)


@pytest.mark.parametrize("count", [1, 2, 7, 16, 40])
def test_the_shards_of_a_campaign_are_all_of_it(tmp_path: Path, count: int) -> None:
    made = Counter[str]()
    for number in range(1, count + 1):
        folder = tmp_path / f"{count}-{number}"
        (folder / "tapes").mkdir(parents=True)
        shard = CampaignShard(number=number, count=count)
        standing = CampaignProgress()
        scheduler = CampaignScheduler(campaign(shard=shard), NONE_DONE, standing, folder / "tapes")
        run_all_tasks(scheduler, UnreliableRunner(folder, 1, 0, 0), lambda now: None)
        runs = [path.read_text() for path in (folder / "tapes").iterdir()]
        made.update(runs)
        calls = {run.partition("/")[0] for run in runs}
        assert len(runs) == 3 * len(calls)  # each call with all of its controls
    assert set(made) == {f"{n} {cell.address}" for n in range(4) for cell in CELLS}
    assert max(made.values()) == 1


def test_a_shard_has_its_share_of_the_cost_limit() -> None:
    shard = CampaignShard(number=2, count=4)
    assert campaign(max_cost=10.0, shard=shard).own_max_cost == 2.5
    assert campaign(max_cost=10.0).own_max_cost == 10.0
    assert campaign(shard=shard).own_max_cost is None
    assert campaign(max_time=10.0, shard=shard).own_max_time == 2.5
    assert campaign(max_time=10.0).own_max_time == 10.0
    assert campaign(shard=shard).own_max_time is None


@pytest.mark.parametrize(("before", "made"), [(0.0, 10), (16.0, 2), (20.0, 0)])
def test_no_run_starts_after_the_time_of_all_runs_together(
    tmp_path: Path, before: float, made: int
) -> None:
    (tmp_path / "tapes").mkdir()
    standing = CampaignProgress()
    done = replace(NONE_DONE, seconds=before)
    scheduler = CampaignScheduler(campaign(max_time=20.0), done, standing, tmp_path / "tapes")
    run_all_tasks(scheduler, UnreliableRunner(tmp_path, 0, 0, 0), lambda now: None)
    # Those that run when the limit is reached are finished and kept.
    assert made <= standing.done <= made + 3
    assert (standing.capped, standing.timed_out) == (True, True)
    assert standing.agent_seconds == before + 2.0 * standing.done
    assert standing.runs_left == standing.wanted - standing.done > 0


@pytest.mark.parametrize(
    ("text", "variables", "shard"),
    [
        ("3/16", {}, "3/16"),
        ("auto", {"SLURM_ARRAY_TASK_ID": "5", "SLURM_ARRAY_TASK_COUNT": "8"}, "5/8"),
        ("auto", {"SLURM_ARRAY_TASK_ID": "0", "SLURM_ARRAY_TASK_MIN": "0",
                  "SLURM_ARRAY_TASK_COUNT": "8"}, "1/8"),
        ("auto/16", {"JOB_COMPLETION_INDEX": "0"}, "1/16"),
        ("auto/16", {"JOB_COMPLETION_INDEX": "15"}, "16/16"),
    ],
)  # fmt: skip
def test_the_shard_is_taken_from_the_scheduler(
    text: str, variables: dict[str, str], shard: str
) -> None:
    assert str(parse_shard(text, variables)) == shard


@pytest.mark.parametrize("text", ["0/4", "5/4", "3", "x/4", "auto", "3/0", "-1/4", "1/999999999"])
def test_no_shard(text: str) -> None:
    with pytest.raises(ValueError, match="--shard"):
        parse_shard(text, {})


def test_a_changed_number_of_shards_is_refused_by_name() -> None:
    first = merge_shard_numbers("c", None, CampaignShard(number=3, count=16))
    assert first == {"shards": 16, "begun": [3]}
    second = merge_shard_numbers("c", first, CampaignShard(number=4, count=16))
    assert second == {"shards": 16, "begun": [3, 4]}
    with pytest.raises(UsageError, match="c was begun here in 16 shards, and cannot go on in 8"):
        merge_shard_numbers("c", first, CampaignShard(number=3, count=8))
    with pytest.raises(UsageError, match="cannot go on as a whole"):
        merge_shard_numbers("c", first, None)
