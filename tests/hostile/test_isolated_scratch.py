"""An isolated agent has temporary files of its own; what it names of the others stays."""

import os
import shlex
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from recorder.agent.scratch_paths import find_named_paths, list_scratch_folders
from tests.hostile.test_isolated_devices import folder, run_stumble, user

__all__ = ["folder", "user"]
PYTHON = sys.executable
LOOK = """
import os, pathlib, socket, sys, tempfile
for place in ("/tmp", "/var/tmp"):
    for name in ("{name}", "made"):
        path = pathlib.Path(place, name)
        print(path.exists(), end=" ")
        path.write_text("overwritten")
with socket.socket(socket.AF_UNIX) as other:
    print(other.connect_ex(os.sep.join(("", "tmp", "{name}.socket"))) != 0, end=" ")
print(tempfile.gettempdir(), oct(os.stat("/tmp").st_mode), pathlib.Path("agent.py").exists())
"""


@pytest.fixture
def victim() -> Iterator[Path]:
    """A file of another program that anybody may write, beside a socket."""
    with tempfile.TemporaryDirectory(prefix="victim-", dir="/tmp") as name:  # noqa: S108
        path = Path(f"{name}.file")
        path.write_text("of another program")
        path.chmod(0o666)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"{path}.socket")
            server.listen()
            Path(f"{path}.socket").chmod(0o777)
            yield path
        Path(f"{path}.socket").unlink()
        path.unlink()


def record(folder: Path, user: str) -> None:
    (folder / "agent.py").write_text("print('recorded')")
    options = ("--times", "1", "-o", "a.tape")
    recorded = run_stumble(folder, user, "record", *options, "--", PYTHON, "agent.py")
    assert recorded.returncode == 0, recorded.stderr


def replay(folder: Path, user: str, program: str, *options: str) -> tuple[str, str]:
    record(folder, user)
    replayed = ("replay", "--isolation", "require", *options, "a.tape", "--")
    done = run_stumble(folder, user, *replayed, PYTHON, "-c", program)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_temporary_files_of_others_are_neither_seen_nor_changed(
    folder: Path, user: str, victim: Path
) -> None:
    told, report = replay(folder, user, LOOK.format(name=victim.name))
    assert told == "False False False False True /tmp 0o41777 True\n"
    assert victim.read_text() == "of another program"
    assert not (victim.parent / "made").exists()
    assert "except in /run" in report
    assert "/tmp, " not in report


@pytest.mark.parametrize("how", ["command", "list", "url", "writable"])
def test_what_is_named_stays(how: str, folder: Path, user: str, victim: Path) -> None:
    write = f"open('{victim}', 'a').write('!')"
    other = (
        "import os; p = os.sep + 'tmp' + os.sep; " + f"open(p + '{victim.name}', 'a').write('!')"
    )
    program, options = {
        "command": (write, ()),
        "list": (f"x = '/a:{victim}:/b'; {other}", ()),
        "url": (f"x = 'file://{victim}'; {other}", ()),
        "writable": (other, ("--writable", str(victim))),
    }[how]
    _, report = replay(folder, user, program, *options)
    assert victim.read_text() == "of another program!"
    assert str(victim) in report


def test_a_program_keeps_its_folder_and_a_variable_names_no_scratch_folder(tmp_path: Path) -> None:
    base, below = (tmp_path,), tmp_path / "venv"
    for name in ("venv/bin/python", "house/x", "other/file"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    python = str(below / "bin" / "python")
    env = {
        "PATH": f"/usr/bin:{below}/bin",
        "HOME": f"{tmp_path}/house",
        "TMPDIR": f"{tmp_path}/other",
    }
    assert find_named_paths([python], {}, base) == (below,)
    assert find_named_paths([], env, base) == (tmp_path / "house", below)
    assert find_named_paths([shlex.join(("cat", f"{tmp_path}/house/x"))], env, base) == (
        tmp_path / "house",
        below,
    )
    assert find_named_paths([f"{tmp_path}", f"{tmp_path}/.", f"{tmp_path}/none"], {}, base) == ()
    assert find_named_paths([f"{tmp_path}/house/none"], {}, base) == (tmp_path / "house",)
    assert find_named_paths([f"{tmp_path}/house/../other/file"], {}, base) == (
        tmp_path / "other" / "file",
    )
    assert all(os.path.isabs(path) for path in list_scratch_folders())  # noqa: PTH117
