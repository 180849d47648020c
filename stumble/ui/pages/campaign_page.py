"""Campaigns: the list, and one as a grid, while it runs and after it."""

from contextlib import suppress

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from stumble.campaigns.completed_runs import CampaignFolder
from stumble.campaigns.progress_file import read_progress
from stumble.ui.pages.inject_page import check_runs_allowed
from stumble.ui.reading.tape_access import read_tape_head
from stumble.ui.serving.app import UiState, state_of
from stumble.ui.serving.jobs import Job
from stumble.ui.values.campaign_view import list_campaigns, read_campaign
from traces.model import Trajectory


async def show_campaigns(request: Request) -> Response:
    """List the campaigns of the store."""
    state = state_of(request)
    return state.render(
        "campaigns.html.jinja", page="campaigns", rows=await state.query(list_campaigns)
    )


async def show_campaign(request: Request) -> Response:
    """Show the grid of a campaign."""
    state, name = state_of(request), request.path_params["name"]
    running = _list_running(state, name)
    progress = read_progress(state.store.root / "campaigns" / name / "progress.json")
    max_cost = _read_max_cost(state, name)
    view = await state.query(
        lambda connection: read_campaign(connection, name, running, progress, max_cost)
    )
    if view is None:
        raise HTTPException(404, f"The store has no campaign {name}.")
    return state.render(
        "campaign.html.jinja",
        page="campaigns",
        it=view,
        job=_find_job(state, name),
        can_resume=(state.store.root / "campaigns" / name / "plan.json").exists(),
    )


async def resume_campaign(request: Request) -> Response:
    """Make the remaining runs of a campaign."""
    state, name = state_of(request), request.path_params["name"]
    check_runs_allowed(state)
    if not (state.store.root / "campaigns" / name / "plan.json").exists():
        raise HTTPException(404, f"The store has no plan of a campaign {name}.")
    back = f"/campaigns/{name}"
    try:
        await state.jobs.start(("campaign", name), back)
    except ValueError as error:
        raise HTTPException(409, f"{error}.") from None
    return RedirectResponse(back, status_code=303)


def _find_job(state: UiState, name: str) -> Job | None:
    """Return the newest job of a campaign that this server started."""
    wanted = ("campaign", name)
    return next((job for job in reversed(state.jobs.jobs) if job.arguments == wanted), None)


def _read_max_cost(state: UiState, name: str) -> float | None:
    """Return the limit of the plan in dollars; None without one."""
    try:
        plan = CampaignFolder.load_plan(state.store, name)
    except (OSError, ValueError, KeyError):
        return None
    limit = plan[0].get("max_cost") if plan else None
    return float(limit) if isinstance(limit, int | float) else None


def _list_running(state: UiState, name: str) -> tuple[Trajectory, ...] | None:
    """Return the unfinished runs of a campaign; None if no session of it runs."""
    folder = state.store.root / "campaigns" / name / "runs"
    if not folder.is_dir():
        return None
    found = []
    for path in sorted(folder.glob("*.tape")):
        with suppress(OSError, ValueError):  # it may end, or begin, just now
            found.append(read_tape_head(path))
    return tuple(found)
