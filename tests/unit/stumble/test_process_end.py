"""A command ends without freeing its memory, but loses nothing that it owes to others."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import atexit, sys, threading, time
from stumble.__main__ import end_process

class Freed:
    def __del__(self):
        print("freed", flush=True)

class Late(threading.Thread):
    def run(self):
        time.sleep(0.3)
        print("late")

kept = Freed()
atexit.register(print, "handler")
sys.stdout.write("begun, ")
{then}
end_process(SystemExit({code}))
"""


def end(code: object, then: str = "", shell: str = "") -> tuple[int, str]:
    program = [sys.executable, "-c", PROGRAM.format(code=code, then=then)]
    command = ["sh", "-c", f'exec "$@" {shell}', "sh", *program]
    buffered = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    done = subprocess.run(command, env=buffered, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout


@pytest.mark.parametrize(("code", "status"), [("3", 3), ("None", 0), ("0", 0), ("", 0)])
def test_output_is_written_and_handlers_run_but_nothing_is_freed(code: str, status: int) -> None:
    assert end(code) == (status, "begun, handler\n")


def test_a_thread_is_waited_for() -> None:
    code, out = end(3, "Late().start()")
    assert (code, out.splitlines()[:2]) == (3, ["begun, late", "handler"])


def test_a_thread_that_nobody_waits_for_is_not() -> None:
    assert end(3, "Late(daemon=True).start()") == (3, "begun, handler\n")


def test_a_message_is_still_an_error() -> None:
    assert end("'a message'")[0] == 1


def test_output_that_cannot_be_written_is_reported_as_usual() -> None:
    assert end(3, shell=">/dev/full")[0] == 120
