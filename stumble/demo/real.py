"""The demo with a real model: three policies of an agent against a loud and a quiet fault.

One model server in this process, and one small campaign for each policy. With temperature 0 all
three arms are the same draws, so they differ by what the agent does alone.
"""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from scenarios.practice.agents.retry_policies import POLICIES
from scenarios.practice.model_server import serve_model
from scenarios.practice.real.chat_model import RealChatModel
from scenarios.practice.real.engine import EngineSettings
from scenarios.practice.real.load import load_chat_model
from stumble.campaigns.runner import CampaignDisplay, run_campaign_session
from stumble.campaigns.spec import parse_campaign
from stumble.campaigns.worker_plan import WorkerPlan
from traces.store.trace_store import TraceStore

if TYPE_CHECKING:
    import duckdb

TASKS = ("stock-1", "amount-1")
STEPS = 6
LOUD, QUIET = "http_status", "digit"
RUNS = len(POLICIES) * len(TASKS) * (1 + 3 + 1 + 2)
"""Of each task and policy a recording, three twins, a sham and two faults."""
_LOAD_SECONDS = 120.0


def load_demo_model() -> RealChatModel:
    """Return the model. Raises RealModelMissing."""
    return load_chat_model("smollm2", None, settings=EngineSettings())


def run_real_demo(
    model: RealChatModel, root: Path, ca: Path, jobs: int, display: CampaignDisplay
) -> None:
    """Run a campaign for each policy, in a store of its own."""
    store = TraceStore(root)
    with _serve_in_thread(model) as port:
        for policy in POLICIES:
            table = _build_campaign_table(model.name, policy, port)
            run_campaign_session(
                parse_campaign(table, root / "real.toml"),
                store,
                table,
                root / "real.toml",
                ca=ca,
                workers=WorkerPlan(jobs=jobs),
                display=display,
            )


def fetch_demo_endings(connection: "duckdb.DuckDBPyConnection") -> list[tuple[object, ...]]:
    """Return policy, fault, what became of the fault, class, whether it ended right, and runs."""
    return connection.execute(
        "select agent, op, state, class, ends_right, count(*) from judged_injections"
        " group by all order by all"
    ).fetchall()


def _build_campaign_table(model: str, policy: str, port: int) -> Mapping[str, object]:
    where = {"tool": "get_*"}
    return {
        "name": f"real-{policy}",
        "agent": policy,
        "practice": {
            "tasks": list(TASKS),
            "models": [f"{model}:t=0,arm={policy}"],
            "max_steps": STEPS,
            "options": ["--policy", policy],
        },
        "hosts": {"model.practice": f"127.0.0.1:{port}"},
        "faults": [
            {"fault": f"{LOUD}:code=503", "where": where},
            {"fault": QUIET, "where": where},
        ],
    }


@contextmanager
def _serve_in_thread(model: RealChatModel) -> Iterator[int]:
    """Serve the model beside the campaign, which uses this thread; yield the port."""
    ports: list[int] = []
    ready, ended = threading.Event(), threading.Event()

    async def serve() -> None:
        async with serve_model(real=model) as port:
            ports.append(port)
            ready.set()
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="real model", daemon=True)
    thread.start()
    try:
        if not ready.wait(_LOAD_SECONDS):
            raise TimeoutError("the model server did not start")
        yield ports[0]
    finally:
        ended.set()
        thread.join(_LOAD_SECONDS)
