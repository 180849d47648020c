"""The routes of `stumble ui`. Each page is one function of `values/` and one template."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio.to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from stumble.ui.reading.live_index import LiveIndex
from stumble.ui.reading.run_cache import RunCache
from stumble.ui.rendering import STATIC, build_palette_css, render_page
from stumble.ui.serving.children import ChildProcesses
from stumble.ui.serving.guard import GuardMiddleware, UiAccess
from stumble.ui.serving.jobs import JobList
from traces.store.trace_store import TraceStore

if TYPE_CHECKING:
    import duckdb

EVENT_SECONDS = 15.0
"""A stream of events says something at least this often, so that a closed one is found."""


@dataclass(frozen=True, kw_only=True)
class UiState:
    """What all pages share."""

    store: TraceStore
    access: UiAccess
    children: ChildProcesses
    index: LiveIndex
    jobs: JobList
    allow_runs: bool = False
    cache: RunCache = field(default_factory=RunCache)

    async def query[T](self, read: "Callable[[duckdb.DuckDBPyConnection], T]") -> T:
        """Run `read` on a connection to the index, in a thread."""

        def run() -> T:
            with self.store.open_locked() as connection:
                return read(connection)

        return await anyio.to_thread.run_sync(run)

    def render(self, template: str, **values: object) -> HTMLResponse:
        """Render a page with what its frame needs."""
        root = self.store.root
        frame = {
            "store": str(root),
            "store_name": "/".join(root.parts[-2:]),
            "allow_runs": self.allow_runs,
        }
        frame |= {"version": self.index.version, "warnings": self.index.warnings}
        return HTMLResponse(render_page(template, frame | values))


def build_app(state: UiState, routes: tuple[Route, ...]) -> Starlette:
    """Build the application around its pages."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(state.index.watch)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()
        await state.children.close()

    app = Starlette(
        routes=[
            *routes,
            Route("/events", stream_changes),
            Route("/static/palette.css", serve_palette),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[Middleware(GuardMiddleware, access=state.access)],
        exception_handlers={HTTPException: show_error},
        lifespan=lifespan,
    )
    app.state.ui = state
    return app


def state_of(request: Request) -> UiState:
    """Return the state of the application of a request."""
    state = request.app.state.ui
    assert isinstance(state, UiState)
    return state


async def stream_changes(request: Request) -> StreamingResponse:
    """Server-sent events: one message whenever pages may have changed since the last one."""
    index = state_of(request).index

    async def events() -> AsyncIterator[str]:
        version = index.version
        yield f"data: {version}\n\n"
        while not await request.is_disconnected():
            new = await index.wait(version, EVENT_SECONDS)
            yield f"data: {new}\n\n" if new != version else ": still here\n\n"
            version = new

    return StreamingResponse(events(), media_type="text/event-stream")


async def serve_palette(_: Request) -> Response:
    """The colours of the report."""
    return Response(build_palette_css(), media_type="text/css")


async def show_error(request: Request, error: Exception) -> Response:
    """Show an HTTP error as a page."""
    assert isinstance(error, HTTPException)
    page = state_of(request).render(
        "error.html.jinja", page="", status=error.status_code, detail=error.detail
    )
    page.status_code = error.status_code
    return page
