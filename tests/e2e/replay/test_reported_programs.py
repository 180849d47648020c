"""Programs of other projects' reports print the same directly, recorded and replayed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import warm_stumble
from tests.support.servers.reported_programs import PROGRAMS, START, Program, program_server
from tests.support.tiers import EXHAUSTIVE
from tests.support.warm_stumble import CommandResult
from traces.tape.reader import read_tape


def run_stumble(folder: Path, *words: str, **environment: str) -> CommandResult:
    kept = {name: os.environ[name] for name in ("PATH", "HOME")}
    store = str(folder / ".stumble")
    env = {**kept, **environment, "STUMBLE_STORE": store}
    return warm_stumble.run_stumble(words, cwd=folder, env=env, timeout=120)


def record_program(program: Program, folder: Path) -> tuple[str, str]:
    """What the program prints directly and recorded; the tape is a.tape."""
    (folder / "client.py").write_text(START + program.client)
    with program_server(program.serve) as port:
        direct = subprocess.run(
            (sys.executable, "client.py", str(port)),
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    with program_server(program.serve) as port:
        client = (sys.executable, "client.py", str(port))
        recorded = run_stumble(folder, "record", "--times", "1", "-o", "a.tape", "--", *client)
    assert recorded.code == 0, recorded.err
    return direct.stdout, recorded.out


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_prints_the_same_recorded_and_replayed(name: str, tmp_path: Path) -> None:
    direct, recorded = record_program(PROGRAMS[name], tmp_path)
    assert recorded == direct != ""
    assert not read_tape(tmp_path / "a.tape").damage
    for _ in range(3 if EXHAUSTIVE else 1):
        replayed = run_stumble(tmp_path, "replay", "a.tape")
        assert (replayed.code, replayed.out) == (0, direct), replayed.err


def test_a_changed_upload_is_refused(tmp_path: Path) -> None:
    record_program(PROGRAMS["random boundaries of forms, binary bodies"], tmp_path)
    assert run_stumble(tmp_path, "replay", "a.tape", CHANGED="1").code == 3


def test_half_a_pair_of_surrogates_is_shown_and_exported(tmp_path: Path) -> None:
    record_program(PROGRAMS["half of a pair of surrogates"], tmp_path)
    assert run_stumble(tmp_path, "show", "a.tape").code == 0
    for form in ("atif", "otel", "har", "vcr"):
        exported = run_stumble(tmp_path, "export", "a.tape", "--to", form, "-o", f"a.{form}")
        assert exported.code == 0, exported.err
        assert run_stumble(tmp_path, "import", f"a.{form}").code == 0


def test_an_agent_that_ends_with_another_status_ends_the_replay_in_3(tmp_path: Path) -> None:
    polling = PROGRAMS["equal requests get other answers"]
    ending = f'{polling.client}\nsys.exit(int(os.environ.get("STATUS", 0)))\n'
    record_program(Program(ending, polling.serve), tmp_path)
    assert run_stumble(tmp_path, "replay", "a.tape").code == 0
    replayed = run_stumble(tmp_path, "replay", "a.tape", STATUS="1")
    assert replayed.code == 3
    assert "the agent exited 1, in the recording 0" in replayed.err
