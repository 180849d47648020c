"""The tee of one MCP server over stdio: between a client and the server's command, unnoticed.

    python -I -S tee.py [--name NAME] [--run SOCKET] -- COMMAND...

It speaks with the run over a unix socket, in frames of a head (`HEAD`: kind, number, time of
CLOCK_MONOTONIC, length) and as many bytes. The run begins by saying which of two it does:

watch   A message is reported and goes on at once: no call waits for a tape. The report of what
        ends a message comes first, so that the run has been handed whatever the client has in
        full; it writes reports in their order, so nothing later is on the tape without it. A
        run that is killed before it has read and written a report (0.1 to 0.5 ms for 1 KB)
        loses that one. Where the run is gone, all goes on unrecorded, and one line says so.
ask     The run decides: nothing goes on but what it says, and the command is started when it
        says so, maybe never. Where the run is gone, this ends.

The server is minded like an agent (see minder.py), so nothing of it is left over when this
ends, SIGKILL included; its exit code and signal are ours. Its environment is the user's own:
what a server says to the network is the inside of a tool, and would not be said in a replay
that needs no server; and some clients hand no variables down, so it would be there or not.

Standard library only, and little of it, for each session waits for this to start: `socket` and
`threading` would take as long to load as all the rest, so what they stand on is used.
"""

import _socket
import _thread
import os
import signal
import struct
import sys
import time
from collections.abc import Callable, Sequence

HEAD = struct.Struct(">cQdI")
HELLO, ASKED, SAID, CLOSED, ENDED = b"H", b"A", b"S", b"C", b"E"
"""To the run: name and command, a message of the client, one of the server, the end of what the
client sends, how the server ended (wait status as number)."""
WATCH, ASK, START, TELL, SAY, SHUT, STOP = b"W", b"D", b"B", b"T", b"Y", b"Z", b"X"
"""From the run: what it does (with the variables to put back), start the command, a message for
it, one for the client, close its input, end with the wait status in number."""

VARIABLE = "STUMBLE_RUN"
PIECE = 1 << 16
PATIENCE = 30
"""Seconds after which a run that does not answer is gone."""
GRACE = "2"
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
USAGE = "usage: stumble mcp [--name NAME] [--run SOCKET] -- COMMAND..."


def frame(kind: bytes, number: int = 0, at: float = 0.0, data: bytes = b"") -> bytes:
    """One frame as bytes."""
    return HEAD.pack(kind, number, at, len(data)) + data


class Gone(Exception):
    """The run does not answer."""


class Channel:
    """The tee's end of the socket."""

    def __init__(self, line: _socket.socket) -> None:
        self._line, self._lock, self._read = line, _thread.allocate_lock(), b""
        self.line = line.fileno()
        line.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDTIMEO, struct.pack("ll", PATIENCE, 0))

    def send(self, data: bytes) -> None:
        """Hand frames to the kernel; Gone where nobody takes them."""
        with self._lock:
            try:
                self._line.sendall(data)
            except OSError as error:
                raise Gone from error

    def receive(self) -> tuple[bytes, int, bytes]:
        """The next frame of the run: kind, number, bytes; Gone at the end."""
        kind, number, _, length = HEAD.unpack(self._exactly(HEAD.size))
        return kind, number, self._exactly(length)

    def _exactly(self, size: int) -> bytes:
        while len(self._read) < size:
            try:
                data = self._line.recv(PIECE)
            except OSError as error:
                raise Gone from error
            if not data:
                raise Gone
            self._read += data
        found, self._read = self._read[:size], self._read[size:]
        return found


class Lines:
    """Cuts what comes into messages, one per line."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are whole now, without their newline."""
        first, *others = data.split(b"\n")
        self._begun.append(first)
        if not others:
            return []
        whole = [b"".join(self._begun), *others[:-1]]
        self._begun = [others[-1]]
        return whole

    def rest(self) -> list[bytes]:
        """What came after the last newline, if anything did."""
        last, self._begun = b"".join(self._begun), []
        return [last] if last else []


class Server:
    """The server's process under its minder, and our ends of its pipes."""

    def __init__(self, command: Sequence[str], env: dict[str, str]) -> None:
        program = found(command[0])
        orders, self._orders = os.pipe()
        stdin, self.stdin = os.pipe()
        self.stdout, stdout = os.pipe()
        os.set_inheritable(orders, True)
        minder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "minder.py")  # noqa: PTH118,PTH120,PTH100
        words = [sys.executable, "-I", "-S", minder, str(orders), GRACE, program, *command]
        moves = [(os.POSIX_SPAWN_DUP2, stdin, 0), (os.POSIX_SPAWN_DUP2, stdout, 1)]
        self.pid = os.posix_spawn(sys.executable, words, env, file_actions=moves, setpgroup=0)
        for ours_no_more in (orders, stdin, stdout):
            os.close(ours_no_more)

    def tell(self, number: int) -> None:
        """Pass a signal on."""
        try:
            os.write(self._orders, bytes((number,)))
        except BrokenPipeError:
            return  # all has just ended

    def shut(self) -> None:
        """No more input comes."""
        if self.stdin >= 0:
            os.close(self.stdin)
            self.stdin = -1

    def write(self, data: bytes) -> None:
        """Hand input to the server; dropped where it reads no more."""
        if self.stdin >= 0 and not wrote(self.stdin, data):
            self.shut()


