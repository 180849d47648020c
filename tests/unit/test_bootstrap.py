"""How the interpreter is found, behind shims and past what may not be read."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bootstrap

FIND = f"""
import bootstrap, os
bootstrap.account_home = lambda: os.environ["ACCOUNT"]
print(bootstrap.find_python({shutil.which("false")!r}))
"""


def find(path: str, home: Path, account: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Ask for an interpreter; `account` is the home of the account, by default HOME's folder."""
    return subprocess.run(
        [sys.executable, "-c", FIND],
        env={"PATH": path, "HOME": str(home), "ACCOUNT": str(account or home)},
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


def test_pyenv_of_the_account_is_found_if_home_is_another_folder(tmp_path: Path) -> None:
    pyenv(tmp_path / "account" / ".pyenv")
    found = find("/nowhere", home=tmp_path / "home", account=tmp_path / "account")
    assert Path(found.stdout.strip()).is_absolute()


def test_the_account_of_this_process_has_a_home() -> None:
    assert Path(bootstrap.account_home()).is_absolute()


def test_if_there_is_none_three_ways_are_named(tmp_path: Path) -> None:
    found = find("/nowhere", home=tmp_path)
    assert found.returncode == 1
    assert "no Python 3.13 or newer on PATH or under pyenv" in found.stderr
    for way in ("uv python install 3.13", "pyenv install 3.13", "python3.13-venv"):
        assert way in found.stderr


def test_a_folder_that_may_not_be_read_is_no_traceback(tmp_path: Path) -> None:
    """As after `su` with the environment of the user before."""
    private = tmp_path / "private"
    pyenv(private / "pyenv")
    private.chmod(0)
    asked = f"""
import os, sys
sys.path.insert(0, {str(bootstrap.ROOT)!r})
import bootstrap
os.environ.update(PATH={f"{private}/pyenv/shims"!r}, PYENV_ROOT={f"{private}/pyenv"!r})
if os.getuid() == 0:
    os.setuid(65534)
print(bootstrap.pythons())
"""
    done = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, timeout=60, cwd="/"
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_uv_trusts_the_system_unless_somebody_chose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "has_system_certificates", lambda: True)
    assert bootstrap.environment()["UV_SYSTEM_CERTS"] == "true"
    monkeypatch.setenv("UV_SYSTEM_CERTS", "false")
    assert bootstrap.environment()["UV_SYSTEM_CERTS"] == "false"


def test_a_machine_without_certificates_keeps_those_of_uv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    monkeypatch.delenv("UV_SYSTEM_CERTS", raising=False)
    assert not bootstrap.has_system_certificates()
    assert "UV_SYSTEM_CERTS" not in bootstrap.environment()


def test_the_environment_that_runs_this_is_the_one_that_the_locks_ask_for() -> None:
    assert bootstrap.installed(dev=True)
