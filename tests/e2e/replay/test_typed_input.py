"""What is typed at a terminal is on the tape, and each run types it again when it is due."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.asking_model import serving
from tests.support.terminal_user import TerminalUser
from traces.tape.reader import read_tape

KEY = "sk-proj-AbCdEfGhIjKlMnOpQrStUvWx0123456789AbCdEf"
ASK = """
import json, os, sys, urllib.request
messages = []
def ask(text):
    messages.append({"role": "user", "content": text})
    body = json.dumps({"model": "m", "messages": messages}).encode()
    request = urllib.request.Request(os.environ["BASE"] + "/chat/completions", body)
    with urllib.request.urlopen(request) as answer:
        said = json.load(answer)["choices"][0]["message"]["content"] or "a call"
    messages.append({"role": "assistant", "content": said})
    print("answered:", said, flush=True)
"""
CHAT = (
    ASK
    + """
while (text := input("> ")) != "quit":
    ask(text)
print("on the terminal", file=open("/dev/tty", "w"))
print("size", *os.get_terminal_size())
"""
)
RAW = (
    ASK
    + r"""
import termios, tty
before = termios.tcgetattr(0)
tty.setraw(0)
try:
    sys.stdout.write("\x1b[c\x1b]11;?\x07")
    sys.stdout.flush()
    said = b""
    while not (said.endswith(b"\x07") and b"c" in said):
        said += os.read(0, 100)
    print(f"terminal {said!r}\r", flush=True)
    text = b""
    while not text.endswith(b"\r"):
        text += os.read(0, 100)
        print("typed", len(text), "\r", flush=True)
    ask(text.decode() + repr(said))
finally:
    termios.tcsetattr(0, termios.TCSADRAIN, before)
"""
)
CURSES = (
    ASK
    + """
import curses
def main(screen):
    text, kept = "", []
    screen.addstr(0, 0, "curses: up and down, then words")
    while (key := screen.get_wch()) not in ("\\n", "\\r"):
        kept.append(str(key))
        text += key if isinstance(key, str) else f"<{curses.keyname(key).decode()}>"
        screen.addstr(1, 0, text)
        screen.refresh()
    return text
ask(curses.wrapper(main))
"""
)
STOPPED = """
import signal, sys, time
signal.signal(signal.SIGINT, lambda *_: sys.exit(7))
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""
SECRET = (
    ASK
    + """
import getpass
ask(input("> ") + str(len(getpass.getpass("password: "))))
"""
)


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    with serving([]) as url:
        yield url


def make_env(folder: Path, base: str) -> dict[str, str]:
    own = {"HOME": str(folder), "STUMBLE_STORE": str(folder / ".stumble"), "BASE": base}
    own["TERM"] = "xterm-256color"
    return {k: v for k, v in os.environ.items() if not k.startswith("STUMBLE")} | own


def start(folder: Path, base: str, script: str, *options: str) -> TerminalUser:
    (folder / "agent.py").write_text(script)
    words = ["-m", "stumble", "record", "-o", "a.tape", *options, "--", sys.executable, "agent.py"]
    return TerminalUser([sys.executable, *words], folder, make_env(folder, base))


def replay(folder: Path, base: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stumble", "replay", *options, "a.tape"]
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=folder,
        env=make_env(folder, base) | {"TERM": "dumb"},
        timeout=120,
        check=False,
    )


