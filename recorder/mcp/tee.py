"""The tee of one stdio MCP server: a transparent process between a client and the server's command.

    python -I -S tee.py [--name NAME] [--run SOCKET] -- COMMAND...

It talks to the run over a unix socket, in frames of a header (`FRAME_HEAD`: kind, number,
CLOCK_MONOTONIC time, length) and a payload. The run begins by choosing one of two modes:

watch   A message is reported and forwarded at once: no call waits for a tape. The report that
        completes a message is sent first, so the run has received every message that the client
        has in full; it writes reports in order, so nothing later is on the tape without it. A
        run that is killed before it has read and written a report (0.1 to 0.5 ms for 1 KB)
        loses that one. If the run is gone, messages pass unrecorded, and one line reports it.
ask     The run decides: only its messages are forwarded, and the command is started when the
        run requests it, maybe never. If the run is gone, the tee ends.

The server has a process supervisor like an agent (see process_supervisor.py), so it ends with the
tee, also on SIGKILL; the tee exits with its exit code or signal. Its environment is the user's own:
a server's network traffic is internal to a tool and would be absent from a replay without the
server; and some clients pass no variables to servers, so it would be recorded only sometimes.

Standard library only, with few imports, because each session waits for this to start: `socket` and
`threading` take as long to load as everything else, so their C modules are used directly.
"""

import _socket
import _thread
import os
import signal
import struct
import sys
import time
from collections.abc import Callable, Sequence

FRAME_HEAD = struct.Struct(">cQdI")
TEE_HELLO, CLIENT_MESSAGE, SERVER_MESSAGE, CLIENT_CLOSED, SERVER_EXITED = (
    b"H",
    b"A",
    b"S",
    b"C",
    b"E",
)
"""To the run: name and command, a client message, a server message, the end of the session by the
client (of its input, or a signal), the server's end (wait status as number).
"""
ONLY_WATCH, LET_RUN_DECIDE, START_SERVER, SEND_TO_SERVER, SEND_TO_CLIENT, CLOSE_INPUT, STOP_TEE = (
    b"W",
    b"D",
    b"B",
    b"T",
    b"Y",
    b"Z",
    b"X",
)
"""From the run: the mode (with the variables to restore), start the command, a message for the
server, one for the client, close the server's input, end with the wait status in number.
"""

RUN_SOCKET_VARIABLE = "STUMBLE_RUN"
READ_BYTES = 1 << 16
RUN_TIMEOUT = 30
"""Seconds without an answer after which the run counts as gone."""
SERVER_GRACE = "2"
TEE_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TEE_USAGE = "usage: stumble mcp [--name NAME] [--run SOCKET] -- COMMAND..."


def pack_tee_frame(kind: bytes, number: int = 0, at: float = 0.0, data: bytes = b"") -> bytes:
    """Pack one frame."""
    return FRAME_HEAD.pack(kind, number, at, len(data)) + data


class RunGoneError(Exception):
    """The run does not answer."""


class TeeChannel:
    """The tee's end of the socket."""

    def __init__(self, line: _socket.socket) -> None:
        self._line, self._lock, self._read = line, _thread.allocate_lock(), b""
        self.line = line.fileno()
        line.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDTIMEO, struct.pack("ll", RUN_TIMEOUT, 0))

    def send(self, data: bytes) -> None:
        """Send frames. Raises RunGoneError if the run does not accept them."""
        with self._lock:
            try:
                self._line.sendall(data)
            except OSError as error:
                raise RunGoneError from error

    def receive(self) -> tuple[bytes, int, bytes]:
        """Receive a frame: kind, number, payload. Raises RunGoneError at the end of the stream."""
        kind, number, _, length = FRAME_HEAD.unpack(self._receive_exactly(FRAME_HEAD.size))
        return kind, number, self._receive_exactly(length)

    def _receive_exactly(self, size: int) -> bytes:
        while len(self._read) < size:
            try:
                data = self._line.recv(READ_BYTES)
            except OSError as error:
                raise RunGoneError from error
            if not data:
                raise RunGoneError
            self._read += data
        received, self._read = self._read[:size], self._read[size:]
        return received


