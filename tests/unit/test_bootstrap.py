"""How the interpreter is found where shims stand in the way."""

import shutil
import subprocess
import sys
from pathlib import Path

import bootstrap

FIND = f"import bootstrap; print(bootstrap.find_python({shutil.which('false')!r}))"


def find(path: str, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", FIND],
        env={"PATH": path, "HOME": str(home)},
        cwd=bootstrap.ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )


def pyenv(root: Path) -> Path:
    """A pyenv that holds our own interpreter, and a shim that must not be run."""
    (root / "versions" / "3.13.0" / "bin").mkdir(parents=True)
    (root / "versions" / "3.13.0" / "bin" / "python").symlink_to(sys.executable)
    (root / "shims").mkdir()
    shim = root / "shims" / "python3.13"
    shim.write_text(f"#!/bin/sh\ntouch {root / 'was_run'}\n")
    shim.chmod(0o755)
    return root


def test_behind_a_shim_stands_an_interpreter_even_with_another_home(tmp_path: Path) -> None:
    root = pyenv(tmp_path / "pyenv")
    found = find(str(root / "shims"), home=tmp_path)
    numbers, real = bootstrap.version(sys.executable) or ((), "")
    assert numbers == sys.version_info[:3]
    assert (found.stdout, found.stderr) == (f"{real}\n", "")
    assert not (root / "was_run").exists()


def test_pyenv_in_the_home_folder_is_found_without_being_on_path(tmp_path: Path) -> None:
    pyenv(tmp_path / ".pyenv")
    assert Path(find("/nowhere", home=tmp_path).stdout.strip()).is_absolute()


def test_where_there_is_none_the_next_step_is_named(tmp_path: Path) -> None:
    found = find("/nowhere", home=tmp_path)
    assert found.returncode == 1
    assert "no Python 3.13 or newer on PATH or under pyenv" in found.stderr
    assert "`pyenv install 3.13`, have it on PATH, and run this again" in found.stderr


def test_the_environment_that_runs_this_is_the_one_that_the_locks_ask_for() -> None:
    assert bootstrap.installed(dev=True)
