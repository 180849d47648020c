"""What an agent in a container can do and reach, with the real engine and the real recorder."""

from pathlib import Path

import pytest

from scenarios.sandbox.docked import docked
from scenarios.sandbox.reach import tried
from scenarios.sandbox.values import Ran
from tests.boxes import image, on_loop, order, said
from tests.recorder_wire import Notes, recording, says, server_tls, serving

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

both_ways = pytest.mark.parametrize("bridge", [False, True], ids=["entered", "bridged"])


@both_ways
def test_nothing_is_reached_past_the_relay(tmp_path: Path, bridge: bool) -> None:
    async def main() -> None:
        async with docked(order(tmp_path), image=image(), bridge=bridge) as box:
            ways = await tried(box, tmp_path)
        assert len(ways) >= 5
        assert [way.name for way in ways if way.why is None] == []
        assert any("172.17.0.1" in way.name for way in ways)  # the gateway of docker's own bridge

    on_loop(main())


@both_ways
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_who_is_listed_is_reached_by_the_recorder(
    tmp_path: Path, bridge: bool, scheme: str
) -> None:
    async def main() -> None:
        notes = Notes()
        tls = server_tls() if scheme == "https" else None
        async with (
            serving(says(OK), tls=tls) as server,
            recording(notes) as proxy,
            docked(
                order(tmp_path, proxy, allow=[f"localhost:{server.port}"]),
                image=image(),
                bridge=bridge,
            ) as box,
        ):
            url = f"{scheme}://localhost:{server.port}/v1"
            listed = await said(box, "curl", "-sS", "--noproxy", "", url)
            other = await said(box, "curl", "-sS", "--noproxy", "", "http://other.example/")
            assert listed == (Ran(exit=0, ended="exit"), "hello")
            assert other[1] == "stumble sandbox: other.example:80: not on the allow list\n"
            assert box.refused == {"other.example:80: not on the allow list": 1}
            assert [each.request.url for each in notes.over] == [url]

    on_loop(main())


def test_a_command_works_in_the_workspace_and_changes_nothing_else(tmp_path: Path) -> None:
    async def main() -> None:
        script = "pwd; cat given; echo made > made; touch /etc/x; touch /usr/x; id -u; exit 3"
        (tmp_path / "given").write_text("given\n")
        async with docked(order(tmp_path), image=image()) as box:
            ran, words = await said(box, "sh", "-c", script)
        assert ran == Ran(exit=3, ended="exit")
        assert words.splitlines()[:2] == [str(tmp_path), "given"]
        assert words.count("Read-only file system") == 2
        assert (tmp_path / "made").read_text() == "made\n"

    on_loop(main())