class LineSplitter:
    """Splits a byte stream into messages, one per line."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        """Return the messages completed by `data`, without their newline."""
        first, *rest = data.split(b"\n")
        self._begun.append(first)
        if not rest:
            return []
        complete = [b"".join(self._begun), *rest[:-1]]
        self._begun = [rest[-1]]
        return complete

    def take_rest(self) -> list[bytes]:
        """Return the bytes after the last newline, if any, as a message."""
        last, self._begun = b"".join(self._begun), []
        return [last] if last else []


class McpServerProcess:
    """The server's process under its supervisor, and the tee's ends of its pipes."""

    def __init__(self, command: Sequence[str], env: dict[str, str]) -> None:
        program = find_server_program(command[0])
        orders, self._orders = os.pipe()
        stdin, self.stdin = os.pipe()
        self.stdout, stdout = os.pipe()
        os.set_inheritable(orders, True)
        package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH120,PTH100
        supervisor = os.path.join(package, "agent", "process_supervisor.py")  # noqa: PTH118
        words = [
            sys.executable,
            "-I",
            "-S",
            supervisor,
            str(orders),
            SERVER_GRACE,
            "0",
            program,
            *command,
        ]
        moves = [(os.POSIX_SPAWN_DUP2, stdin, 0), (os.POSIX_SPAWN_DUP2, stdout, 1)]
        self.pid = os.posix_spawn(sys.executable, words, env, file_actions=moves, setpgroup=0)
        for inherited in (orders, stdin, stdout):
            os.close(inherited)

    def send_signal(self, number: int) -> None:
        """Forward a signal to the server."""
        try:
            os.write(self._orders, bytes((number,)))
        except BrokenPipeError:
            return  # just ended

    def close_input(self) -> None:
        """Close the server's input."""
        if self.stdin >= 0:
            os.close(self.stdin)
            self.stdin = -1

    def write_input(self, data: bytes) -> None:
        """Write input to the server; drop it if the server no longer reads."""
        if self.stdin >= 0 and not write_all_bytes(self.stdin, data):
            self.close_input()


