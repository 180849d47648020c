"""Where the runs of a campaign are made: on this machine, or on the nodes of a Ray cluster."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import yaml
from msgspec import Struct, field

from stumble.campaigns.completed_runs import CampaignFolder
from stumble.campaigns.spec import Campaign
from stumble.campaigns.task_runner import TaskRunner
from stumble.errors import UsageError
from traces.store.trace_store import TraceStore

_RAY = re.compile(r"ray(://[^/\s:]+:\d{1,5})?")


class WorkerPlan(Struct, frozen=True, kw_only=True):
    """The workers of a campaign."""

    jobs: int | None
    """How many; None for one per processor of the cluster."""
    ray: str | None = None
    """`ray`, or `ray://HOST:PORT`; None for processes of this machine."""
    runtime_env: Mapping[str, object] = field(default_factory=dict)
    """Ray's runtime environment of the workers."""


def parse_worker_plan(jobs: int | None, on: str | None, runtime_env: Path | None) -> WorkerPlan:
    """Check the options. Raises UsageError."""
    if on is not None and _RAY.fullmatch(on) is None:
        raise UsageError(f"--on {on}: not ray, and not ray://HOST:PORT")
    if runtime_env is None:
        return WorkerPlan(jobs=jobs, ray=on)
    if on is None:
        raise UsageError("--runtime-env is for workers on Ray: add --on ray")
    try:
        table = yaml.safe_load(runtime_env.read_bytes())
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{runtime_env}: it cannot be read: {error}") from None
    if not isinstance(table, dict):
        raise UsageError(f"{runtime_env}: not a table of Ray's runtime environment")
    return WorkerPlan(jobs=jobs, ray=on, runtime_env={str(key): table[key] for key in table})


def check_ray_campaign(campaign: Campaign) -> None:
    """Raise UsageError if a campaign can only run on this machine."""
    reasons = {
        "--in-place: the agent's folder is on this machine": campaign.in_place,
        "--writable: its paths are on this machine": bool(campaign.writable),
        "practice.log: its folder is on this machine": campaign.log is not None,
    }
    for why, applies in reasons.items():
        if applies:
            raise UsageError(f"--on ray and {why}; leave out one of them")


@contextmanager
def open_task_runner(
    campaign: Campaign, store: TraceStore, folder: CampaignFolder, ca: Path, plan: WorkerPlan
) -> Iterator[TaskRunner]:
    """Start the workers, and end them all after the block."""
    if plan.ray is None:
        from stumble.campaigns.local_workers import open_local_workers

        assert plan.jobs is not None
        with open_local_workers(campaign, store, folder, ca, range(plan.jobs)) as local:
            yield local
        return
    from stumble.campaigns.cluster.ray_workers import open_ray_workers

    with open_ray_workers(campaign, store, folder, ca, plan) as remote:
        yield remote
