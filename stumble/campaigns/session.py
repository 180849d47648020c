"""One session of a campaign: from what is on tapes to the verdicts on all that was run."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from stumble import indexing
from stumble.campaigns.asked import Campaign, surroundings
from stumble.campaigns.conduct import Standing, Tell, conduct
from stumble.campaigns.ledger import Folder, ledger
from stumble.campaigns.outcome import Outcome, outcome
from traces.store import Store

type Show = Callable[[], AbstractContextManager[Tell]]


def session(
    campaign: Campaign,
    store: Store,
    said: Mapping[str, object],
    beside: Path,
    *,
    ca: Path,
    jobs: int,
    show: Show,
    warn: Callable[[str], object],
) -> Outcome:
    """Do what is not done yet, judge, and say what came of it, also where a signal ends it.

    Wrong where somebody else is at it, or where it was begun in other surroundings.
    """
    folder = Folder(store, campaign.name)
    standing, stopped = Standing(), None
    with folder.held():
        folder.keep(dict(said) | {"name": campaign.name}, beside, surroundings(campaign))
        for why in indexing.refresh(store):
            warn(why)
        done = ledger(store, campaign.name)
        try:
            with show() as tell:
                conduct(
                    campaign, store, folder, done, ca=ca, jobs=jobs, standing=standing, tell=tell
                )
        except KeyboardInterrupt as error:
            stopped = int(getattr(error, "number", 2))
        for why in indexing.refresh(store):
            warn(why)
    return outcome(campaign, store, standing, stopped=stopped)
