"""What an agent in a sandbox can do and reach, with the real engine and the real recorder."""

import asyncio
import io
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from copy import replace
from pathlib import Path

import pytest

from sandbox import factory
from sandbox.docker import engine, images
from sandbox.docker.docker_sandbox import open_docker_sandbox
from sandbox.egress.allowlist import is_internal_address
from sandbox.egress.egress_check import try_egress_routes
from sandbox.factory import list_agent_mounts
from sandbox.process_sandbox import open_process_sandbox
from sandbox.types import Sandbox, SandboxLimits, SandboxMount, SandboxResult, SandboxSpec
from tests.support.servers.docker_sandboxes import (
    image,
    on_loop,
    order,
    said,
)
from tests.support.servers.raw_servers import (
    Notes,
    recording,
    reset,
    says,
    server_tls,
    serving,
)

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
FLOOD = 200 << 20
ROOM = Path(engine.__file__).parents[1]
KINDS = ("entered", "bridged", "process")


def opened(kind: str, order: SandboxSpec) -> AbstractAsyncContextManager[Sandbox]:
    if kind == "process":
        return open_process_sandbox(order)
    return open_docker_sandbox(order, image=image(), bridge=kind == "bridged")


every_kind = pytest.mark.parametrize("kind", KINDS)
both = pytest.mark.parametrize("kind", ["entered", "process"])


@every_kind
def test_nothing_is_reached_past_the_relay(tmp_path: Path, kind: str) -> None:
    async def main() -> None:
        async with opened(kind, order(tmp_path)) as box:
            ways = await try_egress_routes(box, tmp_path)
        assert len(ways) >= 5
        assert [way.name for way in ways if way.why is None] == []
        assert any("172.17.0.1" in way.name for way in ways)  # the gateway of docker's own bridge

    on_loop(main())


@every_kind
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_who_is_listed_is_reached_by_the_recorder(tmp_path: Path, kind: str, scheme: str) -> None:
    async def main() -> None:
        notes = Notes()
        tls = server_tls() if scheme == "https" else None
        async with serving(says(OK), tls=tls) as server, recording(notes) as proxy:
            host = f"localhost:{server.port}"
            async with opened(kind, order(tmp_path, proxy, allow=[host])) as box:
                listed = await said(box, "curl", "-sS", f"{scheme}://{host}/v1")
                other = await said(box, "curl", "-sS", "http://other.example/")
            assert listed == (SandboxResult(exit=0, ended="exit"), "hello")
            assert other[1] == "stumble sandbox: other.example:80: not on the allow list\n"
            assert box.refused == {"other.example:80: not on the allow list": 1}
            assert [each.request.url for each in notes.over] == [f"{scheme}://{host}/v1"]

    on_loop(main())


