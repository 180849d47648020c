"""The first page: how the agent fails."""

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from stumble.campaigns.completed_runs import CampaignFolder
from stumble.campaigns.progress_file import read_progress
from stumble.check.behaviour import FaultedRun, describe_run
from stumble.store.judged_rows import load_judged_injection
from stumble.ui.serving.app import UiState, state_of
from stumble.ui.values.failure_view import (
    FailureScope,
    FailureView,
    build_failure_view,
    find_newest_scope,
    read_faulted_runs,
)

if TYPE_CHECKING:
    import duckdb


async def show_start(request: Request) -> Response:
    """Show how an agent fails, of the newest campaign unless the address names another one."""
    state, given = state_of(request), request.query_params
    view = await state.query(lambda connection: _read_view(state, connection, dict(given)))
    name = view.scope.campaign
    folder = state.store.root / "campaigns" / name if name else None
    progress = read_progress(folder / "progress.json") if folder else None
    return state.render(
        "start.html.jinja",
        page="start",
        it=view,
        progress=progress if folder and (folder / "runs").is_dir() else None,
    )


def _read_view(
    state: UiState, connection: "duckdb.DuckDBPyConnection", given: dict[str, str]
) -> FailureView:
    if "agent" in given or "campaign" in given:
        scope = FailureScope(
            agent=given.get("agent") or None, campaign=given.get("campaign") or None
        )
    else:
        scope = find_newest_scope(connection)
    runs, total = read_faulted_runs(connection, scope)
    is_checked = scope.campaign is not None and _is_check(state, scope.campaign)
    if is_checked:
        runs = tuple(_describe_run(state, run) for run in runs)
    return build_failure_view(connection, scope, runs, total, is_checked=is_checked)


def _is_check(state: UiState, campaign: str) -> bool:
    """Return whether a campaign's runs are judged by what they did, as those of a check."""
    plan = CampaignFolder.load_plan(state.store, campaign)
    world = plan[0].get("world") if plan else None
    return isinstance(world, dict) and world.get("observed") is True


def _describe_run(state: UiState, run: FaultedRun) -> FaultedRun:
    """Describe a run as `stumble check` does; what is known is kept, as it stays so."""
    kept = state.cache.described
    if run.injection not in kept:
        try:
            judged = load_judged_injection(state.store, run.run, run.injection)
        except (OSError, ValueError):  # its tape was forgotten: the rows are left
            return run
        described = describe_run(judged)
        if described.behaviour == "unknown":
            return described
        kept[run.injection] = described
    return kept[run.injection]