@pytest.mark.gate
def test_lines_typed_at_a_prompt_are_typed_again(tmp_path: Path, base: str) -> None:
    user = start(tmp_path, base, CHAT, "--times", "2")
    user.wait_for(b"> ")
    user.type(b"hello\n")
    user.wait_for(b"answered:")
    user.wait_for(b"> ")
    user.type(f"use {KEY}\n".encode())
    user.wait_for(b"answered:")
    user.wait_for(b"> ")
    user.resize(30, 100)
    user.type(b"quit\n")
    assert user.wait() == 0, user.screen
    kept = read_tape(tmp_path / "a.tape").input
    assert kept is not None
    assert kept.data.startswith(b"hello\n")
    assert kept.data.endswith(b"quit\n")
    assert KEY.encode() not in (tmp_path / "a.tape").read_bytes()
    assert b"control 1: followed the recording" in user.screen
    done = replay(tmp_path, base, "--times", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("on the terminal") == 2
    assert done.stdout.count("size 100 30") == 2


@pytest.mark.gate
def test_keys_and_replies_of_a_raw_terminal_are_given_again(tmp_path: Path, base: str) -> None:
    user = start(tmp_path, base, RAW, "--times", "1")
    user.wait_for(b"\x1b[c")
    user.send(b"\x1b[?62;22c")
    user.send(b"\x1b]11;rgb:1e1e/1e1e/2e2e\x07")
    user.wait_for(b"terminal b")
    user.type(b"hi there\r")
    user.wait_for(b"answered:")
    assert user.wait() == 0, user.screen
    kept = read_tape(tmp_path / "a.tape").input
    assert kept is not None
    assert kept.data == b"hi there\r"
    assert kept.replies == b"\x1b[?62;22c\x1b]11;rgb:1e1e/1e1e/2e2e\x07"
    done = replay(tmp_path, base)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "typed 9" in done.stdout


@pytest.mark.gate
def test_a_program_with_curses_gets_its_keys_again(tmp_path: Path, base: str) -> None:
    user = start(tmp_path, base, CURSES, "--times", "2")
    user.wait_for(b"then words")
    user.send(b"\x1bOA")
    user.wait_for(b"<KEY_UP>")
    user.send(b"\x1bOB")
    user.wait_for(b"<KEY_DOWN>")
    user.type("pay é\r".encode())
    user.wait_for(b"answered:")
    assert user.wait() == 0, user.screen
    assert b"control 1: followed the recording" in user.screen
    assert replay(tmp_path, base).returncode == 0


@pytest.mark.gate
def test_a_line_typed_without_echo_is_not_kept_and_said_so(tmp_path: Path, base: str) -> None:
    user = start(tmp_path, base, SECRET)
    user.wait_for(b"> ")
    user.type(b"log in\n")
    user.wait_for(b"password: ")
    user.type(b"open sesame\n")
    assert user.wait() == 0, user.screen
    assert b"this can be shown, not replayed" in user.screen
    assert b"control replay" not in user.screen
    kept = read_tape(tmp_path / "a.tape").input
    assert kept is not None
    assert (kept.data, kept.whole) == (b"log in\n", False)
    assert b"sesame" not in (tmp_path / "a.tape").read_bytes()


@pytest.mark.gate
def test_without_a_terminal_of_ours_typed_input_is_named(tmp_path: Path, base: str) -> None:
    user = start(tmp_path, base, CHAT, "--no-tty")
    user.wait_for(b"> ")
    user.type(b"quit\n")
    assert user.wait() == 0, user.screen
    assert b"typed input is not recorded: this can be shown, not replayed" in user.screen
    assert read_tape(tmp_path / "a.tape").input is None


@pytest.mark.gate
def test_ctrl_c_reaches_the_agent_and_the_terminal_is_left_as_it_was(
    tmp_path: Path, base: str
) -> None:
    user = start(tmp_path, base, STOPPED)
    user.wait_for(b"ready")
    user.type(b"\x03")
    assert user.wait() == 7, user.screen
    assert b"^C" in user.screen


@pytest.mark.gate
def test_a_closed_terminal_ends_the_agent_and_leaves_a_whole_tape(
    tmp_path: Path, base: str
) -> None:
    user = start(tmp_path, base, CHAT)
    user.wait_for(b"> ")
    user.close()
    user.wait()
    tape = read_tape(tmp_path / "a.tape")
    assert tape.ending is not None