class Tee:
    """One session, from hello to the end of the server."""

    def __init__(self, channel: Channel, command: Sequence[str]) -> None:
        self.channel, self.command = channel, command
        self.env = dict(os.environ)
        self.server: Server | None = None
        self._over = _thread.allocate_lock()
        self._over.acquire()
        self._status: int | None = None
        self._heard, self._watching = True, False

    def watch(self) -> int:
        """Report all that passes; returns the server's wait status."""
        self._watching = True
        server = self._start(self._pass_on)
        _thread.start_new_thread(self._watch_client, (server,))
        return self._wait()

    def ask(self) -> int:
        """Do what the run says; returns the server's wait status, or what the run made of it."""
        _thread.start_new_thread(self._ask_client, ())
        _thread.start_new_thread(self._obey, ())
        return self._wait()

    def signalled(self, number: int, _: object) -> None:
        """What we are sent is for the server."""
        if self.server is not None:
            self.server.tell(number)
        else:
            self._end(number)

    def _start(self, hear: Callable[[Server], None]) -> Server:
        self.server = server = Server(self.command, self.env)
        heard = _thread.allocate_lock()
        heard.acquire()

        def listen() -> None:
            hear(server)
            heard.release()

        def mind() -> None:
            status = os.waitpid(server.pid, 0)[1]
            heard.acquire(timeout=PATIENCE)
            self._report(frame(ENDED, status, time.monotonic()))
            if self._watching:  # else the run may yet have something to say to the client
                self._end(status)

        _thread.start_new_thread(listen, ())
        _thread.start_new_thread(mind, ())
        return server

    def _end(self, status: int) -> None:
        if self._status is None:
            self._status = status
            self._over.release()

    def _wait(self) -> int:
        self._over.acquire()
        return self._status or 0

    def _report(self, data: bytes) -> None:
        if not self._heard or not data:
            return
        try:
            self.channel.send(data)
        except Gone:
            self._unheard()

    def _unheard(self) -> None:
        if self._heard:
            self._heard = False
            say("nothing of this server is recorded from here on: the run is over")

    def _watch_client(self, server: Server) -> None:
        lines = Lines()
        while data := read(0):
            self._report(frames(ASKED, lines.feed(data)))
            server.write(data)
        self._report(frames(ASKED, lines.rest()) + frame(CLOSED, 0, time.monotonic()))
        server.shut()

    def _pass_on(self, server: Server) -> None:
        lines = Lines()
        while data := read(server.stdout):
            self._report(frames(SAID, lines.feed(data)))
            if not wrote(1, data):
                break
        self._report(frames(SAID, lines.rest()))
        os.close(server.stdout)

    def _ask_client(self) -> None:
        lines = Lines()
        while data := read(0):
            self._report(frames(ASKED, lines.feed(data)))
        self._report(frames(ASKED, lines.rest()) + frame(CLOSED, 0, time.monotonic()))

    def _hear(self, server: Server) -> None:
        lines = Lines()
        while data := read(server.stdout):
            self._report(frames(SAID, lines.feed(data)))
        self._report(frames(SAID, lines.rest()))

    def _obey(self) -> None:
        try:
            while (said := self.channel.receive())[0] != STOP:
                kind, _, data = said
                if kind == SAY:
                    wrote(1, data + b"\n")
                elif kind == START:
                    self._start(self._hear)
                elif self.server is not None and kind == TELL:
                    self.server.write(data + b"\n")
                elif self.server is not None and kind == SHUT:
                    self.server.shut()
            self._end(said[1])
        except Gone:
            say("the run is over, and this server with it")
            self._end(1 << 8)
        except OSError as error:
            self._end(unstarted(error) << 8)


def frames(kind: bytes, messages: list[bytes]) -> bytes:
    """A frame per message, of this moment."""
    at = time.monotonic()
    return b"".join([frame(kind, 0, at, message) for message in messages])


def read(file: int) -> bytes:
    """What is there to read; nothing at the end."""
    try:
        return os.read(file, PIECE)
    except OSError:  # a terminal or socket that has hung up
        return b""


