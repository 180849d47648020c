"""A worker on a node: what runs in a Ray actor.

It has a store of its own in a temporary folder and one worker process, of which a campaign on one
machine has several. A recording comes as a pack, whose bytes a node fetches once; a finished run
goes back as its sealed tape. Keys and other variables of the agent are those of the node's
environment: none is ever sent.
"""

import os
import pickle
import platform
from collections.abc import Mapping
from contextlib import ExitStack
from copy import replace
from importlib.metadata import version
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from msgspec import Struct

from stumble.campaigns.completed_runs import CampaignFolder
from stumble.campaigns.local_workers import LocalWorkers
from stumble.campaigns.spec import Campaign
from stumble.campaigns.worker import RunDone, RunTask, TaskFailed, TaskLost, TaskReport
from stumble.errors import UsageError
from stumble.packs.pack_cache import open_packed_files, packs_folder
from stumble.runs.environment.workspaces import remove_afterwards
from stumble.user_data.paths import prepare_ca_folder
from traces.store.trace_store import TraceStore

WAIT_SECONDS = 1.0


class NodeJob(Struct, frozen=True, kw_only=True):
    """What a worker on a node gets once."""

    campaign: bytes
    """Pickled: another version of stumble could not load it."""
    plan: bytes
    """The campaign's plan.json."""
    number: int
    """Number of the worker, and so of its world."""


class ShippedPack(Struct, frozen=True, kw_only=True):
    """The pack of a recording, in Ray's object store."""

    name: str
    """Its root hash."""
    data: Any
    """A reference to its bytes, which a node fetches once."""


class NodeFacts(Struct, frozen=True, kw_only=True):
    """Where a worker is, and with what it works."""

    host: str
    versions: Mapping[str, str]


class NodeRun(Struct, frozen=True, kw_only=True):
    """A task's report, with what else came of it."""

    report: TaskReport
    tape: bytes = b""
    output: bytes = b""
    """What the agent has written to its standard output and error."""


def list_versions() -> dict[str, str]:
    """Return the versions that all machines of a campaign have in common."""
    return {
        "stumble": version("stumble"),
        "Python": ".".join(platform.python_version_tuple()[:2]),
    }


class NodeWorker:
    """One worker process on a node, with a store of its own."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._workers: LocalWorkers | None = None
        self._opened: dict[str, Path] = {}
        self._output = Path(os.devnull)

    def start(self, job: NodeJob, versions: Mapping[str, str]) -> NodeFacts:
        """Start the worker process, unless the versions here are others than these."""
        facts = NodeFacts(host=platform.node(), versions=list_versions())
        if facts.versions != versions:
            return facts
        campaign: Campaign = pickle.loads(job.campaign)
        root = Path(mkdtemp(prefix="stumble-node-"))
        self._stack.enter_context(remove_afterwards(root, keep=False))
        store = TraceStore(root / ".stumble")
        folder = CampaignFolder(store, campaign.name)
        folder.runs.mkdir(exist_ok=True)
        folder.plan.write_bytes(job.plan)
        for name in [name for name in os.environ if name.startswith("RAY_")]:
            del os.environ[name]  # an agent would see them, and differ from its recording
        self._output = store.log_path(f"{campaign.name}-{job.number}")
        self._workers = LocalWorkers(
            campaign, store, folder, prepare_ca_folder(), range(job.number, job.number + 1)
        )
        self._stack.callback(self._workers.close)
        self._workers.start()
        return facts

    def make_run(self, task: RunTask, pack: ShippedPack) -> NodeRun:
        """Make a run of the recording in a pack."""
        assert self._workers is not None
        try:
            tape = self._open_recording(pack)
        except UsageError as error:
            return NodeRun(report=TaskFailed(f"{platform.node()}: {error.message}", type(error)))
        self._workers.submit(replace(task, tape=tape))
        while not (reports := list(self._workers.results(WAIT_SECONDS))):
            pass
        [(_, report)] = reports
        if isinstance(report, TaskLost):
            report = TaskLost(f"{report.why} on {platform.node()}")
        return self._take_files(report)

    def _open_recording(self, pack: ShippedPack) -> Path:
        import ray

        if pack.name not in self._opened:
            path = packs_folder() / f".{pack.name}.{os.getpid()}.stumble"
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                path.write_bytes(ray.get(pack.data))
                self._opened[pack.name] = open_packed_files(path).main_tape
            finally:
                path.unlink(missing_ok=True)
        return self._opened[pack.name]

    def _take_files(self, report: TaskReport) -> NodeRun:
        """Take the tape and the agent's output of a run away from the node."""
        output = self._output.read_bytes() if self._output.is_file() else b""
        self._output.unlink(missing_ok=True)
        if not isinstance(report, RunDone):
            return NodeRun(report=report, output=output)
        tape = report.path.read_bytes()
        report.path.unlink()
        return NodeRun(report=report, tape=tape, output=output)

    def close(self) -> None:
        """End the worker process and remove the store."""
        self._stack.close()
