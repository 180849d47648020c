"""The front door opens without what only single commands need."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from stumble.cli.command_table import JOB_FOLDERS
from traces.model import RunEnding, Trajectory
from traces.tape.writer import TapeWriter

ASK = """
import sys
from stumble.cli.app import cli
try:
    cli(["--help"])
except SystemExit:
    pass
print(*sys.modules)
"""
HEAVY = {"mitmproxy", "duckdb", "litellm", "pyarrow", "traces.tape", "traces.redaction.redactor"}
DRAWING = {"jinja2", "vl_convert"}


def test_help_imports_nothing_heavy() -> None:
    result = subprocess.run(
        [sys.executable, "-c", ASK], check=True, capture_output=True, text=True, timeout=60
    )
    imported = set(result.stdout.splitlines()[-1].split())
    commands = tuple(f"stumble.cli.{folder}" for folder in JOB_FOLDERS.values())
    assert not any(name.startswith(commands) for name in imported)
    assert imported & (HEAVY | DRAWING) == set()


SUMMARY = """
import atexit, sys
from stumble.cli.app import run_cli
atexit.register(lambda: print(*sys.modules))
sys.argv = ["stumble", "report"]
run_cli()
"""


@pytest.mark.gate
def test_only_a_page_or_a_picture_imports_what_draws(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    result = subprocess.run(
        [sys.executable, "-c", SUMMARY],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"STUMBLE_STORE": str(tmp_path / "store")},
        timeout=60,
    )
    imported = set(result.stdout.splitlines()[-1].split())
    assert "stumble.report.collect" in imported
    assert "stumble.experiments.plan_completion" not in imported  # where nothing is sealed
    assert imported & DRAWING == set()


QUERY = """
import atexit, sys
from stumble.cli.app import run_cli
atexit.register(lambda: print(*sys.modules))
sys.argv = ["stumble", "sql", "select 1"]
run_cli()
"""
UNASKED = {"faults", "traces.importers", "traces.tape", "stumble.atlas", "pyarrow.compute"}
"""What a query needs only if there is something to index, to restore or to look up."""


@pytest.mark.gate
def test_no_command_imports_pandas_because_it_is_installed(tmp_path: Path) -> None:
    assert importlib.util.find_spec("pandas"), "the tests' environment has it"
    (tmp_path / "store").mkdir()
    result = subprocess.run(
        [sys.executable, "-c", QUERY],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"STUMBLE_STORE": str(tmp_path / "store")},
        timeout=60,
    )
    imported = set(result.stdout.splitlines()[-1].split())
    assert "pyarrow" in imported
    assert "pandas" not in imported
    assert imported & UNASKED == set()


IGNORING = """
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.executable, [sys.executable, "-m", "stumble", *sys.argv[1:]])
"""


def test_an_exit_code_is_known_under_a_program_that_ignores_its_children(tmp_path: Path) -> None:
    options = ("record", "-o", str(tmp_path / "a.tape"))
    result = subprocess.run(
        [sys.executable, "-c", IGNORING, *options, "--", "sh", "-c", "exit 3"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert result.returncode == 3, result.stderr


REPLAY = """
import atexit, sys
from stumble.cli.app import run_cli
atexit.register(lambda: print(*sys.modules))
sys.argv = ["stumble", "replay", "a.tape", "--in-place", "--", "true"]
run_cli()
"""
UNNEEDED = {"mitmproxy", "cryptography", "duckdb", "pyarrow", "wsproto", "faults", "litellm"}


@pytest.mark.gate
def test_a_replay_that_nothing_strikes_imports_only_what_it_needs(tmp_path: Path) -> None:
    with TapeWriter(tmp_path / "a.tape", Trajectory(id="run-1", recorded_at=0.0)) as tape:
        tape.write_ending(RunEnding(ended="final"))
    env = os.environ | {"HOME": str(tmp_path), "STUMBLE_STORE": str(tmp_path / "store")}
    env["XDG_DATA_HOME"] = str(tmp_path / "data")
    # The first one makes the authority, and needs what makes certificates.
    for _ in range(2):
        result = subprocess.run(
            [sys.executable, "-c", REPLAY],
            check=True,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=env,
            timeout=60,
        )
    imported = set(result.stdout.splitlines()[-1].split())
    assert "recorder.proxy.server" in imported
    assert imported & UNNEEDED == set()


RECORD = """
import atexit, sys
def note(event, args):
    if event == "subprocess.Popen" and "the-agent" in str(args):
        print(*sys.modules, flush=True)
sys.addaudithook(note)
atexit.register(lambda: print(*sys.modules))
from stumble.cli.app import run_cli
sys.argv = ["stumble", "record", "-o", "a.tape", "--", "sh", "-c", "exit 0", "the-agent"]
run_cli()
"""
UNREAD = {
    "duckdb",
    "pyarrow",
    "numpy",
    "litellm",
    "mitmproxy",
    "cryptography",
    "stumble.store.index",
}
"""What a recording needs neither before its agent runs nor afterwards."""
AFTER_THE_AGENT = {"faults", "scenarios.benchmarks", "stumble.drift"}


@pytest.mark.gate
def test_a_recording_loads_neither_the_index_nor_the_faults(tmp_path: Path) -> None:
    env = os.environ | {"HOME": str(tmp_path), "STUMBLE_STORE": str(tmp_path / "store")}
    # The first one makes the authority, and needs what makes certificates.
    for number in range(2):
        result = subprocess.run(
            [sys.executable, "-c", RECORD.replace("a.tape", f"{number}.tape")],
            check=True,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=env,
            timeout=60,
        )
    before, after = (set(line.split()) for line in result.stdout.splitlines())
    assert "recorder.agent.process" in before
    assert before & (UNREAD | AFTER_THE_AGENT) == set()
    assert after & UNREAD == set()
    assert len(list((tmp_path / "store" / "tapes").glob("*.tape"))) == 2


COUNT = """
import atexit, sys
from stumble.cli.app import run_cli
atexit.register(lambda: print("modules", len(sys.modules)))
sys.argv = ["stumble", *sys.argv[1:]]
run_cli()
"""
MODULES = {
    "--help": 127,
    "show a.tape": 270,
    "show --exchanges a.tape": 270,
    "faults digit": 356,
    "replay a.tape --in-place -- true": 530,
}
"""Most modules of a command, those of Python and click included."""


@pytest.mark.gate
@pytest.mark.parametrize("command", MODULES)
def test_a_command_imports_few_modules(command: str, tmp_path: Path) -> None:
    with TapeWriter(tmp_path / "a.tape", Trajectory(id="run-1", recorded_at=0.0)) as tape:
        tape.write_ending(RunEnding(ended="final"))
    for _ in range(2):  # the first one makes the authority
        done = subprocess.run(
            [sys.executable, "-c", COUNT, *command.split()],
            check=True,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=os.environ | {"HOME": str(tmp_path), "STUMBLE_STORE": str(tmp_path / "store")},
            timeout=60,
        )
    count = int(done.stdout.splitlines()[-1].removeprefix("modules "))
    assert count <= MODULES[command], f"{command}: {count} modules"
