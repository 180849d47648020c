"""Supervise one agent from a small process of its own, so that no process of the agent remains.

    python -I -S process_supervisor.py FD GRACE WRAPPED PROGRAM COMMAND...

A process that an agent starts may outlive it, leave its process group and lose its parent; and the
recorder may be killed. So the supervisor is the ancestor that adopts orphans (Linux), has its own
process group, and reads from FD, a pipe whose other end only the recorder has. Each byte on the
pipe is the number of a signal for the agent's group. The end of the pipe, also caused by the
recorder's death, ends everything: SIGTERM, GRACE seconds, SIGKILL. The agent's exit has the same
effect on the processes it left. The supervisor ends as the agent did: with its exit code, or by the
signal that ended it.

If WRAPPED is 1, PROGRAM runs an agent in a PID namespace, forwards signals to it and ends last, so
it is excluded from signals sent to single processes.

If standard input is the recorder's terminal, the agent's group becomes its foreground group, until
the agent ends. A stop (Ctrl-Z) stops the recorder too, and the agent continues when the shell
brings the recorder to the foreground.

Standard library only, with few imports: every run waits for this to start.
"""

import ctypes
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36  # linux/prctl.h
FORWARDED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# Ignored by the supervisor and reset for the agent; Python itself ignores the last two.
IGNORED_SIGNALS = (
    *FORWARDED_SIGNALS,
    signal.SIGQUIT,
    signal.SIGTTOU,
    signal.SIGCHLD,
    signal.SIGPIPE,
    signal.SIGXFSZ,
)
POLL_SECONDS = 0.01
SIGKILL_TIMEOUT = 5.0
"""Seconds to wait for processes that survive SIGKILL (another user's, stuck in the kernel)."""


class ProcessSupervisor:
    """One agent, from its start to the end of the last process it leaves."""

    def __init__(
        self, orders: int, grace: float, wrapped: bool, program: str, command: list[str]
    ) -> None:
        self.orders, self.grace, self.wrapped = orders, grace, wrapped
        self.code: int | None = None
        self.ours = os.getpgid(os.getppid())
        self.terminal = os.isatty(0) and os.tcgetpgrp(0) == self.ours
        self.bell, wakeup_writer = os.pipe()
        os.set_blocking(wakeup_writer, False)
        ignored = {
            n for n in FORWARDED_SIGNALS if signal.getsignal(n) is signal.SIG_IGN
        }  # as under nohup
        for number in (*FORWARDED_SIGNALS, signal.SIGQUIT, signal.SIGTTOU):
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(wakeup_writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.agent = os.fork()
        if self.agent == 0:
            self._exec_agent(program, command, [n for n in IGNORED_SIGNALS if n not in ignored])
        try:
            os.setpgid(self.agent, self.agent)  # the agent calls it too: either may be first
        except (PermissionError, ProcessLookupError):
            return
        self._give_terminal_to(self.agent)

    def _exec_agent(self, program: str, command: list[str], default: list[signal.Signals]) -> None:
        os.setpgid(0, 0)
        self._give_terminal_to(os.getpgrp())
        set_process_option(PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in default:
            signal.signal(number, signal.SIG_DFL)
        try:
            os.execv(program, command)
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        finally:
            os._exit(126)

    def _give_terminal_to(self, group: int) -> None:
        if self.terminal:
            try:
                os.tcsetpgrp(0, group)
            except OSError:  # hung up
                self.terminal = False

    def supervise_agent(self) -> int:
        """Wait for the end of the agent and its descendants; return its code, -n for signal n."""
        while self.code is None:
            ready, _, _ = select.select([self.orders, self.bell], [], [])
            if self.bell in ready:
                os.read(self.bell, 4096)
                self._reap_children()
            elif order := os.read(self.orders, 1):
                self._signal_agent_group(order[0])
            else:
                break
        self._end_all(signal.SIGTERM, self.grace)
        self._end_all(signal.SIGKILL, SIGKILL_TIMEOUT)
        self._give_terminal_to(self.ours)
        return -signal.SIGKILL if self.code is None else self.code

    def _reap_children(self) -> bool:
        """Reap ended processes; return False when no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if os.WIFSTOPPED(status):
                if pid == self.agent and self.terminal:
                    self._stop_with_agent()
            elif pid == self.agent:
                self.code = os.waitstatus_to_exitcode(status)

    def _signal_agent_group(self, number: int) -> None:
        try:
            os.killpg(self.agent, number)
        except (ProcessLookupError, PermissionError):
            return  # already ended, or another user's, which cannot be signalled

    def _stop_with_agent(self) -> None:
        """Stop as the agent did, so that the shell notices, until the shell continues this group.

        If no shell takes the terminal within 0.5 s, continue at once.
        """
        os.tcsetpgrp(0, self.ours)
        os.killpg(self.ours, signal.SIGTSTP)
        until = time.monotonic() + 0.5
        while os.tcgetpgrp(0) == self.ours and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
        while (
            os.tcgetpgrp(0) != self.ours
            and not select.select([self.orders], [], [], POLL_SECONDS)[0]
        ):
            pass
        self._give_terminal_to(self.agent)
        self._signal_agent_group(signal.SIGCONT)

    def _end_all(self, number: int, seconds: float) -> None:
        """Signal the remaining processes, once or (SIGKILL) until none is left or time is up."""
        until, signalled = time.monotonic() + seconds, set[int]()
        if sys.platform != "linux":  # descendants cannot be listed there
            self._signal_agent_group(number)
        while self._reap_children() and time.monotonic() < until:
            remaining = set(list_descendants()) or {self.agent}
            signalled |= {self.agent} if self.wrapped else set()
            for pid in remaining if number == signal.SIGKILL else remaining - signalled:
                try:
                    os.kill(pid, number)
                    os.kill(pid, signal.SIGCONT)  # a stopped process would not handle the signal
                except (ProcessLookupError, PermissionError):
                    continue
            signalled |= remaining
            time.sleep(POLL_SECONDS)


def list_descendants() -> list[int]:
    """List the PIDs of all descendants from /proc; empty without a /proc."""
    children: dict[int, list[int]] = {}
    entries = os.scandir("/proc") if sys.platform == "linux" else ()
    for number in [entry.name for entry in entries if entry.name.isdigit()]:
        try:
            file = os.open(f"/proc/{number}/stat", os.O_RDONLY)
        except (FileNotFoundError, ProcessLookupError):
            continue  # just ended
        try:
            stat = os.read(file, 1024)
        except ProcessLookupError:
            continue
        finally:
            os.close(file)
        parent = int(stat.rpartition(b")")[2].split()[1])
        children.setdefault(parent, []).append(int(number))
    descendants = list(children.get(os.getpid(), ()))
    for pid in descendants:
        descendants += children.get(pid, ())
    return descendants


def set_process_option(option: int, value: int) -> None:
    """Call prctl(2) for this process; no effect on other systems."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def main() -> None:
    """Start the agent and supervise it to its end."""
    orders, grace, wrapped, program, *command = sys.argv[1:]
    os.set_inheritable(int(orders), False)
    set_process_option(PR_SET_CHILD_SUBREAPER, 1)
    code = ProcessSupervisor(
        int(orders), float(grace), wrapped == "1", program, command
    ).supervise_agent()
    if code < 0:
        end_by_signal(-code)
    sys.exit(code)


def end_by_signal(number: int) -> None:
    """End by this signal, without a second core dump."""
    set_process_option(PR_SET_DUMPABLE, 0)
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


if __name__ == "__main__":
    main()
