"""Standard input by pipe is on the tape, redacted, and each run gets it."""

import os
import subprocess
import sys
from pathlib import Path

from traces.model import MAX_INPUT_BYTES
from traces.tape.reader import read_tape

KEY = "sk-proj-AbCdEfGhIjKlMnOpQrStUvWx0123456789AbCdEf"
AGENT = "import sys; text = sys.stdin.read(); print(len(text), text.startswith('do the task'))"
READER = "import sys; print(len(sys.stdin.buffer.read()))"


def stumble(folder: Path, *words: str, given: bytes) -> subprocess.CompletedProcess[bytes]:
    home = {"HOME": str(folder), "STUMBLE_STORE": str(folder / ".stumble")}
    env = {k: v for k, v in os.environ.items() if not k.startswith("STUMBLE")} | home
    command = [sys.executable, "-m", "stumble", *words]
    return subprocess.run(
        command, input=given, capture_output=True, cwd=folder, env=env, timeout=120, check=False
    )


def test_piped_input_is_kept_and_every_run_gets_it(tmp_path: Path) -> None:
    text = f"do the task with {KEY}\n".encode()
    command = ("record", "-o", "a.tape", "--times", "2", "--", sys.executable, "-c", AGENT)
    recorded = stumble(tmp_path, *command, given=text)
    assert recorded.returncode == 0, recorded.stderr
    assert recorded.stdout.split() == [b"%d" % len(text), b"True"]
    kept = read_tape(tmp_path / "a.tape").input
    assert kept is not None
    assert (len(kept.data), kept.whole, KEY.encode() in kept.data) == (len(text), True, False)

    replayed = stumble(tmp_path, "replay", "--times", "2", "a.tape", given=b"something else")
    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout.count(recorded.stdout.strip()) == 2


def test_input_longer_than_a_tape_holds_is_named_and_never_replayed(tmp_path: Path) -> None:
    text = b"\0\xff" * (MAX_INPUT_BYTES // 2 + 1)
    command = ("record", "-o", "a.tape", "--", sys.executable, "-c", READER)
    recorded = stumble(tmp_path, *command, given=text)
    assert recorded.stdout.split() == [b"%d" % len(text)]
    warning = b"warning: input after its first 4,194,304 bytes is not kept"
    assert warning in recorded.stderr
    assert b"echo" not in recorded.stderr

    replayed = stumble(tmp_path, "replay", "a.tape", given=text)
    assert (replayed.returncode, replayed.stdout) == (2, b""), replayed.stderr
    assert b"this can be shown, not replayed" in replayed.stderr
