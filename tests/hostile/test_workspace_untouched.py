"""Recorded commands never run in a person's folder unless told to; a person's edits count.

The agent is a shell that does what a server answers. Its recording removes a file; the folder
from which the tape is played has a file of that name, which must stay.
"""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import pytest

from tests.hostile.test_isolation import AS_ROOT, NOBODY
from tests.support.practice_shop import Said
from tests.support.warm_stumble import run_stumble

AGENT = """
import os, subprocess, urllib.request
with urllib.request.urlopen("http://model.test/next", timeout=20) as answer:
    command = answer.read().decode()
done = subprocess.run(command, shell=True, capture_output=True, text=True)
print(done.stdout + done.stderr + "in " + os.getcwd())
"""
PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
"""An interpreter that every user may read, if there is one."""
REMOVES = "cat notes.txt; rm -f notes.txt"


class Model(BaseHTTPRequestHandler):
    answer: ClassVar[str] = REMOVES

    def do_GET(self) -> None:
        body = self.answer.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Place:
    """A recorded folder, another one of somebody else, and the tape above both."""

    def __init__(self, above: Path, port: int) -> None:
        self.above, self.port = above, port
        self.recorded, self.elsewhere = above / "recorded", above / "elsewhere"
        for folder in (self.recorded, self.elsewhere):
            folder.mkdir()
            (folder / "agent.py").write_text(AGENT)
            (folder / "notes.txt").write_text(f"notes of {folder.name}\n")
        for name in ("home", "tmp"):
            (above / name).mkdir()

    def stumble(self, folder: Path, *arguments: str, **more: str) -> Said:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("STUMBLE")}
        env = {"HOME": str(self.above / "home"), "TMPDIR": str(self.above / "tmp")}
        return run_stumble(arguments, cwd=folder, env=kept | env | more, timeout=90)

    def stumble_as_nobody(self, folder: Path, *arguments: str, **more: str) -> Said:
        """Run a command as another user, who then owns all that is here."""
        for path in (self.above, *self.above.rglob("*")):
            os.chown(path, 65534, 65534, follow_symlinks=False)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("STUMBLE", "XDG"))}
        env = {"HOME": str(self.above / "home"), "TMPDIR": str(self.above / "tmp")}
        command = [*NOBODY, sys.executable, "-m", "stumble", *arguments]
        done = subprocess.run(
            command, cwd=folder, env=kept | env | more, capture_output=True, text=True, timeout=90
        )
        return Said(code=done.returncode, out=done.stdout, err=done.stderr)

    def record(self, *options: str, restore: bool = True, python: str = PYTHON) -> Said:
        host = ("--host", f"model.test=127.0.0.1:{self.port}")
        agent = ("--", python, "agent.py")
        result = self.stumble(self.recorded, "record", "-o", "../a.tape", *host, *options, *agent)
        assert result.code == 0, result.err
        if restore:
            (self.recorded / "notes.txt").write_text("notes of recorded\n")
        return result

    @property
    def notes(self) -> Path:
        return self.elsewhere / "notes.txt"


@pytest.fixture
def place() -> Iterator[Place]:
    Model.answer = REMOVES
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), Model) as server,
        TemporaryDirectory(prefix="s-") as above,
    ):
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Place(Path(above).resolve(), server.server_address[1])
        server.shutdown()
        thread.join(timeout=10)


COMMANDS = {
    "replay": ("replay", "../a.tape"),
    "replay with a command": ("replay", "../a.tape", "--", sys.executable, "agent.py"),
    "live replay": ("replay", "../a.tape", "--live", "all"),
    "fork": ("fork", "../a.tape", "--fault", "http_status:code=503"),
    "shrink": ("shrink", "../a.tape", "--recording", "../a.tape", "--reset", "true",
               "--verify", "true"),
    "campaign": ("campaign", "--traces", "../a.tape", "--fault", "http_status:code=503"),
    "campaign with a world": ("campaign", "--traces", "../a.tape", "--fault", "digit",
                              "--reset", "true {workspace}"),
    "run": ("run", "lost-ack-on-refund", "--tape", "../a.tape", "--reset", "true",
            "--verify", "true"),
}  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_without_its_snapshot_nothing_runs_in_another_folder(place: Place, command: str) -> None:
    place.record()
    result = place.stumble(place.elsewhere, *COMMANDS[command])
    assert result.code == 2, result.err
    assert "recorded commands would really run in" in result.err
    assert f"STUMBLE_STORE={place.recorded / '.stumble'}" in result.err
    assert "--in-place" in result.err
    assert place.notes.read_text() == "notes of elsewhere\n"


