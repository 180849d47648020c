"""The form that injects a fault, and the run it starts."""

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode

import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from stumble.ui.pages.run_page import load_run
from stumble.ui.serving.app import UiState, state_of
from stumble.ui.serving.jobs import Job
from stumble.ui.sql import read_page_sql
from stumble.ui.values.inject_form import InjectForm, InjectRequest, build_inject_form
from stumble.ui.values.run_view import build_run_view

if TYPE_CHECKING:
    import duckdb

SHAM = "sham"
NO_RUNS = (
    "This server was started without --allow-runs, so its pages start nothing. Copy the command, "
    "or start `stumble ui --allow-runs`."
)
MOST_FORM_BYTES = 1 << 16


async def show_form(request: Request) -> Response:
    """Show the form for the call that the address names."""
    state = state_of(request)
    form = await _build_form(state, request.path_params["id"], dict(request.query_params))
    return state.render("inject.html.jinja", page="runs", form=form, no_runs=NO_RUNS)


async def start_run(request: Request) -> Response:
    """Start the command of the form as a child."""
    state = state_of(request)
    check_runs_allowed(state)
    given = await read_form(request)
    id = request.path_params["id"]
    form = await _build_form(state, id, given)
    if form.problem:
        raise HTTPException(422, form.problem)
    try:
        back = f"/inject/{id}?{urlencode(given)}"
        command, *rest = form.arguments
        # At the end it would be an argument of the agent, where an agent is given.
        job = await state.jobs.start((command, "--json", *rest), back)
    except ValueError as error:
        raise HTTPException(409, f"{error}.") from None
    return RedirectResponse(f"/jobs/{job.number}", status_code=303)


async def show_job(request: Request) -> Response:
    """Show a run that was started here; once it has ended, the way to its verdicts."""
    state, job = state_of(request), _find_job(request)
    found = await state.query(lambda connection: _find_injections(connection, job.runs))
    return state.render("job.html.jinja", page="", job=job, found=found)


async def stop_job(request: Request) -> Response:
    """Stop a run."""
    state = state_of(request)
    check_runs_allowed(state)
    job = _find_job(request)
    await state.jobs.stop(job)
    return RedirectResponse(f"/jobs/{job.number}", status_code=303)


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a sent form. Raises HTTPException 413 if it is too large."""
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > MOST_FORM_BYTES:
            raise HTTPException(413, "The form is too large.")
    return dict(parse_qsl(data.decode("utf-8", "replace"), keep_blank_values=True))


def check_runs_allowed(state: UiState) -> None:
    """Raise HTTPException 403 without --allow-runs."""
    if not state.allow_runs:
        raise HTTPException(403, NO_RUNS)


def _find_job(request: Request) -> Job:
    job = state_of(request).jobs.find(request.path_params["number"])
    if job is None:
        raise HTTPException(404, "This server has started no such run.")
    return job


async def _build_form(state: UiState, id: str, given: dict[str, str]) -> InjectForm:
    rows = await load_run(state, id)
    view = build_run_view(rows)
    item = view.keys.get(given.get("at", ""))
    if item is not None and item.kind in ("system", "user"):
        # A prompt is edited where the model answers it; without a fault of its own.
        item = next((x for x in view.items if x.kind == "agent" and x.step > item.step), None)
        given = {"fault": SHAM} | given
    if item is None or item.kind not in ("tool", "agent"):
        raise HTTPException(404, "Choose a tool call or an answer of the model to change.")
    path, asked = state.store.tapes / f"{id}.tape", InjectRequest.from_form(given)
    if not path.exists():
        raise HTTPException(422, f"The tape of {id} is gone, so it cannot be continued.")
    try:
        return await anyio.to_thread.run_sync(
            build_inject_form, rows, item, view.items, path, asked
        )
    except (OSError, ValueError) as error:
        raise HTTPException(422, f"{error}") from None


def _find_injections(
    connection: "duckdb.DuckDBPyConnection", runs: tuple[str, ...]
) -> list[tuple[str, str, str]]:
    """Return injection, class and run of each faulted run."""
    rows = connection.execute(read_page_sql("faulted_runs"), {"runs": list(runs)}).fetchall()
    return [(str(id), str(outcome), str(run)) for id, outcome, run in rows]
