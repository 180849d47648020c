"""The practice model for pipeline runs without a key: a scripted solver of known quality.

The demo, its resumption, and the replays and forks of its tape start it by themselves.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from urllib.parse import urlsplit

from traces.tape.reader import Tape

type ModelHosts = Mapping[str, tuple[str, int]]
"""The address behind each host name."""

MODEL_HOST = "model.practice"


def is_practice_model(model: str | None) -> bool:
    """Return whether a run's model is one that is served here: `openai/practice/solver:...`."""
    return "practice/" in (model or "")


@contextmanager
def serve_practice_model() -> Iterator[ModelHosts]:
    """Serve the model in a thread, with the environment variables of its clients; yield its host.

    The variables of this process are as before at the end.
    """
    port, over = Future[int](), threading.Event()
    server = threading.Thread(target=lambda: asyncio.run(_serve_until(port, over)))
    server.start()
    try:
        with _set_client_variables():
            yield {MODEL_HOST: ("127.0.0.1", port.result())}
    finally:
        over.set()
        server.join()


@asynccontextmanager
async def serve_recorded_model(recording: Tape, hosts: ModelHosts) -> AsyncIterator[ModelHosts]:
    """Serve the model for replays and forks of a pipeline run that used it, unless `hosts` names
    it, with the variables of its clients; yield the hosts with its own.
    """
    used = recording.marks and any(
        urlsplit(each.request.url).hostname == MODEL_HOST for each in recording.exchanges
    )
    if not used or MODEL_HOST in hosts:
        yield hosts
        return
    from scenarios.practice import model_server

    async with model_server.serve_model() as port:
        with _set_client_variables():
            yield {**hosts, MODEL_HOST: ("127.0.0.1", port)}


@contextmanager
def _set_client_variables() -> Iterator[None]:
    from scenarios.practice import PRACTICE_KEY

    variables = {"OPENAI_BASE_URL": f"http://{MODEL_HOST}/v1", "OPENAI_API_KEY": PRACTICE_KEY}
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


async def _serve_until(port: Future[int], over: threading.Event) -> None:
    from scenarios.practice import model_server

    try:
        async with model_server.serve_model() as listening:
            port.set_result(listening)
            await asyncio.to_thread(over.wait)
    except BaseException as error:
        if not port.done():
            port.set_exception(error)
        raise
