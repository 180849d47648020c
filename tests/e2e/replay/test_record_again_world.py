"""`accept --record` resets the world, and replaces no tape by a run that ended wrong."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

AGENT = """
import json, os, urllib.request
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "go"}]}).encode()
urllib.request.urlopen(os.environ["BASE"] + "/chat/completions", body).read()
open("world.txt", "a").write("paid\\n")
"""
WORLD = """
[world]
reset = "rm -f world.txt"
verify = "python3 -c \\"import sys; sys.exit(open('world.txt').read() != 'paid\\\\\\\\n')\\""
"""


def stumble(folder: Path, base: str, *words: str) -> subprocess.CompletedProcess[str]:
    own = {"HOME": str(folder), "STUMBLE_STORE": str(folder.parent / "store"), "BASE": base}
    env = {k: v for k, v in os.environ.items() if not k.startswith("STUMBLE")} | own
    command = [sys.executable, "-m", "stumble", *words]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=env, timeout=120, check=False
    )


@pytest.mark.gate
def test_a_golden_tape_is_recorded_again_in_a_fresh_world(tmp_path: Path) -> None:
    from tests.support.servers.asking_model import serving

    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT)
    (folder / "stumble.toml").write_text(WORLD)
    with serving([]) as base:
        command = ("record", "-o", "a.tape", "--", sys.executable, "agent.py")
        recorded = stumble(folder, base, *command)
        assert recorded.returncode == 0, recorded.stderr
        again = stumble(folder, base, "accept", "a.tape", "--record")
        assert again.returncode == 0, again.stdout + again.stderr
        assert (folder / "world.txt").read_text() == "paid\n"

        (folder / "agent.py").write_text(AGENT + 'open("world.txt", "a").write("again")\n')
        before = (folder / "a.tape").read_bytes()
        wrong = stumble(folder, base, "accept", "a.tape", "--record")
        assert wrong.returncode == 1
        assert "a.tape stays as it was: the run ended wrong" in wrong.stderr
        assert (folder / "a.tape").read_bytes() == before

        (folder / "stumble.toml").unlink()
        without = stumble(folder, base, "accept", "a.tape", "--record")
        assert without.returncode == 2
        assert "was recorded in a world that was reset" in without.stderr
        assert (folder / "a.tape").read_bytes() == before
