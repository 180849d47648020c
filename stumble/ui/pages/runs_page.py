"""The list of runs."""

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from stumble.ui.serving.app import state_of
from stumble.ui.values.runs_table import RunsQuery, RunsTable, read_runs_table

if TYPE_CHECKING:
    import duckdb


async def show_runs(request: Request) -> Response:
    """List the runs that the address selects."""
    state, query = state_of(request), RunsQuery.from_address(request.query_params)

    def read(connection: "duckdb.DuckDBPyConnection") -> RunsTable:
        counts = state.cache.count_store(state.store.index, connection)
        return read_runs_table(connection, query, counts)

    table = await state.query(read)
    return state.render("runs.html.jinja", page="runs", table=table, query=query)
