"""Recorder of a tee outside any recorded run: `python -m stumble.mcp.session_recorder FD`.

Records one session of one MCP server to a separate tape in the store. It runs in another process
than the tee, so that the session does not wait for imports, and so that the tape is closed even if
the tee is killed. It ends after the tee.
"""

import itertools
import os
import signal
import socket
import sys
import time
from pathlib import Path

from recorder import event_loop
from recorder.mcp.stdio import record_single_tee
from stumble.user_data.known_secrets import load_user_secrets
from stumble.user_data.paths import new_trajectory_id, store_root
from traces.errors import TapeWriteError
from traces.model import EndReason, RunEnding, Trajectory
from traces.store.store_dir import prepare_store_dir
from traces.tape.writer import TapeWriter
from traces.taps import TapChain


def main(file: int) -> None:
    """Record the tee at the other end of the socket `file`."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # they are for the server; this ends after it
    id, began = new_trajectory_id(), time.monotonic()
    trajectory = Trajectory(id=id, recorded_at=time.time(), source="mcp")
    path = _make_tapes_folder() / f"{id}.tape"
    with TapeWriter(path, trajectory, secrets=load_user_secrets()) as tape:
        print(f"stumble mcp: no run listens, so this is recorded on {path}", file=sys.stderr)
        connection = socket.socket(fileno=file)
        status = event_loop.run_event_loop(
            record_single_tee(TapChain((tape,)), connection, began=began, seqs=itertools.count())
        )
        tape.write_ending(_build_mcp_ending(status, time.monotonic() - began))


def _make_tapes_folder() -> Path:
    folder = prepare_store_dir(store_root()) / "tapes"
    folder.mkdir(exist_ok=True, mode=0o700)
    return folder


def _build_mcp_ending(status: int | None, at: float) -> RunEnding:
    """Return the ending of the session by the exit status of the server."""
    if status is None:
        return RunEnding(ended="harness", at=at, detail="the tee was killed")
    code = os.waitstatus_to_exitcode(status)
    ended: EndReason = "crash" if code else "final"
    return RunEnding(ended=ended, exit_code=code if code >= 0 else 128 - code, at=at)


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]))
    except (OSError, TapeWriteError) as error:
        sys.exit(f"stumble mcp: this session is not recorded: {error}")