class McpTee:
    """One session, from hello to the end of the server."""

    def __init__(self, channel: TeeChannel, command: Sequence[str]) -> None:
        self.channel, self.command = channel, command
        self.env = dict(os.environ)
        self.server: McpServerProcess | None = None
        self._over = _thread.allocate_lock()
        self._over.acquire()
        self._status: int | None = None
        self._heard, self._watching = True, False

    def run_watching(self) -> int:
        """Forward and report all messages; return the server's wait status."""
        self._watching = True
        server = self._start_server(self._pass_on_server)
        _thread.start_new_thread(self._pass_on_client, (server,))
        return self._wait_for_status()

    def run_controlled(self) -> int:
        """Execute the run's commands; return the server's wait status, or the one the run set."""
        _thread.start_new_thread(self._report_client, ())
        _thread.start_new_thread(self._obey_run, ())
        return self._wait_for_status()

    def forward_signal(self, number: int, _: object) -> None:
        """Forward a received signal to the server: the client ends the session."""
        if self.server is not None:
            self._report_frames(pack_tee_frame(CLIENT_CLOSED, 0, time.monotonic()))
            self.server.send_signal(number)
        else:
            self._set_status(number)

    def _start_server(self, hear: Callable[[McpServerProcess], None]) -> McpServerProcess:
        self.server = server = McpServerProcess(self.command, self.env)
        output_ended = _thread.allocate_lock()
        output_ended.acquire()

        def read_output() -> None:
            hear(server)
            output_ended.release()

        def wait_for_exit() -> None:
            status = os.waitpid(server.pid, 0)[1]
            output_ended.acquire(timeout=RUN_TIMEOUT)
            self._report_frames(pack_tee_frame(SERVER_EXITED, status, time.monotonic()))
            if self._watching:  # else the run may still send messages to the client
                self._set_status(status)

        _thread.start_new_thread(read_output, ())
        _thread.start_new_thread(wait_for_exit, ())
        return server

    def _set_status(self, status: int) -> None:
        if self._status is None:
            self._status = status
            self._over.release()

    def _wait_for_status(self) -> int:
        self._over.acquire()
        return self._status or 0

    def _report_frames(self, data: bytes) -> None:
        if not self._heard or not data:
            return
        try:
            self.channel.send(data)
        except RunGoneError:
            self._note_run_gone()

    def _note_run_gone(self) -> None:
        if self._heard:
            self._heard = False
            print_tee_message("nothing of this server is recorded from here on: the run is over")

    def _pass_on_client(self, server: McpServerProcess) -> None:
        lines = LineSplitter()
        while data := read_available_bytes(0):
            self._report_frames(pack_tee_frames(CLIENT_MESSAGE, lines.feed(data)))
            server.write_input(data)
        self._report_frames(
            pack_tee_frames(CLIENT_MESSAGE, lines.take_rest())
            + pack_tee_frame(CLIENT_CLOSED, 0, time.monotonic())
        )
        server.close_input()

    def _pass_on_server(self, server: McpServerProcess) -> None:
        lines = LineSplitter()
        while data := read_available_bytes(server.stdout):
            self._report_frames(pack_tee_frames(SERVER_MESSAGE, lines.feed(data)))
            if not write_all_bytes(1, data):
                break
        self._report_frames(pack_tee_frames(SERVER_MESSAGE, lines.take_rest()))
        os.close(server.stdout)

    def _report_client(self) -> None:
        lines = LineSplitter()
        while data := read_available_bytes(0):
            self._report_frames(pack_tee_frames(CLIENT_MESSAGE, lines.feed(data)))
        self._report_frames(
            pack_tee_frames(CLIENT_MESSAGE, lines.take_rest())
            + pack_tee_frame(CLIENT_CLOSED, 0, time.monotonic())
        )

    def _report_server(self, server: McpServerProcess) -> None:
        lines = LineSplitter()
        while data := read_available_bytes(server.stdout):
            self._report_frames(pack_tee_frames(SERVER_MESSAGE, lines.feed(data)))
        self._report_frames(pack_tee_frames(SERVER_MESSAGE, lines.take_rest()))

    def _obey_run(self) -> None:
        try:
            while (frame := self.channel.receive())[0] != STOP_TEE:
                kind, _, data = frame
                if kind == SEND_TO_CLIENT:
                    write_all_bytes(1, data + b"\n")
                elif kind == START_SERVER:
                    self._start_server(self._report_server)
                elif self.server is not None and kind == SEND_TO_SERVER:
                    self.server.write_input(data + b"\n")
                elif self.server is not None and kind == CLOSE_INPUT:
                    self.server.close_input()
            self._set_status(frame[1])
        except RunGoneError:
            print_tee_message("the run is over, and this server with it")
            self._set_status(1 << 8)
        except OSError as error:
            self._set_status(report_failed_start(error) << 8)


def pack_tee_frames(kind: bytes, messages: list[bytes]) -> bytes:
    """Pack one frame per message, with the current time."""
    at = time.monotonic()
    return b"".join([pack_tee_frame(kind, 0, at, message) for message in messages])


def read_available_bytes(file: int) -> bytes:
    """Read the available bytes; empty at the end."""
    try:
        return os.read(file, READ_BYTES)
    except OSError:  # a terminal or socket that hung up
        return b""


def write_all_bytes(file: int, data: bytes) -> bool:
    """Write all bytes; return False if nothing reads them."""
    try:
        while data:
            data = data[os.write(file, data) :]
    except OSError:
        return False
    return True


def print_tee_message(text: str) -> None:
    """Print one line to standard error."""
    write_all_bytes(2, f"stumble mcp: {text}\n".encode())


def find_server_program(name: str) -> str:
    """Find the program to execute. Raises FileNotFoundError or PermissionError."""
    paths = [name] if os.sep in name else [f"{folder}/{name}" for folder in os.get_exec_path()]
    existing = [path for path in paths if os.access(path, os.F_OK)]
    program = next((path for path in existing if os.access(path, os.X_OK)), None)
    if program is None:
        raise (PermissionError if existing else FileNotFoundError)(name)
    return program


def report_failed_start(error: OSError) -> int:
    """Report why a command could not be started; return the exit code a shell would use."""
    missing = isinstance(error, FileNotFoundError)
    print_tee_message(f"{error}: {'command not found' if missing else 'cannot be run'}")
    return 127 if missing else 126


