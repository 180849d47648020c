"""The server of `stumble ui`: its socket, its pages, and its end."""

import socket
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from threading import Thread
from typing import NamedTuple

import uvicorn
from starlette.routing import Route

from stumble.ui.pages.campaign_page import resume_campaign, show_campaign, show_campaigns
from stumble.ui.pages.compare_page import show_comparison
from stumble.ui.pages.inject_page import show_form, show_job, start_run, stop_job
from stumble.ui.pages.injection_page import show_injection
from stumble.ui.pages.run_page import show_run
from stumble.ui.pages.runs_page import show_runs
from stumble.ui.pages.sql_page import send_csv, show_sql
from stumble.ui.pages.start_page import show_start
from stumble.ui.reading.live_index import LiveIndex
from stumble.ui.serving.app import UiState, build_app
from stumble.ui.serving.children import ChildProcesses
from stumble.ui.serving.guard import TOKEN_PARAMETER, UiAccess
from stumble.ui.serving.jobs import JobList
from traces.store.trace_store import TraceStore

CLOSE_SECONDS = 1
"""Seconds that open connections, such as streams of events, get at the end."""
ROUTES = (
    Route("/", show_start),
    Route("/runs", show_runs),
    Route("/runs/{id}", show_run),
    Route("/injections/{id:path}", show_injection),
    Route("/inject/{id}", show_form),
    Route("/inject/{id}", start_run, methods=["POST"]),
    Route("/campaigns", show_campaigns),
    Route("/campaigns/{name}", show_campaign),
    Route("/campaigns/{name}/resume", resume_campaign, methods=["POST"]),
    Route("/compare", show_comparison),
    Route("/sql", show_sql),
    Route("/sql.csv", send_csv),
    Route("/jobs/{number:int}", show_job),
    Route("/jobs/{number:int}/stop", stop_job, methods=["POST"]),
)


class UiServer(NamedTuple):
    """A server that is not running yet, its socket, and the address of its first page."""

    server: uvicorn.Server
    listener: socket.socket
    address: str


def serve_ui(
    store: TraceStore,
    *,
    port: int,
    start_path: str,
    allow_runs: bool,
    opens: bool,
    say: Callable[[str], object],
) -> None:
    """Serve the pages of a store on 127.0.0.1 until SIGINT or SIGTERM. Raises OSError."""
    with _prepare_server(store, port, start_path, allow_runs=allow_runs) as it:
        say(it.address)
        if opens:
            webbrowser.open(it.address)
        it.server.run(sockets=[it.listener])


@contextmanager
def open_ui_during(
    store: TraceStore, start_path: str, say: Callable[[str], object]
) -> Iterator[None]:
    """Serve the pages during the block, and open the first one. Raises OSError."""
    with _prepare_server(store, 0, start_path, allow_runs=False) as it:
        thread = Thread(target=it.server.run, kwargs={"sockets": [it.listener]})
        thread.start()
        try:
            say(it.address)
            webbrowser.open(it.address)
            yield
        finally:
            it.server.should_exit = True
            thread.join()


@contextmanager
def _prepare_server(
    store: TraceStore, port: int, start_path: str, *, allow_runs: bool
) -> Iterator[UiServer]:
    with closing(_listen(port)) as listener:
        access = UiAccess(port=listener.getsockname()[1])
        children = ChildProcesses()
        index = LiveIndex(store, children)
        state = UiState(
            store=store,
            access=access,
            children=children,
            index=index,
            jobs=JobList(children, store.root, index.announce),
            allow_runs=allow_runs,
        )
        config = uvicorn.Config(
            build_app(state, ROUTES),
            log_level="critical",
            access_log=False,  # an address holds the token
            server_header=False,
            timeout_graceful_shutdown=CLOSE_SECONDS,
            h11_max_incomplete_event_size=1 << 16,
            lifespan="on",
            ws="none",
        )
        address = f"http://127.0.0.1:{access.port}{start_path}"
        address += f"{'&' if '?' in address else '?'}{TOKEN_PARAMETER}={access.token}"
        yield UiServer(uvicorn.Server(config), listener, address)


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen()  # what the address brings before the pages are ready waits
    except BaseException:
        listener.close()
        raise
    return listener
