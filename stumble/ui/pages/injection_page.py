"""One injection: the verdict, and the clean run beside the faulted one."""

from typing import TYPE_CHECKING

import anyio.to_thread
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from stumble.ui.serving.app import state_of
from stumble.ui.sql import read_page_sql
from stumble.ui.values.injection_view import read_injection_view

if TYPE_CHECKING:
    import duckdb


async def show_injection(request: Request) -> Response:
    """Show why an injection was judged as it was."""
    state, id = state_of(request), request.path_params["id"]
    run = await state.query(lambda connection: _find_run(connection, id))
    if run is None:
        raise HTTPException(404, f"The store has no injection {id}.")
    try:
        view = await anyio.to_thread.run_sync(read_injection_view, state.store, id, run)
    except (OSError, ValueError) as error:
        raise HTTPException(422, f"The injection {id} cannot be shown: {error}.") from None
    return state.render("injection.html.jinja", page="runs", it=view)


def _find_run(connection: "duckdb.DuckDBPyConnection", id: str) -> str | None:
    row = connection.execute(read_page_sql("injected_run"), {"id": id}).fetchone()
    return None if row is None else str(row[0])
