"""One world serves one run at a time, whoever asks, in whichever process."""

import asyncio
import multiprocessing
import time
from pathlib import Path

import pytest

from scenarios.world import CommandWorld
from stumble.errors import UsageError
from stumble.runs.environment import worlds
from stumble.runs.environment.worlds import lock_world, name_world

WORLD = CommandWorld(("true", "shop"))


@pytest.fixture(autouse=True)
def own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds, "_LOCK_BASE", tmp_path)


def occupy(log: str, seconds: float) -> None:
    """Hold the world for a while, and write down when it began and ended."""

    async def run() -> None:
        async with lock_world(WORLD, Path("/w")):
            began = time.monotonic()
            await asyncio.sleep(seconds)
            with Path(log).open("a") as file:
                file.write(f"{began} {time.monotonic()}\n")

    asyncio.run(run())


def test_runs_of_several_processes_never_overlap(tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    context = multiprocessing.get_context("fork")
    users = [context.Process(target=occupy, args=(log, 0.05)) for _ in range(4)]
    for user in users:
        user.start()
    for user in users:
        user.join(30)
        assert user.exitcode == 0
    spans = sorted(tuple(map(float, line.split())) for line in Path(log).read_text().splitlines())
    assert len(spans) == 4
    assert all(spans[n][1] <= spans[n + 1][0] for n in range(3))


def test_who_waits_is_told_of_it_and_a_world_of_another_name_is_free() -> None:
    heard: list[str] = []

    async def run() -> None:
        async with lock_world(WORLD, Path("/w")):
            other = CommandWorld(("true", "other"))
            async with lock_world(other, Path("/w")), lock_world(None, Path("/w")):
                pass
            waiting = asyncio.create_task(wait())
            await asyncio.sleep(0.2)
            assert not waiting.done()
        await asyncio.wait_for(waiting, 10)

    async def wait() -> None:
        async with lock_world(WORLD, Path("/w"), say=heard.append, after=0.0):
            pass

    asyncio.run(run())
    assert heard == ["waiting: another run uses this world (true shop)"]


def test_a_world_is_named_by_what_sets_it_back_and_where() -> None:
    """Another verifier judges the same world."""
    judged = CommandWorld(("true", "shop"), ("false",), state_command=("cat", "x"))
    assert name_world(judged, Path("/w")) == name_world(WORLD, Path("/w"))
    assert name_world(WORLD, Path("/v")) != name_world(WORLD, Path("/w"))


@pytest.mark.parametrize(
    "command",
    [
        ("curl", "-X", "POST", "http://127.0.0.1:8901/reset"),
        ("sh", "-c", "curl -s -d '' http://localhost:8901/admin/reset?all=1 >/dev/null"),
        ("psql", "postgresql://app:p%40ss@LOCALHOST:8901/shop", "-f", "reset.sql"),
    ],
)
def test_one_server_is_one_world_from_every_folder_and_by_every_command(
    command: tuple[str, ...],
) -> None:
    first = name_world(CommandWorld(("true", "http://localhost:8901/reset")), Path("/w"))
    assert name_world(CommandWorld(command), Path("/v")) == first
    other = tuple(word.replace("8901", "8902") for word in command)
    assert name_world(CommandWorld(other), Path("/v")) != first


def test_worlds_of_several_servers_share_each_of_them() -> None:
    both = CommandWorld(("true", "redis://h:1", "http://h:2/x"))
    one = CommandWorld(("true", "http://h:2/y"))
    assert set(name_world(one, Path("/w"))) < set(name_world(both, Path("/v")))


def test_a_command_with_an_absolute_path_is_one_world_from_every_folder() -> None:
    world = CommandWorld(("sh", "/srv/shop/reset.sh"))
    assert name_world(world, Path("/w")) == name_world(world, Path("/v"))


def test_another_login_waits_for_the_same_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    here = worlds._make_lock_folder()
    for name in ("TMPDIR", "XDG_RUNTIME_DIR", "HOME"):
        monkeypatch.setenv(name, "/nonexistent")
    assert worlds._make_lock_folder() == here


def test_a_folder_of_locks_that_is_a_link_is_refused(tmp_path: Path) -> None:
    folder = worlds._make_lock_folder()
    folder.rmdir()
    folder.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(UsageError, match="another user's"):
        worlds._make_lock_folder()
