"""The recorder of a tee that no run listens to: `python -m stumble.alone FD`.

One session of one MCP server, onto a tape of its own in the store. It is a process beside the
tee, so that the session does not wait for what writes tapes to load, and so that the tape is
closed whatever becomes of the tee. It ends when the tee has.
"""

import itertools
import os
import signal
import socket
import sys
import time
from pathlib import Path

from recorder import loop
from recorder.stdio import alone
from stumble.home import new_id, store_root
from traces.folder import prepared
from traces.model import Ended, Ending, Trajectory
from traces.redact import secrets
from traces.tape import Unrecordable, Writer
from traces.taps import Taps


def main(file: int) -> None:
    """Record the tee at the other end of the socket `file`."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # they are for the server; its end is ours
    id, began = new_id(), time.monotonic()
    trajectory = Trajectory(id=id, recorded_at=time.time(), source="mcp")
    path = _folder() / f"{id}.tape"
    with Writer(path, trajectory, secrets=secrets(os.environ)) as tape:
        print(f"stumble mcp: no run listens, so this is recorded on {path}", file=sys.stderr)
        line = socket.socket(fileno=file)
        status = loop.run(alone(Taps((tape,)), line, began=began, seqs=itertools.count()))
        tape.ending(_ending(status, time.monotonic() - began))


def _folder() -> Path:
    folder = prepared(store_root()) / "tapes"
    folder.mkdir(exist_ok=True, mode=0o700)
    return folder


def _ending(status: int | None, at: float) -> Ending:
    """How the session ended, as far as the server's end tells."""
    if status is None:
        return Ending(ended="harness", at=at, detail="the tee was killed")
    code = os.waitstatus_to_exitcode(status)
    ended: Ended = "crash" if code else "final"
    return Ending(ended=ended, exit_code=code if code >= 0 else 128 - code, at=at)


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]))
    except (OSError, Unrecordable) as error:
        sys.exit(f"stumble mcp: this session is not recorded: {error}")