def find_ancestor_socket() -> str | None:
    """Find the run's socket in an ancestor's environment; clients often pass no variables on."""
    pid = os.getppid()
    while pid > 1:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
                variables = file.read().split(b"\0")
            with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:  # another user's process, or no /proc
            return None
        start = f"{RUN_SOCKET_VARIABLE}=".encode()
        for each in variables:
            if each.startswith(start):
                return os.fsdecode(each[len(start) :])
    return None


def open_run_channel(path: str) -> TeeChannel | None:
    """Connect to a run; None if no run listens at `path`."""
    line = _socket.socket(_socket.AF_UNIX)
    try:
        line.connect(path)
    except OSError:
        line.close()
        return None
    return TeeChannel(line)


def start_own_recorder(recorder: Sequence[str]) -> TeeChannel:
    """Start a recorder for this tee and return the channel to it; it lives until the tee ends."""
    tee_socket, recorder_socket = _socket.socketpair()
    os.set_inheritable(recorder_socket.fileno(), True)
    words = [*recorder, str(recorder_socket.fileno())]
    moves = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0), (os.POSIX_SPAWN_DUP2, 2, 1)]
    os.posix_spawn(words[0], words, os.environ, file_actions=moves, setpgroup=0)
    recorder_socket.close()
    return TeeChannel(tee_socket)


def restore_variables(env: dict[str, str], data: bytes) -> None:
    """Undo the run's changes to `env`: `data` has name, run's value, `=`user's value or ""."""
    words = [os.fsdecode(word) for word in data.split(b"\0")]
    for name, recorder_value, user_value in zip(words[::3], words[1::3], words[2::3], strict=False):
        if env.get(name, "") == recorder_value:
            env.pop(name, None)
            if user_value:
                env[name] = user_value[1:]


def run_tee_session(tee: McpTee, name: str, alone: bool) -> int:
    """Run a session to its end and return the server's wait status."""
    words = [os.fsencode(word) for word in (name, *tee.command)]
    tee.channel.send(pack_tee_frame(TEE_HELLO, os.getpid(), time.monotonic(), b"\0".join(words)))
    if alone:
        return tee.run_watching()
    kind, _, variables = tee.channel.receive()
    restore_variables(tee.env, variables)
    return tee.run_watching() if kind == ONLY_WATCH else tee.run_controlled()


def parse_tee_options(words: Sequence[str]) -> tuple[str | None, str | None, list[str]]:
    """Parse name, socket and command. Raises ValueError for invalid options."""
    options: dict[str, str | None] = {"--name": None, "--run": None}
    rest = list(words)
    while rest and rest[0] in options:
        if len(rest) < 2:
            raise ValueError(f"{rest[0]} needs a value")
        options[rest[0]], rest = rest[1], rest[2:]
    if rest and rest[0] == "--":
        rest = rest[1:]
    elif rest and rest[0].startswith("-"):
        raise ValueError(f"no such option: {rest[0]}")
    if not rest:
        raise ValueError("no command: put the server's behind --")
    return options["--name"], options["--run"], rest


def main(words: Sequence[str], recorder: Sequence[str] = ()) -> None:
    """Run the tee and exit as the server did; without a run, start `recorder`."""
    try:
        name, run, command = parse_tee_options(words)
    except ValueError as error:
        print_tee_message(f"{error}\n{TEE_USAGE}")
        os._exit(2)
    path = run or os.environ.get(RUN_SOCKET_VARIABLE) or find_ancestor_socket()
    channel = open_run_channel(path) if path else None
    if channel is None and (run is not None or not recorder):
        print_tee_message(f"no run listens at {run}; nothing was started")
        os._exit(6)
    alone = channel is None
    tee = McpTee(channel or start_own_recorder(recorder), command)
    for number in TEE_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, tee.forward_signal)
    try:
        status = run_tee_session(tee, name or command[0].rpartition("/")[2], alone)
    except RunGoneError:
        print_tee_message("the run did not answer; nothing was started")
        os._exit(6)
    except OSError as error:
        os._exit(report_failed_start(error))
    exit_with_wait_status(status)


def exit_with_wait_status(status: int) -> None:
    """Exit as a process with this wait status did."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