@pytest.mark.parametrize(("kind", "error"), [("entered", 56), ("process", 56), ("bridged", 18)])
def test_a_reset_stays_a_reset_but_where_it_is_said_that_it_does_not(
    tmp_path: Path, kind: str, error: int
) -> None:
    async def cut(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(OK.replace(b"5", b"9"))
        await writer.drain()
        await asyncio.sleep(0.2)  # until what was sent is read
        reset(writer)

    async def main() -> None:
        async with serving(cut) as server, recording() as proxy:
            host = f"localhost:{server.port}"
            async with opened(kind, order(tmp_path, proxy, allow=[host])) as box:
                ran, _ = await said(box, "curl", "-sS", f"http://{host}/")
                assert ran.exit == error  # 56: failure in receiving; 18: it ended too early
                assert any("a reset" in lacks for lacks in box.weaker) == (kind == "bridged")

    on_loop(main())


@both
def test_a_command_works_in_the_workspace_and_changes_nothing_else(
    tmp_path: Path, kind: str
) -> None:
    async def main() -> None:
        script = "pwd; cat given; echo made > made; touch /etc/x; touch /usr/x; exit 3"
        (tmp_path / "given").write_text("given\n")
        async with opened(kind, order(tmp_path)) as box:
            ran, words = await said(box, "sh", "-c", script)
        assert ran == SandboxResult(exit=3, ended="exit")
        assert {str(tmp_path), "given"} < set(words.splitlines())
        assert words.count("Read-only file system") == 2
        assert (tmp_path / "made").read_text() == "made\n"
        assert (tmp_path / "made").owner() == tmp_path.owner()

    on_loop(main())


@both
def test_our_own_agent_runs_and_finds_no_golden_artifact_and_no_grader(
    tmp_path: Path, kind: str
) -> None:
    async def main() -> None:
        given = SandboxSpec(
            workspace=tmp_path, env={"PYTHONDONTWRITEBYTECODE": "1"}, mounts=list_agent_mounts()
        )
        async with opened(kind, given) as box:
            agent = (sys.executable, "-m", "scenarios.agents.builtin", "--help")
            ran, words = await said(box, *agent)
            assert (ran.exit, words[:6]) == (0, "usage:")
            look = f"ls -A {ROOM / 'compiler'} 2>/dev/null | wc -l"
            assert (await said(box, "sh", "-c", look))[1] == "0\n"

    on_loop(main())


HANDLES = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def handle(path):
    found = ctypes.create_string_buffer((128).to_bytes(4, sys.byteorder) + bytes(132))
    assert libc.name_to_handle_at(-100, path.encode(), found, ctypes.byref(ctypes.c_int()), 0) == 0
    return found
if sys.argv[1]:
    print(handle(sys.argv[1]).raw.hex())
else:
    beside = os.open(sys.argv[2], os.O_RDONLY)
    found = ctypes.create_string_buffer(bytes.fromhex(sys.argv[3]))
    opened = libc.open_by_handle_at(beside, found, os.O_RDONLY)
    print(os.read(opened, 99) if opened >= 0 else "no")
"""


@both
def test_what_is_hidden_is_not_found_by_its_handle_either(tmp_path: Path, kind: str) -> None:
    async def main() -> None:
        golden, work = tmp_path / "golden", tmp_path / "work"
        golden.mkdir()
        work.mkdir()
        (golden / "answer").write_text("42")
        ask = [sys.executable, "-c", HANDLES]
        handle = subprocess.check_output([*ask, golden / "answer"], text=True).strip()
        given = SandboxSpec(workspace=work, env={}, hidden=(str(golden),))
        async with opened(kind, given) as box:
            _, words = await said(box, "python3", "-c", HANDLES, "", str(work), handle)
        assert words == "no\n"

    on_loop(main())


def test_a_process_opens_no_disk(tmp_path: Path) -> None:
    async def main() -> None:
        look = "cd /dev; for each in *; do test -b $each && echo $each; done; ls null tty urandom"
        async with opened("process", order(tmp_path)) as box:
            _, words = await said(box, "sh", "-c", look)
        assert words.split() == ["null", "tty", "urandom"]

    on_loop(main())


@both
def test_how_commands_end(tmp_path: Path, kind: str) -> None:
    async def main() -> None:
        (tmp_path / "text").write_text("no program")
        async with opened(kind, order(tmp_path)) as box:
            ends = {
                command: await box.run(command.split(), budget=2.0)
                for command in ("true", "no-such-program", "./text", "sleep 1000")
            }
            killed, _ = await said(box, "sh", "-c", "kill -9 $$")
        assert ends["true"] == SandboxResult(exit=0, ended="exit")
        assert ends["no-such-program"].exit == 127
        assert ends["./text"].exit == 126
        assert ends["sleep 1000"].ended == "time"
        assert killed == SandboxResult(exit=137, ended="exit")

    on_loop(main())


@both
def test_standard_input_is_passed_on_to_its_end(tmp_path: Path, kind: str) -> None:
    async def main() -> None:
        text = b"line\n" * 100_000
        (tmp_path / "input").write_bytes(text)
        async with opened(kind, order(tmp_path)) as box:
            with (tmp_path / "input").open("rb") as given:
                _, words = await said(box, "cat", stdin=given.fileno())
            assert words.encode() == text
            assert await said(box, "cat") == (SandboxResult(exit=0, ended="exit"), "")

    on_loop(main())


def test_input_and_output_do_not_wait_for_one_another(tmp_path: Path) -> None:
    async def main() -> None:
        (tmp_path / "input").write_bytes(bytes(40 << 20))
        async with opened("entered", order(tmp_path)) as box:
            with (tmp_path / "input").open("rb") as given:
                ran, words = await said(box, "cat", stdin=given.fileno(), budget=30.0)
        assert (ran.ended, len(words)) == ("exit", 40 << 20)

    on_loop(main())


@both
def test_what_is_hidden_is_not_found_by_another_name_of_its_folder(
    tmp_path: Path, kind: str
) -> None:
    async def main() -> None:
        golden, work, name = (tmp_path / each for each in ("real/golden", "work", "name"))
        golden.mkdir(parents=True)
        work.mkdir()
        name.symlink_to("real")
        (golden / "answer").write_text("42")
        seen = (SandboxMount(source=name, target=str(name)),)
        given = SandboxSpec(workspace=work, env={}, mounts=seen, hidden=(str(golden),))
        async with opened(kind, given) as box:
            ran, _ = await said(box, "cat", str(name / "golden" / "answer"))
        assert ran.exit == 1

    on_loop(main())


def test_an_image_is_shown_no_more_of_this_machine_than_ours_are(tmp_path: Path) -> None:
    async def main() -> None:
        tag = "stumble-tests-greedy:latest"
        with engine.open_docker_engine() as client:
            label = f'LABEL {images.SHOWN_LABEL}="/usr:/var/run"'
            images.import_rootfs_image(client, io.BytesIO(bytes(10240)), tag, (label,))
            try:
                with pytest.raises(ChildProcessError, match="/var/run of this machine"):
                    async with open_docker_sandbox(order(tmp_path), image=tag):
                        pass
            finally:
                client.remove_image(tag)

    on_loop(main())


def test_a_home_cannot_fill_the_disk_either(tmp_path: Path) -> None:
    async def main() -> None:
        for folder in ("work", "home"):
            (tmp_path / folder).mkdir()
        given = order(tmp_path / "work", disk=50 << 20)
        async with opened("entered", replace(given, home=tmp_path / "home")) as box:
            ran, _ = await said(box, "sh", "-c", f"cd; {FILL}", budget=30.0)
        assert ran.ended == "disk"

    on_loop(main())


@pytest.mark.parametrize("address", ["64:ff9b::7f00:1", "::7f00:1", "::ffff:127.0.0.1"])
def test_an_address_in_an_address_is_no_public_one(address: str) -> None:
    assert is_internal_address(address)


def test_who_is_named_by_a_url_is_reached_at_its_port_alone() -> None:
    named = {"A_BASE_URL": "http://localhost/v1", "B_API_BASE": "https://K:k@Models.example:8443"}
    assert factory.find_model_hosts(named)[-2:] == ("localhost:80", "models.example:8443")


@both
def test_a_home_is_kept_where_one_is_given(tmp_path: Path, kind: str) -> None:
    async def main() -> None:
        for folder in ("work", "home"):
            (tmp_path / folder).mkdir()
        given = SandboxSpec(workspace=tmp_path / "work", env={}, home=tmp_path / "home")
        for script in ("echo before > ~/said", "cat ~/said"):
            async with opened(kind, given) as box:
                _, words = await said(box, "sh", "-c", script)
        assert words == "before\n"

    on_loop(main())


HOG = "x = bytearray(1 << 30); x[::4096] = bytes(len(x[::4096])); print(len(x))"
BOMB = "f() { f | f & }; f 2>/dev/null; sleep 2; ps -e | wc -l"
FILL = "dd if=/dev/zero of=filled bs=1M count=1000 status=none; sleep 20"


@both
def test_memory_is_limited(tmp_path: Path, kind: str) -> None:
    async def main() -> None:
        async with opened(kind, order(tmp_path, memory=128 << 20)) as box:
            ran, words = await said(box, "python3", "-c", HOG)
        assert (ran, words) == (SandboxResult(exit=137, ended="memory"), "")

    on_loop(main())


@both
def test_processes_are_limited_and_all_of_them_end(tmp_path: Path, kind: str) -> None:
    async def main() -> None:
        async with opened(kind, order(tmp_path, processes=40)) as box:
            _, words = await said(box, "bash", "-c", BOMB, budget=4.0)
            numbers = [int(each) for each in words.split() if each.isdigit()]
            assert all(number < 60 for number in numbers)
            assert await said(box, "echo", "alive") == (
                SandboxResult(exit=0, ended="exit"),
                "alive\n",
            )

    on_loop(main())


@both
def test_the_workspace_cannot_fill_the_disk(tmp_path: Path, kind: str) -> None:
    async def main() -> None:
        async with opened(kind, order(tmp_path, disk=50 << 20)) as box:
            ran, _ = await said(box, "sh", "-c", FILL, budget=30.0)
        assert ran.ended == "disk"

    on_loop(main())


def test_scratch_space_is_limited(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened("entered", order(tmp_path, scratch=10 << 20)) as box:
            for place in ("/tmp/x", "~/x"):
                ran, words = await said(box, "sh", "-c", f"head -c 20M /dev/zero > {place}")
                assert "No space left on device" in words

    on_loop(main())


def test_a_flood_of_output_is_read_and_dropped(tmp_path: Path) -> None:
    async def main() -> None:
        async with opened("entered", order(tmp_path, output=1 << 20)) as box:
            ran, words = await said(box, "head", "-c", "200M", "/dev/zero")
        assert ran == SandboxResult(exit=0, ended="exit", dropped=FLOOD - (1 << 20))
        assert len(words) == 1 << 20

    on_loop(main())


def test_a_share_of_the_processors_is_all_it_gets(tmp_path: Path) -> None:
    async def main() -> None:
        spin = "import time; e = time.monotonic() + 2\nwhile time.monotonic() < e: pass\n"
        spin += "print(time.process_time())"
        given = SandboxSpec(workspace=tmp_path, env={}, bounds=SandboxLimits(cpus=0.2))
        async with opened("entered", given) as box:
            _, words = await said(box, "python3", "-c", spin)
        assert float(words) < 1.0  # of two seconds, and a fifth is 0.4

    on_loop(main())


@both
def test_what_a_command_leaves_running_ends_with_it(tmp_path: Path, kind: str) -> None:
    async def main() -> None:
        async with opened(kind, order(tmp_path)) as box:
            script = "setsid sleep 1000 & (sleep 1000 &) ; echo begun"
            assert await said(box, "sh", "-c", script) == (
                SandboxResult(exit=0, ended="exit"),
                "begun\n",
            )
            assert sleeping(tmp_path) == []

    on_loop(main())


WEAKER = """
import asyncio, sys
from pathlib import Path
from sandbox.process_sandbox import open_process_sandbox
from sandbox.types import SandboxSpec
async def main():
    async with open_process_sandbox(SandboxSpec(workspace=Path(sys.argv[1]), env={})) as box:
        print(*box.weaker, sep="\\n", flush=True)
        ran = await box.run(["curl", "-sS", "http://a.example/"])
        print(ran.exit, dict(box.refused))
asyncio.run(main())
"""


def test_what_does_not_hold_without_namespaces_is_named(tmp_path: Path) -> None:
    without = Path(__file__).parents[1] / "support" / "without_namespaces.py"
    command = (sys.executable, str(without), sys.executable, "-c", WEAKER, str(tmp_path))
    done = subprocess.run(command, cwd=ROOM.parent, capture_output=True, text=True, timeout=60)
    *lacking, refused, ended = done.stdout.splitlines()
    assert "it may reach all that this machine reaches, past the relay" in lacking
    assert "it reads and writes whatever its user may" in lacking
    assert refused == "stumble sandbox: a.example:80: not on the allow list"
    assert ended == "0 {'a.example:80: not on the allow list': 1}"


OWNER = """
import asyncio, sys
from pathlib import Path
from sandbox.process_sandbox import open_process_sandbox
from sandbox.docker.docker_sandbox import open_docker_sandbox
from sandbox.types import SandboxSpec
async def main():
    order = SandboxSpec(workspace=Path(sys.argv[1]), env={})
    kind, image = sys.argv[2:]
    docker = kind == "docker"
    opened = open_docker_sandbox(order, image=image) if docker else open_process_sandbox(order)
    async with opened as box:
        await box.run(["sh", "-c", "sleep 12345 & touch began; sleep 12345"])
asyncio.run(main())
"""


def sleeping(folder: Path) -> list[int]:
    """The processes that were begun in a folder."""
    found = []
    for each in Path("/proc").iterdir():
        try:
            if each.name.isdigit() and (each / "cwd").readlink() == folder:
                found.append(int(each.name))
        except OSError:
            continue  # it has just ended
    return found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("kind", ["docker", "process"])
def test_an_owner_that_is_killed_leaves_nothing_that_runs(
    tmp_path: Path, kind: str, number: signal.Signals
) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path), kind, image()]
    with subprocess.Popen(command, cwd=ROOM.parent) as owner:
        wait(lambda: (tmp_path / "began").exists() and len(sleeping(tmp_path)) >= 3)
        owner.send_signal(number)
    wait(lambda: not sleeping(tmp_path))

    on_loop(swept(tmp_path))
    with engine.open_docker_engine() as client:
        left = client.containers(all=True, filters={"label": engine.OWNER_LABEL})
    assert [
        each for each in left if each["Labels"][engine.OWNER_LABEL].startswith(f"{owner.pid}:")
    ] == []


async def swept(folder: Path) -> None:
    """A later start, which removes what the engine still knows of the dead."""
    async with open_docker_sandbox(order(folder), image=image()):
        pass


def wait(until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not until():
        assert time.monotonic() < deadline
        time.sleep(0.05)
