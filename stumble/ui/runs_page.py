"""The list of runs."""

from starlette.requests import Request
from starlette.responses import Response

from stumble.ui.app import state_of
from stumble.ui.values.runs_table import RunsQuery, read_runs_table


async def show_runs(request: Request) -> Response:
    """List the runs that the address selects."""
    state, query = state_of(request), RunsQuery.from_address(request.query_params)
    table = await state.query(lambda connection: read_runs_table(connection, query))
    return state.render("runs.html.jinja", page="runs", table=table, query=query)