@pytest.mark.skipif(not AS_ROOT, reason="only root may become somebody else")
def test_nobody_in_particular_is_refused_too_and_then_gets_a_copy(place: Place) -> None:
    place.record()
    said = place.stumble_as_nobody(place.elsewhere, "replay", "../a.tape")
    assert said.code == 2, said.err
    assert "recorded commands would really run in" in said.err
    store = str(place.recorded / ".stumble")
    said = place.stumble_as_nobody(place.elsewhere, "replay", "../a.tape", STUMBLE_STORE=store)
    assert (said.code, said.out) == (0, f"notes of recorded\nin {place.recorded}\n"), said.err
    for folder in (place.recorded, place.elsewhere):
        assert (folder / "notes.txt").read_text() == f"notes of {folder.name}\n"


@pytest.mark.parametrize("lost", ["manifests", "blobs", "snapshots"])
def test_a_snapshot_that_is_lost_in_part_is_none(place: Place, lost: str) -> None:
    place.record()
    snapshots = place.recorded / ".stumble" / "snapshots"
    shutil.rmtree(snapshots if lost == "snapshots" else snapshots / lost)
    result = place.stumble(place.recorded, "replay", "../a.tape")
    assert result.code == 2, result.err
    assert "no copy of the agent's workspace can be made" in result.err
    assert (place.recorded / "notes.txt").read_text() == "notes of recorded\n"


def test_a_recording_without_a_snapshot_says_how_to_get_one(place: Place) -> None:
    place.record("--no-snapshot")
    result = place.stumble(place.recorded, "replay", "../a.tape")
    assert result.code == 2
    assert "record it again with its workspace" in result.err
    assert "--in-place" in result.err
    assert (place.recorded / "notes.txt").read_text() == "notes of recorded\n"


def test_both_ways_out_work(place: Place) -> None:
    place.record()
    store = str(place.recorded / ".stumble")
    result = place.stumble(place.elsewhere, "replay", "../a.tape", STUMBLE_STORE=store)
    assert result.code == 0, result.err
    assert result.out == f"notes of recorded\nin {place.recorded}\n"
    assert place.notes.read_text() == "notes of elsewhere\n"
    assert (place.recorded / "notes.txt").read_text() == "notes of recorded\n"

    result = place.stumble(place.elsewhere, "replay", "../a.tape", "--in-place")
    assert result.code == 0, result.err
    assert not place.notes.exists()


OUT = "workspace: a fresh copy, as recorded"


def test_an_edit_since_the_recording_is_used_and_named(place: Place) -> None:
    place.record(restore=False)
    (place.recorded / "helper.py").write_text("WORD = 'edited'")
    agent = f"import helper\n{AGENT}print(helper.WORD)"
    (place.recorded / "agent.py").write_text(agent)
    result = place.stumble(place.recorded, "replay", "../a.tape")
    assert result.code == 0, result.err
    assert result.out.endswith("edited\n")
    assert f"{OUT}, with your edits to agent.py, helper.py (--as-recorded omits them)" in result.err
    assert result.out.startswith("notes of recorded\n"), "what the agent removed is no edit"

    result = place.stumble(place.recorded, "replay", "../a.tape", "--as-recorded")
    assert (result.code, result.out) == (0, f"notes of recorded\nin {place.recorded}\n")
    assert f"{OUT}\n" in result.err


def test_new_times_and_other_recordings_of_the_agent_are_no_edits(place: Place) -> None:
    place.record(restore=False)
    (place.recorded / "notes.txt").write_text("notes of recorded\n")
    for name in ("agent.py", "notes.txt"):
        os.utime(place.recorded / name, (1, 1))
    Model.answer = "echo more > notes.txt; echo x > made.txt"
    shutil.move(place.above / "a.tape", place.above / "first.tape")
    place.record(restore=False)
    packed = place.stumble(place.recorded, "pack", "../first.tape", "-o", "first.stumble")
    assert packed.code == 0, packed.err
    result = place.stumble(place.recorded, "replay", "../first.tape", "--json")
    assert result.code == 0, result.err
    assert (result.json["edits"], result.json["edits_unknown"]) == ([], None)


def test_without_the_end_of_a_recording_edits_are_said_to_be_unknown(place: Place) -> None:
    place.record(restore=False)
    shutil.rmtree(place.recorded / ".stumble" / "snapshots" / "ends")
    result = place.stumble(place.recorded, "replay", "../a.tape")
    assert result.code == 0, result.err
    assert "whether notes.txt was edited since is not known" in result.err


def test_a_campaign_and_a_tape_of_it_say_what_changed(place: Place) -> None:
    place.record(restore=False)
    (place.recorded / "agent.py").write_text(AGENT + "# new\n")
    result = place.stumble(place.recorded, "campaign", "--traces", "../a.tape", "--plan", "--fault",
                         "http_status:code=503")  # fmt: skip
    assert "agent.py changed since; the runs of a campaign use the folder as it was" in result.err
