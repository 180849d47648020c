"""Recorded commands that name other folders by their absolute paths change nothing there.

The agent is a shell that does what a server answers. Its recording removes, replaces and adds files
in a folder of the user that is not the agent's; a replay prints the same and leaves them.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from recorder.agent.isolation import ENTER_NAMESPACES
from stumble.campaigns.environment import find_own_workspace
from stumble.campaigns.spec import parse_campaign
from tests.hostile.test_isolation import AS_ROOT, NOBODY
from tests.hostile.test_workspace_untouched import PYTHON, Model, Place, place
from tests.support.practice_shop import Said
from traces.store.trace_store import TraceStore
from traces.tape.reader import read_tape

__all__ = ["place"]
COMMANDS = """
rm -f {user}/notes.txt; cd {user}/deep && rm -rf tree && mv kept moved
echo lie > {user}/settings.txt; chmod 777 {user}/mode; ln -sf /etc/passwd {user}/link
truncate -s 0 $HOME/empty; mkdir -p $HOME/.cache/x && echo cached > $HOME/.cache/x/f
cat $HOME/.cache/x/f; cd {user} && find . -type f | sort; cat settings.txt
"""
WHO = ["root", "nobody"] if AS_ROOT else ["ourselves"]


def fill(user: Path) -> None:
    """Write the files of a user, whose key stays."""
    for path in (each for each in user.glob("*") if each.name != ".local"):
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for name in ("deep/tree/a", "deep/kept/b", "notes.txt", "settings.txt", "mode", "link",
                 "empty", "old"):  # fmt: skip
        (user / name).parent.mkdir(parents=True, exist_ok=True)
        (user / name).write_text(f"data of {name}\n")
        os.utime(user / name, (1, 1))


def describe(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return what is in a folder: modes and contents, without our own certificates."""
    return {
        str(path.relative_to(folder)): (path.lstat().st_mode, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".local" not in path.parts
    }


@pytest.fixture
def user() -> Iterator[Path]:
    """A folder of the user that is not below the one for temporary files."""
    with TemporaryDirectory(prefix="s-", dir="/opt" if AS_ROOT else Path("~").expanduser()) as at:
        yield Path(at).resolve() / "user"


def record(place: Place, user: Path) -> Said:
    """Record the commands, whose files are there again afterwards; return what was printed."""
    fill(user)
    Model.answer = COMMANDS.format(user=user)
    host = ("--host", f"model.test=127.0.0.1:{place.port}")
    agent = ("--", PYTHON, "agent.py")
    result = place.stumble(
        place.recorded, "record", "-o", "../a.tape", *host, *agent, HOME=str(user)
    )
    assert (result.code, (user / "notes.txt").exists()) == (0, False), result.err
    fill(user)
    return result


def replay(place: Place, user: Path, who: str, *options: str) -> Said:
    """Replay the recording, as this user."""
    if who != "nobody":
        return place.stumble(place.recorded, "replay", "../a.tape", *options, HOME=str(user))
    for path in (user.parent, user, *user.rglob("*")):
        os.chown(path, 65534, 65534, follow_symlinks=False)
    return place.stumble_as_nobody(place.recorded, "replay", "../a.tape", *options, HOME=str(user))


@pytest.mark.parametrize("who", WHO)
def test_a_command_for_another_folder_changes_nothing_there(
    who: str, place: Place, user: Path
) -> None:
    recorded, before = record(place, user), describe(user)
    said = replay(place, user, who)
    assert (said.code, said.out) == (0, recorded.out), said.err
    assert describe(user) == before
    assert "outside: changes of files elsewhere are thrown away" in said.err
    assert f"warning: outside: changes of {user}" in said.err
    assert list((place.above / "tmp").iterdir()) == []

    host = f"model.test=127.0.0.1:{place.port}"
    said = replay(place, user, who, "--live", "all", "--host", host)
    assert (said.code, said.out) == (0, recorded.out), said.err
    assert describe(user) == before

    said = replay(place, user, who, "--writable", str(user / "deep"))
    assert (said.code, said.out) == (0, recorded.out), said.err
    assert [path.name for path in (user / "deep").iterdir()] == ["moved"]
    assert (user / "notes.txt").exists()


def test_a_campaigns_copies_open_the_paths_that_it_names(place: Place, user: Path) -> None:
    record(place, user)
    said = {"traces": ["a.tape"], "writable": [str(user / "deep")]}
    asked = parse_campaign(said, place.above / "c.toml")
    [source], store = asked.sources, TraceStore(place.recorded / ".stumble")
    found = find_own_workspace(asked, source, read_tape(place.above / "a.tape"), store)
    assert found is not None
    assert found.writable == (user / "deep",)


@pytest.mark.parametrize("who", WHO)
def test_without_an_overlay_a_folder_is_read_only(who: str, user: Path, tmp_path: Path) -> None:
    fill(user)
    for path in (user.parent, user, *user.rglob("*")):
        if who == "nobody":
            os.chown(path, 65534, 65534)
    root = f"/{user.parts[1]}"
    folders = [(root, str(tmp_path / "a,layer"))]  # overlayfs cannot be given this name
    order = json.dumps({"outside": {"folders": folders, "kept": ["/tmp", "/proc"]}, "cwd": "/"})
    done = subprocess.run(
        [*(NOBODY if who == "nobody" else ()), *ENTER_NAMESPACES, order, "/bin/sh", "sh", "-c",
         f"rm {user}/notes.txt; cat {user}/notes.txt"],
        capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    assert "Read-only file system" in done.stderr
    assert done.stdout == "data of notes.txt\n"
