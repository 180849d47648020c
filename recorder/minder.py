"""Minds one agent: a small process between us and it, so that nothing of it is ever left over.

    python -I -S minder.py FD GRACE PROGRAM COMMAND...

What an agent starts may outlive it, leave its process group and lose its parent; and we may be
killed ourselves. So the minder is the ancestor that adopts orphans (Linux), it is in a process
group of its own, and it holds the reading end FD of a pipe whose other end only we hold. A byte
on the pipe is the number of a signal for the agent's group. The end of the pipe, which our death
brings too, ends all: SIGTERM, GRACE seconds, SIGKILL. So does the agent's own end for whatever
it left. The minder ends as the agent did: with its exit code, or by the signal that ended it.

Where standard input is a terminal that we hold, the agent's group gets it, and it comes back; a
stop (Ctrl-Z) stops us too, and the agent goes on when the shell brings us to the foreground.

Standard library only, and little of it, for every run waits for this to start.
"""

import ctypes
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36  # linux/prctl.h
FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Ignored by the minder, so to be set back for the agent; Python itself ignores the last two.
OURS = (*FORWARDED, signal.SIGQUIT, signal.SIGTTOU, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ)
POLL = 0.01
STUBBORN = 5.0
"""Seconds after which what survives SIGKILL (another user's, stuck in the kernel) is left."""


class Minder:
    """One agent, from its start to the end of the last process it leaves."""

    def __init__(self, orders: int, grace: float, program: str, command: list[str]) -> None:
        self.orders, self.grace = orders, grace
        self.code: int | None = None
        self.ours = os.getpgid(os.getppid())
        self.terminal = os.isatty(0) and os.tcgetpgrp(0) == self.ours
        self.bell, clapper = os.pipe()
        os.set_blocking(clapper, False)
        kept = {n for n in FORWARDED if signal.getsignal(n) is signal.SIG_IGN}  # as nohup does
        for number in (*FORWARDED, signal.SIGQUIT, signal.SIGTTOU):
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(clapper, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.agent = os.fork()
        if self.agent == 0:
            self._become(program, command, [n for n in OURS if n not in kept])
        try:
            os.setpgid(self.agent, self.agent)  # the agent does it too; nobody knows who is first
        except (PermissionError, ProcessLookupError):
            return
        self._lend_terminal(self.agent)

    def _become(self, program: str, command: list[str], default: list[signal.Signals]) -> None:
        os.setpgid(0, 0)
        self._lend_terminal(os.getpgrp())
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in default:
            signal.signal(number, signal.SIG_DFL)
        try:
            os.execv(program, command)
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        finally:
            os._exit(126)

    def _lend_terminal(self, group: int) -> None:
        if self.terminal:
            try:
                os.tcsetpgrp(0, group)
            except OSError:  # it has hung up
                self.terminal = False

    def mind(self) -> int:
        """The agent's exit code (-n after signal n), when it and all it started have ended."""
        while self.code is None:
            ready, _, _ = select.select([self.orders, self.bell], [], [])
            if self.bell in ready:
                os.read(self.bell, 4096)
                self._reap()
            elif order := os.read(self.orders, 1):
                self._tell(order[0])
            else:
                break
        self._end_all(signal.SIGTERM, self.grace)
        self._end_all(signal.SIGKILL, STUBBORN)
        self._lend_terminal(self.ours)
        return -signal.SIGKILL if self.code is None else self.code

    def _reap(self) -> bool:
        """Take in what has ended; False when no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if os.WIFSTOPPED(status):
                if pid == self.agent and self.terminal:
                    self._stop_too()
            elif pid == self.agent:
                self.code = os.waitstatus_to_exitcode(status)

    def _tell(self, number: int) -> None:
        try:
            os.killpg(self.agent, number)
        except (ProcessLookupError, PermissionError):
            return  # over already, or of another user, whom we may not signal

    def _stop_too(self) -> None:
        """Stop as the agent did, so that the shell sees it, until the shell wants us again.

        Without a shell that takes the terminal there is nobody to go on for: at once, then.
        """
        os.tcsetpgrp(0, self.ours)
        os.killpg(self.ours, signal.SIGTSTP)
        until = time.monotonic() + 0.5
        while os.tcgetpgrp(0) == self.ours and time.monotonic() < until:
            time.sleep(POLL)
        while os.tcgetpgrp(0) != self.ours and not select.select([self.orders], [], [], POLL)[0]:
            pass
        self._lend_terminal(self.agent)
        self._tell(signal.SIGCONT)

    def _end_all(self, number: int, seconds: float) -> None:
        """Signal whatever is left, once or (SIGKILL) until nothing is left or time is up."""
        until, told = time.monotonic() + seconds, set[int]()
        if sys.platform != "linux":  # nobody else can be found there
            self._tell(number)
        while self._reap() and time.monotonic() < until:
            left = set(descendants()) or {self.agent}
            for pid in left if number == signal.SIGKILL else left - told:
                try:
                    os.kill(pid, number)
                    os.kill(pid, signal.SIGCONT)  # one that is stopped would never hear of it
                except (ProcessLookupError, PermissionError):
                    continue
            told |= left
            time.sleep(POLL)


def descendants() -> list[int]:
    """All processes below this one, as /proc has them; nothing where there is no /proc."""
    children: dict[int, list[int]] = {}
    entries = os.scandir("/proc") if sys.platform == "linux" else ()
    for number in [entry.name for entry in entries if entry.name.isdigit()]:
        try:
            file = os.open(f"/proc/{number}/stat", os.O_RDONLY)
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has just ended
        try:
            stat = os.read(file, 1024)
        except ProcessLookupError:
            continue
        finally:
            os.close(file)
        parent = int(stat.rpartition(b")")[2].split()[1])
        children.setdefault(parent, []).append(int(number))
    found = list(children.get(os.getpid(), ()))
    for pid in found:
        found += children.get(pid, ())
    return found


def prctl(option: int, value: int) -> None:
    """Tell the kernel how to treat this process; nothing where there is no such call."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def main() -> None:
    """Start the agent and see to its end."""
    orders, grace, program, *command = sys.argv[1:]
    os.set_inheritable(int(orders), False)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    code = Minder(int(orders), float(grace), program, command).mind()
    if code < 0:
        end_by(-code)
    sys.exit(code)


def end_by(number: int) -> None:
    """End by this signal, without a second dump of memory."""
    prctl(PR_SET_DUMPABLE, 0)
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


if __name__ == "__main__":
    main()
