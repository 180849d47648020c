"""One session of a campaign: index, run the remaining cells, judge, summarize."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from copy import replace
from pathlib import Path

from msgspec import Struct

from stumble.campaigns.completed_runs import CampaignFolder, find_completed_runs
from stumble.campaigns.progress_file import write_progress_to
from stumble.campaigns.results import CampaignResult, summarize_campaign
from stumble.campaigns.scheduler import CampaignProgress, ProgressListener, schedule_campaign
from stumble.campaigns.spec import Campaign, TraceSource, fingerprint_surroundings
from stumble.campaigns.worker_plan import WorkerPlan
from stumble.store import index
from traces.store.query_signals import restore_interrupts
from traces.store.trace_store import TraceStore

type ProgressDisplay = Callable[[], AbstractContextManager[ProgressListener]]


class CampaignDisplay(Struct, frozen=True):
    """Where a campaign shows its progress and its warnings."""

    show: ProgressDisplay
    warn: Callable[[str], object]


@restore_interrupts()
def run_campaign_session(
    campaign: Campaign,
    store: TraceStore,
    said: Mapping[str, object],
    beside: Path,
    *,
    ca: Path,
    workers: WorkerPlan,
    display: CampaignDisplay,
    only: Sequence[TraceSource] | None = None,
) -> CampaignResult:
    """Make and judge the remaining runs, and return the result, even if a signal ends it early.

    With `only`, run these of its sources alone.

    Raises UsageError if another session runs it, or if it was begun in other surroundings, and
    KeyboardInterrupt if a signal ends it while the index is written.
    """
    folder = CampaignFolder(store, campaign.name)
    standing, stopped = CampaignProgress(), None
    now = campaign if only is None else replace(campaign, sources=tuple(only))
    with folder.lock_campaign():
        for why in index.refresh_index(store):
            display.warn(why)
        folder.save_plan(
            dict(said) | {"name": campaign.name},
            beside,
            fingerprint_surroundings(campaign),
            campaign.shard,
        )
        done = find_completed_runs(store, campaign.name)
        try:
            with display.show() as tell:
                schedule_campaign(
                    now,
                    store,
                    folder,
                    done,
                    ca=ca,
                    workers=workers,
                    standing=standing,
                    tell=write_progress_to(folder.progress, tell),
                )
        except KeyboardInterrupt as error:
            stopped = int(getattr(error, "number", 2))
        for why in index.refresh_index(store):
            display.warn(why)
    return summarize_campaign(campaign, store, standing, stopped=stopped)
