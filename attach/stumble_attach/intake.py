"""The `stumble` process that redacts what this program sends and receives, and writes the tape.

Each message has a connection of its own, and is on the tape when its answer comes: what the program
did before it was killed is kept. `stumble/runs/attach_intake.py` describes the messages.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stumble_attach.command import find_stumble_command, make_stumble_environment

WAIT_SECONDS = 60
"""Bound of each wait for the process: to take a part of a message, to answer it, and to end."""
BYTES_PER_SECOND = 1 << 20
"""A message has so much longer: to search a large body for secrets takes time."""
_LONGEST_FOLDER = 80
"""Characters of a folder in which a socket's path still fits `sun_path`, 104 bytes on macOS."""
_MOST_WAITING = 4096
_NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)
"""A program may let SIGPIPE end it; the end of the intake must not."""


class RecordingLostError(RuntimeError):
    """The `stumble` process ended, or could not write the tape, before the end of the recording."""


class RecordingIntake:
    """Starts the process, and sends to it from any thread and forked process of this program.

    Raises FileNotFoundError if there is no `stumble`, OSError if the tape cannot be created.
    """

    def __init__(
        self, tape: Path, trajectory: Mapping[str, object], secrets: Sequence[str]
    ) -> None:
        command = find_stumble_command()
        self._tape, self._owner = tape, os.getpid()
        self._lost: str | None = None
        self._over = False
        place = tempfile.gettempdir()
        self._folder = tempfile.mkdtemp(
            prefix="stumble-", dir=place if len(place) < _LONGEST_FOLDER else "/tmp"
        )
        self._path = f"{self._folder}/intake"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self._path)
            listener.listen(_MOST_WAITING)
            self._process = subprocess.Popen(
                [*command, "attach-intake", str(listener.fileno())],
                env=make_stumble_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=[listener.fileno()],
                start_new_session=True,  # a signal to the program's group is not for it
            )
        try:
            path = str(tape.absolute())
            begin = {"path": path, "trajectory": trajectory, "secrets": list(secrets)}
            answer = self._begin(begin)
            if (number := answer.get("errno")) is not None:
                raise OSError(number, os.strerror(number), str(tape))
            if "error" in answer:
                raise RecordingLostError(answer["error"])
        except BaseException:
            self._stop()
            raise

    def send(
        self, kind: str, message: Mapping[str, object], body: bytes = b""
    ) -> Mapping[str, Any] | None:
        """Send a message; None if it is not on the tape.

        The first one that should be there is reported on standard error, and none is sent after it.
        """
        if self._lost is not None:
            return None
        try:
            answer = self._converse(kind, message, body)
        except FileNotFoundError as error:
            if self._over or os.getpid() != self._owner:
                return None  # the process that began the recording has ended it
            answer = {"error": str(error)}
        except BlockingIOError:
            answer = {"error": "the stumble process did not answer in time"}
        except (OSError, RecordingLostError) as error:
            answer = {"error": str(error)}
        if "error" in answer:
            self._lost = f"{self._tape} is recorded no further: {answer['error']}"
            if os.getpid() == self._owner and (code := self._process.poll()) is not None:
                self._lost += f" (stumble ended with exit code {code})"
            sys.stderr.write(f"stumble_attach: {self._lost}\n")
        return None if "error" in answer or "over" in answer else answer

    def end(self, ended: str, detail: str | None) -> None:
        """Complete the tape; a forked process leaves that to the one that began it.

        Raises RecordingLostError if something is missing on the tape.
        """
        if os.getpid() != self._owner:
            return
        self._over = True
        self.send("end", {"ended": ended, "detail": detail})
        self._stop()
        if self._lost is not None:
            raise RecordingLostError(self._lost)

    def _begin(self, message: Mapping[str, object]) -> dict[str, Any]:
        try:
            return self._converse("begin", message, b"")
        except ConnectionError:
            raise RecordingLostError("the stumble process ended at once") from None

    def _converse(self, kind: str, message: Mapping[str, object], body: bytes) -> dict[str, Any]:
        """Send a message and return its answer.

        Raises OSError, or RecordingLostError if the process ends without an answer.
        """
        head = {"kind": kind, "at": time.monotonic(), "bytes": len(body), **message}
        seconds = struct.pack("ll", WAIT_SECONDS + len(body) // BYTES_PER_SECOND, 0)
        with socket.socket(socket.AF_UNIX) as connection:
            # Not `settimeout`: connect(2) would not wait for room among those that wait.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, seconds)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, seconds)
            connection.connect(self._path)
            connection.sendall(json.dumps(head).encode() + b"\n", _NO_SIGNAL)
            if body:  # else the answer may have come, and the connection be closed
                connection.sendall(body, _NO_SIGNAL)
            with connection.makefile("rb") as answered:
                answer = answered.read()
        if not answer:
            raise RecordingLostError("the stumble process ended")
        parsed: dict[str, Any] = json.loads(answer)
        return parsed

    def _stop(self) -> None:
        """Wait until the process has ended, and end it if it does not."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)
