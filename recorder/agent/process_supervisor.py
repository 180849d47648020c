"""Supervise one agent from a small process of its own, so that no process of the agent remains.

    python -I -S process_supervisor.py FD GRACE WRAPPED PROGRAM COMMAND...

A process that an agent starts may outlive it, leave its process group and lose its parent; and the
recorder may be killed. So the supervisor is the ancestor that adopts orphans (Linux), has its own
process group, and reads from FD, a pipe whose other end only the recorder has. Each byte on the
pipe is the number of a signal for the agent's group. The end of the pipe, also caused by the
recorder's death, ends everything: SIGTERM, GRACE seconds, SIGKILL. The agent's exit has the same
effect on the processes it left. The supervisor ends as the agent did: with its exit code, or by the
signal that ended it.

An agent may stop or kill its parent. So the supervisor has a parent of its own, the guard, which
continues it when it is stopped, adopts what it leaves when it is killed, and ends that.

Both leave the agent's folder once it is started: an agent may count the programs that run in its
folder under its name, which is among their arguments.

If WRAPPED is 1, PROGRAM runs an agent in a PID namespace, forwards signals to it and ends last, so
it is excluded from signals sent to single processes.

If standard input is the recorder's terminal, the agent's group becomes its foreground group, until
the agent ends. A stop (Ctrl-Z) stops the recorder too, and the agent continues when the shell
brings the recorder to the foreground. A supervisor that was started in a session of its own makes
standard input the terminal of that session; an agent that stops there continues at once.

Standard library only, with few imports: every run waits for this to start.
"""

import os
import select
import signal
import sys
import time

if __name__ == "__main__":  # a script does not find our packages
    sys.path.insert(0, os.path.abspath(f"{__file__}/../../.."))  # noqa: PTH100

from sandbox.kernel import (  # noqa: E402
    PR_SET_CHILD_SUBREAPER,
    PR_SET_PDEATHSIG,
    become_program,
    exit_as_child,
    list_descendants,
    reap_children,
    set_process_option,
)

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


class ProcessAncestor:
    """Ends a child process and its descendants; orphans among them are adopted (Linux)."""

    def __init__(self, grace: float, wrapped: bool) -> None:
        self.grace, self.wrapped = grace, wrapped
        self.child = 0
        self.code: int | None = None
        set_process_option(PR_SET_CHILD_SUBREAPER, 1)

    def reap_children(self) -> bool:
        """Reap ended processes; return False when no child is left."""
        changed, is_any_left = reap_children(os.WUNTRACED)
        for pid, status in changed:
            if os.WIFSTOPPED(status):
                self.handle_stop(pid)
            elif pid == self.child:
                self.code = os.waitstatus_to_exitcode(status)
        return is_any_left

    def handle_stop(self, pid: int) -> None:
        """Leave a stopped child stopped."""

    def end_descendants(self) -> None:
        """Send SIGTERM, wait for `grace` seconds, and kill what is left."""
        self._signal_descendants(signal.SIGTERM, self.grace)
        self._signal_descendants(signal.SIGKILL, SIGKILL_TIMEOUT)

    def signal_child_group(self, number: int) -> None:
        """Signal the process group of the child, and continue it, as a stopped one handles none."""
        try:
            os.killpg(self.child, number)
            os.killpg(self.child, signal.SIGCONT)
        except (ProcessLookupError, PermissionError):
            return  # already ended, or another user's, which cannot be signalled

    def _signal_descendants(self, number: int, seconds: float) -> None:
        """Signal the remaining processes, once or (SIGKILL) until none is left or time is up.

        Parents come first: one that sees the end of its child has the signal already, and so ends
        as its own handler wants, not as if its work were done.
        """
        until, signalled = time.monotonic() + seconds, set[int]()
        if sys.platform != "linux":  # descendants cannot be listed there
            self.signal_child_group(number)
        while self.reap_children() and time.monotonic() < until:
            remaining = list_descendants() or [self.child]
            signalled |= {self.child} if self.wrapped else set()
            for pid in remaining:
                if pid in signalled and number != signal.SIGKILL:
                    continue
                try:
                    os.kill(pid, number)
                    os.kill(pid, signal.SIGCONT)  # a stopped process would not handle the signal
                except (ProcessLookupError, PermissionError):
                    continue
            signalled.update(remaining)
            time.sleep(POLL_SECONDS)


