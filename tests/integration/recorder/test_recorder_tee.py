import asyncio
import json
import os
import random
import signal
import sys
from collections.abc import Coroutine
from pathlib import Path

import pytest

from recorder.event_loop import run_event_loop
from recorder.mcp.stdio import find_changed_variables
from recorder.mcp.tee import RUN_SOCKET_VARIABLE
from tests.support.agents.mcp_tee_client import (
    BOUND,
    SMALL,
    TEE,
    behind,
    client,
    dumped,
    tees,
)
from tests.support.servers.raw_servers import Notes

ECHO = (sys.executable, "-I", "-S", "-c", "import os\nwhile d := os.read(0, 999): os.write(1, d)")


def told[T](main: Coroutine[object, object, T]) -> T:
    return run_event_loop(main)


async def ended(pid: int) -> None:
    """Returns once there is no such process, or only what its parent has not looked at yet."""
    async with asyncio.timeout(BOUND):
        while (stat := read_stat(pid)) is not None and stat[0] != "Z":
            await asyncio.sleep(0.01)


def read_stat(pid: int) -> list[str] | None:
    """State, parent and so on; None where there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def test_a_message_is_an_exchange_and_its_answer_the_message_of_the_same_id() -> None:
    async def main() -> Notes:
        notes = Notes()
        async with tees(notes) as here, client(*behind(here, *SMALL)) as small:
            assert (await small.ask(0, "initialize"))["id"] == 0
            await small.notify("notifications/initialized")
            assert await small.call("a", "echo", text="hello") == "hello"
            assert (await small.rest())[0] == 0
            async with asyncio.timeout(BOUND):
                while len(notes.over) < 4:
                    await asyncio.sleep(0.001)
        return notes

    start, first, said, call = sorted(told(main()).over, key=lambda exchange: exchange.seq)
    assert {exchange.transport for exchange in (start, first, said, call)} == {"stdio"}
    assert {exchange.request.url for exchange in (start, first, said, call)} == {"stdio://small/"}
    assert (start.request.method, json.loads(start.request.body)) == ("START", list(SMALL))
    assert start.response
    assert start.response.chunks == ()
    assert start.response.ended is not None
    assert first.request.method == "MESSAGE"
    assert not first.request.body.endswith(b"\n")
    assert said.response is None
    assert said.error is None
    assert call.response
    assert call.response.status == 200
    assert json.loads(call.response.body)["id"] == "a"
    assert start.started < first.started < said.started <= call.started < call.response.at


def test_what_the_server_says_unasked_is_a_chunk_of_its_start() -> None:
    async def main() -> Notes:
        notes = Notes()
        async with tees(notes) as here, client(*behind(here, *SMALL)) as small:
            said = await small.ask(1, "tools/call", name="notify", arguments={"text": "well"})
            assert said["method"] == "notifications/message"
            assert json.loads(await small.line())["id"] == 1
            asked = await small.ask(3, "tools/call", name="ask", arguments={})
            assert (asked["id"], asked["method"]) == ("ours-1", "roots/list")
            await small.send(dumped({"jsonrpc": "2.0", "id": "ours-1", "result": {"roots": []}}))
            assert b'\\"roots\\"' in await small.line()
            await small.rest()
        return notes

    over = sorted(told(main()).over, key=lambda exchange: exchange.seq)
    start, *messages = over
    assert start.response
    methods = [json.loads(chunk.data)["method"] for chunk in start.response.chunks]
    assert methods == ["notifications/message", "roots/list"]
    assert [x.response is None for x in messages] == [False, False, True]


def test_no_byte_is_changed_added_or_lost_also_of_what_is_no_json() -> None:
    chance = random.Random(7)
    pieces = [chance.randbytes(chance.choice((1, 10, 70_000))) for _ in range(60)]
    sent = b"".join(pieces) + b"no newline at the end"

    async def main() -> bytes:
        async with tees(Notes()) as here, client(*behind(here, *ECHO)) as echo:
            assert echo.process.stdin
            assert echo.process.stdout
            rest = asyncio.create_task(echo.process.stdout.read())
            for piece in pieces:
                await echo.send(piece)
            await echo.send(b"no newline at the end")
            echo.process.stdin.close()
            got: bytes = await rest
            return got

    assert told(main()) == sent


@pytest.mark.parametrize("watched", [True, False])
def test_the_exit_code_is_the_servers_own(watched: bool) -> None:
    async def main() -> int:
        async with (
            tees(decides=not watched) as here,
            client(*behind(here, *SMALL)) as small,
        ):
            await small.send(
                dumped({"id": 1, "method": "tools/call", "params": _call("die", code=7)})
            )
            return await small.process.wait()

    assert told(main()) == 7


def _call(tool: str, **arguments: object) -> dict[str, object]:
    return {"name": tool, "arguments": arguments}


def test_a_server_that_a_signal_ends_is_seen_to_end_by_that_signal() -> None:
    async def main() -> int:
        async with tees() as here, client(*behind(here, *SMALL)) as small:
            said = {"id": 1, "method": "tools/call", "params": _call("kill", signal=9)}
            await small.send(dumped(said))
            return await small.process.wait()

    assert told(main()) == -signal.SIGKILL


def test_a_signal_for_the_tee_is_for_the_server() -> None:
    program = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(33))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )

    async def main() -> int:
        async with (
            tees() as here,
            client(*behind(here, sys.executable, "-c", program)) as server,
        ):
            assert await server.line() == b"ready"
            server.process.terminate()
            return await server.process.wait()

    assert told(main()) == 33


def test_a_killed_tee_leaves_nothing_behind() -> None:
    async def main() -> None:
        async with tees() as here, client(*behind(here, *SMALL)) as small:
            child = int(await small.call(1, "children"))
            server = int((read_stat(child) or [])[1])
            small.process.kill()
            await small.rest()
            await ended(server)
            await ended(child)

    told(main())


def test_a_command_that_is_not_there_is_said_as_a_shell_says_it() -> None:
    async def main() -> tuple[int, bytes, bytes]:
        async with tees() as here, client(*behind(here, "no-such-server")) as small:
            return await small.rest()

    code, out, errors = told(main())
    assert (code, out) == (127, b"")
    assert errors == b"stumble mcp: no-such-server: command not found\n"


def test_the_server_has_the_environment_that_the_user_has() -> None:
    theirs = {"PATH": os.defpath, "HTTPS_PROXY": "http://company:3128", "SSL_CERT_DIR": "/certs"}
    ours = {"PATH": os.defpath, "HTTPS_PROXY": "http://127.0.0.1:1", "NO_PROXY": ""}

    async def main() -> dict[str, str]:
        async with tees() as here:
            here.changed_variables.update(
                find_changed_variables(theirs, ours | {RUN_SOCKET_VARIABLE: str(here.path)})
            )
            env = ours | {RUN_SOCKET_VARIABLE: str(here.path), "OWN": "kept"}
            async with client(*TEE, "--", *SMALL, env=env) as small:
                found: dict[str, str] = json.loads(await small.call(1, "environment"))
                return {name: value for name, value in found.items() if name != "LC_CTYPE"}

    assert told(main()) == theirs | {"OWN": "kept"}


def test_the_run_is_found_though_the_client_hands_no_variables_down() -> None:
    through = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:], env={}).returncode)"

    async def main() -> Notes:
        notes = Notes()
        async with tees(notes) as here:
            env = {RUN_SOCKET_VARIABLE: str(here.path)}
            words = (sys.executable, "-c", through, *TEE, "--name", "small", "--", *SMALL)
            async with client(*words, env=env) as small:
                assert await small.call(1, "echo", text="found") == "found"
                await small.rest()
        return notes

    assert [exchange.request.url for exchange in told(main()).asked] == ["stdio://small/"] * 2


def test_a_run_that_is_named_and_does_not_listen_starts_nothing() -> None:
    async def main() -> tuple[int, bytes, bytes]:
        async with client(*TEE, "--run", "/nowhere", "--", "touch", "/nowhere/too") as small:
            return await small.rest()

    code, out, errors = told(main())
    assert (code, out) == (6, b"")
    assert errors == b"stumble mcp: no run listens at /nowhere; nothing was started\n"


def test_where_the_run_goes_away_the_session_goes_on_and_says_so_once() -> None:
    async def main() -> tuple[int, bytes, bytes]:
        async with tees(Notes()) as here:
            opened = client(*behind(here, *SMALL))
            small = await opened.__aenter__()
            assert await small.call(1, "echo", text="before") == "before"
        try:
            assert await small.call(2, "echo", text="after") == "after"
            assert await small.call(3, "echo", text="again") == "again"
            return await small.rest()
        finally:
            await opened.__aexit__(None, None, None)

    code, _, errors = told(main())
    assert code == 0
    assert errors.count(b"nothing of this server is recorded from here on") == 1


def test_what_a_tap_raises_ends_the_run() -> None:
    class Broken:
        def request(self, exchange: object) -> object:
            raise ZeroDivisionError("a fault of ours")

    async def main() -> None:
        async with tees(Broken()) as here, client(*behind(here, *SMALL)) as small:
            await small.process.wait()

    with pytest.raises(ZeroDivisionError, match="a fault of ours"):
        told(main())
