"""The practice model for a pipeline run without a key: a scripted solver of known quality."""

import asyncio
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager

from scenarios.practice import PRACTICE_KEY, model_server
from stumble.runs.types import Hosts

DEMO_MODEL = "openai/practice/solver:T0=good,T1=good,T2=half,T3=good,T4=fair,T5=good"
"""It fails at the parser, so that the demo shows a resurrection."""
MODEL_HOST = "model.practice"


@contextmanager
def serve_practice_model() -> Iterator[Hosts]:
    """Serve the model in a thread, with the environment variables of its clients; yield its host.

    The variables of this process are as before at the end.
    """
    variables = {"OPENAI_BASE_URL": f"http://{MODEL_HOST}/v1", "OPENAI_API_KEY": PRACTICE_KEY}
    before = {name: os.environ.get(name) for name in variables}
    port, over = Future[int](), threading.Event()
    server = threading.Thread(target=lambda: asyncio.run(_serve_until(port, over)))
    server.start()
    try:
        os.environ.update(variables)
        yield {MODEL_HOST: ("127.0.0.1", port.result())}
    finally:
        over.set()
        server.join()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


async def _serve_until(port: Future[int], over: threading.Event) -> None:
    try:
        async with model_server.serve_model() as listening:
            port.set_result(listening)
            await asyncio.to_thread(over.wait)
    except BaseException as error:
        if not port.done():
            port.set_exception(error)
        raise
