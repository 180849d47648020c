"""The tool server over HTTP: calls, errors, reset, verify, and how it ends."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from scenarios.practice import tool_server, world
from scenarios.practice.tasks.registry import ORDER_TASKS
from tests.support.agents.practice_agents import (
    ROOT,
    port,
    program,
)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[httpx.Client]:
    with program("tool_server", "--db", tmp_path / "shop.db", "--task", "refund-1") as process:
        url = f"http://127.0.0.1:{port(process)}"
        with httpx.Client(base_url=url, trust_env=False) as client:
            yield client


@pytest.mark.gate
def test_it_lists_its_tools_with_their_schemas(shop: httpx.Client) -> None:
    listed = {tool["name"]: tool for tool in shop.get("/tools").json()}
    assert len(listed) == 16
    assert listed["get_order"]["read_only"] is True
    assert listed["issue_refund"]["read_only"] is False
    assert listed["issue_refund"]["parameters"]["required"] == [
        "order_id",
        "amount",
        "currency",
        "reason",
    ]
    assert listed["get_order"]["returns"]["properties"]["amount"] == {"type": "number"}


@pytest.mark.gate
def test_it_calls_a_tool_and_says_with_its_status_how_it_refuses(shop: httpx.Client) -> None:
    def call(name: str, body: str) -> httpx.Response:
        return shop.post(f"/tools/{name}", content=body)

    found = call("get_order", '{"order_id": "ord-7018"}')
    assert (found.status_code, found.json()["amount"]) == (200, 1057.86)
    assert found.headers["content-type"] == "application/json"
    for name, body, status in (
        ("get_order", '{"order_id": "ord-1"}', 404),
        ("get_orders", "{}", 404),
        ("get_order", "{}", 400),
        ("get_order", "{", 400),
        ("get_order", "", 400),
        ("update_order", '{"order_id": "ord-7018", "version": 1}', 409),
    ):
        refused = call(name, body)
        assert (refused.status_code, list(refused.json()["error"])) == (status, ["code", "message"])


@pytest.mark.gate
def test_reset_and_verify(shop: httpx.Client, tmp_path: Path) -> None:
    def verify(task: str) -> object:
        return shop.get("/verify", params={"task": task}).json()["passed"]

    assert shop.post("/reset", json={"task": "price-1"}).json() == {"task": "price-1"}
    assert verify("price-1") is False
    assert verify("price-2") is None
    shop.post("/tools/add_note", json={"order_id": "ord-7018", "text": "x"})
    assert (
        "not asked for: Note"
        in world.verify_order_book(tmp_path / "shop.db", ORDER_TASKS["price-1"]).detail
    )
    shop.post("/reset", json={"task": "price-1"})
    assert (
        "not asked for: Note"
        not in world.verify_order_book(tmp_path / "shop.db", ORDER_TASKS["price-1"]).detail
    )
    assert shop.post("/reset", json={"task": "price-9"}).status_code == 404
    assert shop.post("/reset", content="[").status_code == 400
    assert shop.get("/verify").status_code == 404


def test_it_serves_inside_a_process_too(tmp_path: Path) -> None:
    async def ask() -> object:
        world.set_up_order_book(tmp_path / "shop.db", ORDER_TASKS["refund-1"])
        async with (
            tool_server.serve_tools(tmp_path / "shop.db") as chosen,
            httpx.AsyncClient(trust_env=False) as client,
        ):
            return (await client.get(f"http://127.0.0.1:{chosen}/tools")).status_code

    assert asyncio.run(ask()) == 200


@pytest.mark.gate
def test_it_ends_when_told_to_or_when_its_stdin_ends(tmp_path: Path) -> None:
    with program("tool_server", "--db", tmp_path / "shop.db") as process:
        port(process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    with program("tool_server", "--db", tmp_path / "shop.db") as process:
        port(process)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(20) == 0


@pytest.mark.gate
def test_it_serves_without_a_stdin(tmp_path: Path) -> None:
    command = (sys.executable, "-m", "scenarios.practice.tool_server", "--db", tmp_path / "shop.db")
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            url = f"http://127.0.0.1:{port(process)}/tools"
            assert httpx.get(url, trust_env=False).status_code == 200
        finally:
            process.terminate()
        assert process.wait(20) == 0