def wrote(file: int, data: bytes) -> bool:
    """Write all of it; False where nobody reads it any more."""
    try:
        while data:
            data = data[os.write(file, data) :]
    except OSError:
        return False
    return True


def say(text: str) -> None:
    """One line on standard error."""
    wrote(2, f"stumble mcp: {text}\n".encode())


def found(name: str) -> str:
    """What to execute; FileNotFoundError or PermissionError where it cannot be."""
    paths = [name] if os.sep in name else [f"{folder}/{name}" for folder in os.get_exec_path()]
    there = [path for path in paths if os.access(path, os.F_OK)]
    program = next((path for path in there if os.access(path, os.X_OK)), None)
    if program is None:
        raise (PermissionError if there else FileNotFoundError)(name)
    return program


def unstarted(error: OSError) -> int:
    """Says why a command could not be started; returns the exit code a shell would give."""
    missing = isinstance(error, FileNotFoundError)
    say(f"{error}: {'command not found' if missing else 'cannot be run'}")
    return 127 if missing else 126


def ancestral() -> str | None:
    """The socket that an ancestor's environment names; clients often hand down no variables."""
    pid = os.getppid()
    while pid > 1:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123
                told = file.read().split(b"\0")
            with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:  # another user's, or no /proc
            return None
        start = f"{VARIABLE}=".encode()
        for each in told:
            if each.startswith(start):
                return os.fsdecode(each[len(start) :])
    return None


def connected(path: str) -> Channel | None:
    """The channel to a run; None where none listens there."""
    line = _socket.socket(_socket.AF_UNIX)
    try:
        line.connect(path)
    except OSError:
        line.close()
        return None
    return Channel(line)


def beside(recorder: Sequence[str]) -> Channel:
    """The channel to a recorder of our own, which lives until we are gone."""
    ours, theirs = _socket.socketpair()
    os.set_inheritable(theirs.fileno(), True)
    words = [*recorder, str(theirs.fileno())]
    moves = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0), (os.POSIX_SPAWN_DUP2, 2, 1)]
    os.posix_spawn(words[0], words, os.environ, file_actions=moves, setpgroup=0)
    theirs.close()
    return Channel(ours)


def put_back(env: dict[str, str], data: bytes) -> None:
    """Undo what the run set in the environment: name, ours, and `=theirs` or nothing."""
    words = [os.fsdecode(word) for word in data.split(b"\0")]
    for name, ours, theirs in zip(words[::3], words[1::3], words[2::3], strict=False):
        if env.get(name, "") == ours:
            env.pop(name, None)
            if theirs:
                env[name] = theirs[1:]


def session(tee: Tee, name: str, alone: bool) -> int:
    """The server's wait status, once the session is over."""
    words = [os.fsencode(word) for word in (name, *tee.command)]
    tee.channel.send(frame(HELLO, os.getpid(), time.monotonic(), b"\0".join(words)))
    if alone:
        return tee.watch()
    kind, _, variables = tee.channel.receive()
    put_back(tee.env, variables)
    return tee.watch() if kind == WATCH else tee.ask()


def options(words: Sequence[str]) -> tuple[str | None, str | None, list[str]]:
    """Name, socket and command; ValueError where the words are others."""
    told: dict[str, str | None] = {"--name": None, "--run": None}
    rest = list(words)
    while rest and rest[0] in told:
        if len(rest) < 2:
            raise ValueError(f"{rest[0]} needs a value")
        told[rest[0]], rest = rest[1], rest[2:]
    if rest and rest[0] == "--":
        rest = rest[1:]
    elif rest and rest[0].startswith("-"):
        raise ValueError(f"no such option: {rest[0]}")
    if not rest:
        raise ValueError("no command: put the server's behind --")
    return told["--name"], told["--run"], rest


def main(words: Sequence[str], recorder: Sequence[str] = ()) -> None:
    """Run the tee and end as the server did; `recorder` is started where there is no run."""
    try:
        name, run, command = options(words)
    except ValueError as error:
        say(f"{error}\n{USAGE}")
        os._exit(2)
    path = run or os.environ.get(VARIABLE) or ancestral()
    channel = connected(path) if path else None
    if channel is None and (run is not None or not recorder):
        say(f"no run listens at {run}; nothing was started")
        os._exit(6)
    alone = channel is None
    tee = Tee(channel or beside(recorder), command)
    for number in FORWARDED:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup does
            signal.signal(number, tee.signalled)
    try:
        status = session(tee, name or command[0].rpartition("/")[2], alone)
    except Gone:
        say("the run did not answer; nothing was started")
        os._exit(6)
    except OSError as error:
        os._exit(unstarted(error))
    end(status)


def end(status: int) -> None:
    """End as a process with this wait status did."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