class SupervisorGuard(ProcessAncestor):
    """The parent of a supervisor, for an agent that stops or kills the supervisor."""

    def wait_for_supervisor(self, supervisor: int) -> int:
        """Wait for its end and end what it left; return its code, -n for signal n."""
        for number in (*FORWARDED_SIGNALS, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)
        while os.WIFSTOPPED(status := os.waitpid(supervisor, os.WUNTRACED)[1]):
            os.kill(supervisor, signal.SIGCONT)
        self.end_descendants()
        return os.waitstatus_to_exitcode(status)


class ProcessSupervisor(ProcessAncestor):
    """One agent, from its start to the end of the last process it leaves."""

    def __init__(self, orders: int, grace: float, wrapped: bool, ours: int) -> None:
        """`ours`: the recorder's process group."""
        super().__init__(grace, wrapped)
        self.orders, self.ours = orders, ours
        self.terminal = os.isatty(0) and os.tcgetpgrp(0) == ours

    def start_agent(self, program: str, command: list[str]) -> None:
        """Start the agent in a process group of its own, in the foreground of our terminal."""
        self.bell, wakeup_writer = os.pipe()
        os.set_blocking(wakeup_writer, False)
        ignored = {
            n for n in FORWARDED_SIGNALS if signal.getsignal(n) is signal.SIG_IGN
        }  # as under nohup
        for number in (*FORWARDED_SIGNALS, signal.SIGQUIT, signal.SIGTTOU):
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(wakeup_writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.child = os.fork()
        if self.child == 0:
            self._exec_agent(program, command, [n for n in IGNORED_SIGNALS if n not in ignored])
        try:
            os.setpgid(self.child, self.child)  # the agent calls it too: either may be first
        except (PermissionError, ProcessLookupError):
            return
        self._give_terminal_to(self.child)

    def _exec_agent(self, program: str, command: list[str], default: list[signal.Signals]) -> None:
        os.setpgid(0, 0)
        self._give_terminal_to(os.getpgrp())
        set_process_option(PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in default:
            signal.signal(number, signal.SIG_DFL)
        become_program(program, command)

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
                self.reap_children()
            elif order := os.read(self.orders, 1):
                self.signal_child_group(order[0])
            else:
                break
        self.end_descendants()
        self._give_terminal_to(self.ours)
        return -signal.SIGKILL if self.code is None else self.code

    def handle_stop(self, pid: int) -> None:
        """Stop with the agent, if a shell is there to continue both."""
        if pid == self.child and self.terminal:
            self._stop_with_agent()

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
        self._give_terminal_to(self.child)
        self.signal_child_group(signal.SIGCONT)


def main() -> None:
    """Start the agent and supervise it to its end."""
    orders, grace, wrapped, program, *command = sys.argv[1:]
    ours = os.getpgid(os.getppid())
    if os.getsid(0) == os.getpid() and os.isatty(0):
        ours = claim_terminal()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it is ignored, there is nothing to wait for
    if supervisor := os.fork():
        os.close(int(orders))
        os.chdir("/")
        code = SupervisorGuard(float(grace), False).wait_for_supervisor(supervisor)
    else:
        os.set_inheritable(int(orders), False)
        agent = ProcessSupervisor(int(orders), float(grace), wrapped == "1", ours)
        agent.start_agent(program, command)
        os.chdir("/")
        code = agent.supervise_agent()
    exit_as_child(code)


def claim_terminal() -> int:
    """Make standard input the terminal of this session; return its foreground group, ours."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    return os.getpgrp()


if __name__ == "__main__":
    main()
