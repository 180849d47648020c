"""The agent's own processes: PID and user namespaces, a private /proc, restricted privileges.

`enter_namespaces.py` imports this when the other namespaces are set up. Three processes result: the
caller, outside, which ends as the agent ends; the first process of the PID namespace, which the
agent cannot stop or kill with signals, and which reaps the agent's orphans and ends everything when
the caller dies; and the agent. For root, the agent becomes root of a user namespace below the one
that owns the network, with an identity mapping: files have the same owners, and no capability
applies to the network or the mounts. Any other user is already in a user namespace, and loses its
capabilities there.

Standard library only, with few imports: every run waits for this.
"""

import ctypes
import os
import select
import signal
import struct
import time
from collections.abc import Callable
from errno import EAFNOSUPPORT, ENOSYS, EPERM

from recorder.agent.run_limits import POLL_SECONDS, LimitWatch
from sandbox.kernel import (
    ALLOW,
    EQUAL,
    ERRNO,
    HAS,
    LOAD,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_REC,
    PR_CAPBSET_DROP,
    PR_CAPBSET_READ,
    PR_SET_PDEATHSIG,
    RETURN,
    FilterStep,
    become_program,
    build_seccomp_filter,
    call_prctl,
    install_seccomp_filter,
    libc,
    mount_path,
    reap_children,
    set_read_only,
)

AGENT_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCONT)
READ_ONLY_PROC_PATHS = ("sys", "sysrq-trigger", "irq", "bus", "fs")
"""Parts of /proc that root can otherwise write without a capability, such as `core_pattern`."""

ESCAPE_CAPABILITIES = (2, 12, 16, 17, 19, 21, 22, 25, 27, 32, 33, 34, 38, 39, 40)
"""CAP_DAC_READ_SEARCH, NET_ADMIN, SYS_{MODULE, RAWIO, PTRACE, ADMIN, BOOT, TIME}, MKNOD,
MAC_{OVERRIDE, ADMIN}, SYSLOG, PERFMON, BPF, CHECKPOINT_RESTORE (linux/capability.h)."""

MACHINES = {
    "x86_64": (
        (101, 155, 165, 166, 304, 308, 310, 311, 321, 248, 249, 250, 298),
        {"socket": 41, "clone": 56, "unshare": 272},
    ),
    "aarch64": (
        (117, 41, 40, 39, 265, 268, 270, 271, 280, 217, 218, 219, 241),
        {"socket": 198, "clone": 220, "unshare": 97},
    ),
}
"""Per machine: the numbers of ptrace, pivot_root, mount, umount2,
open_by_handle_at, setns, process_vm_{readv, writev}, bpf, add_key, request_key, keyctl (keyrings
belong to no namespace, and request_key(2) starts a program outside of all) and perf_event_open; and
calls whose first argument is checked.
"""
REFUSED_SYSTEM_CALLS = (428, 429, 430, 431, 432, 433, 438, 442, 467)
"""open_tree, move_mount, fs{open, config, mount, pick}, pidfd_getfd, mount_setattr, open_tree_attr:
the same numbers on all machines.
"""
ABSENT_SYSTEM_CALLS = (425, 426, 427, 435)
"""io_uring_{setup, enter, register} and clone3, whose flags a filter cannot read. They fail with
ENOSYS, as on kernels without them, and programs fall back.
"""
AF_VSOCK = 40


def run_agent_in_pid_namespace(
    program: str | None,
    arguments: list[str],
    grace: float,
    ready: Callable[[], object],
    callers: tuple[int, ...] = (),
    watch: LimitWatch | None = None,
) -> int:
    """Run a program in its own PID namespace; return its exit code, -n if signal n ended it.

    `ready` is called after the set-up and before the program runs. Without a program only the
    set-up is done. The agent does not inherit the file descriptors `callers`. If `watch` finds an
    excess, all its processes are killed, which standard error says. Raises OSError if the set-up
    fails.
    """
    replies, reply_writer = os.pipe()
    order_reader, order_writer = os.pipe()
    os.unshare(os.CLONE_NEWPID)
    first_pid = os.fork()
    if first_pid == 0:
        for each in (replies, order_writer, *callers):
            os.close(each)
        _run_first_process(program, arguments, grace, order_reader, reply_writer, watch)
    os.close(reply_writer)
    os.close(order_reader)
    reply = os.read(replies, 4096)
    if reply != b"R":
        raise OSError(EPERM, reply.decode(errors="replace") or "the agent's processes ended early")
    ready()
    for number in AGENT_SIGNALS:
        signal.signal(number, lambda number, _: os.write(order_writer, bytes((number,))))
    os.write(order_writer, b"\0")
    return _wait_for_first_process(replies, first_pid)


def _wait_for_first_process(heard: int, first: int) -> int:
    """Stop whenever the agent stops; return the agent's exit code."""
    code = -signal.SIGKILL
    while message := os.read(heard, 5):
        if message[:1] == b"T":
            os.kill(os.getpid(), signal.SIGSTOP)
        else:
            code = struct.unpack("=i", message[1:])[0]
    os.waitpid(first, 0)
    return int(code)


def _run_first_process(
    program: str | None,
    arguments: list[str],
    grace: float,
    orders: int,
    telling: int,
    watch: LimitWatch | None,
) -> None:
    """Run as first process of the namespace until the agent and all it left have ended."""
    try:
        call_prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in AGENT_SIGNALS:
            signal.signal(number, signal.SIG_DFL)  # from inside, none gets here
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        _mount_own_proc()
        wakeup, wakeup_writer = os.pipe()
        os.set_blocking(wakeup_writer, False)
        signal.set_wakeup_fd(wakeup_writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        agent, starting = _fork_agent(program, arguments, orders, telling)
        if os.read(orders, 1):
            os.write(starting, b".")
        os.close(starting)
        code = _supervise_agent(agent, orders, wakeup, telling, watch)
        _end_leftover_processes(grace)
        os.write(telling, b"X" + struct.pack("=i", code))
    except OSError as error:
        os.write(telling, _encode_os_error(error))
    finally:
        os._exit(0)


def _fork_agent(
    program: str | None, arguments: list[str], orders: int, telling: int
) -> tuple[int, int]:
    """Fork the agent's process and confine it; return its PID and a pipe that starts it."""
    go_reader, go_writer = os.pipe()
    request_reader, request_writer = os.pipe()
    agent = os.fork()
    if agent == 0:
        for each in (request_reader, go_writer, orders):
            os.close(each)
        _become_agent(program, arguments, (go_reader, request_writer), telling)
    os.close(go_reader)
    os.close(request_writer)
    if os.read(request_reader, 1) and os.geteuid() == 0:
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/self/{name}") as file:  # noqa: PTH123
                extents = [line.split() for line in file]
            with open(f"/proc/{agent}/{name}", "w") as file:  # noqa: PTH123
                file.write("".join(f"{inside} {inside} {n}\n" for inside, _, n in extents))
    os.write(go_writer, b".")
    os.close(request_reader)
    return agent, go_writer


def _become_agent(
    program: str | None, arguments: list[str], maps: tuple[int, int], telling: int
) -> None:
    """Drop privileges, wait for the start, and execute the program."""
    go_reader, request_writer = maps
    try:
        signal.set_wakeup_fd(-1)
        os.setpgid(0, 0)
        if os.geteuid() == 0:
            os.unshare(os.CLONE_NEWUSER)
        os.write(request_writer, b".")
        os.read(go_reader, 1)
        confine_agent()
    except OSError as error:
        os.write(telling, _encode_os_error(error))
        os._exit(126)
    os.write(telling, b"R")
    started = os.read(go_reader, 1)
    for each in (go_reader, request_writer, telling):
        os.close(each)
    if program is None or not started:
        os._exit(0)
    _give_terminal_to(0)
    for number in (*AGENT_SIGNALS, signal.SIGTTOU, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    become_program(program, arguments)


def _give_terminal_to(group: int) -> None:
    """Give the controlling terminal, if available, to a process group; 0 is the caller's own."""
    try:
        if os.isatty(0):
            os.tcsetpgrp(0, group or os.getpgrp())
    except OSError:
        return  # hung up, or it belongs to another session


def _supervise_agent(
    agent: int, orders: int, bell: int, telling: int, watch: LimitWatch | None
) -> int:
    """Forward signals and reap until the agent ends; return its exit code, -n for signal n."""
    while True:
        ready, _, _ = select.select([orders, bell], [], [], POLL_SECONDS if watch else None)
        if watch and (excess := watch.find_excess()):
            os.write(2, f"stumble: the run was ended: too much {excess} (--limits)\n".encode())
            os.kill(-1, signal.SIGKILL)
            watch = None
        if orders in ready:
            if not (order := os.read(orders, 1)):
                os._exit(0)  # the caller has ended
            _signal_agent(agent, order[0])
        if bell in ready:
            os.read(bell, 4096)
            for pid, status in reap_children(os.WUNTRACED)[0]:
                if pid == agent and os.WIFSTOPPED(status):
                    os.write(telling, b"T")
                elif pid == agent:
                    return os.waitstatus_to_exitcode(status)


def _signal_agent(agent: int, number: int) -> None:
    if number == signal.SIGCONT:
        _give_terminal_to(agent)
    if number:
        try:
            os.killpg(agent, number)
        except ProcessLookupError:
            return  # just ended


def _end_leftover_processes(grace: float) -> None:
    """Send SIGTERM to what the agent left and wait; the end of the namespace kills the rest."""
    until = time.monotonic() + grace
    for number in (signal.SIGTERM, signal.SIGCONT):
        try:
            os.kill(-1, number)
        except ProcessLookupError:
            return
    while time.monotonic() < until:
        reap_children(os.WUNTRACED)
        try:
            os.kill(-1, 0)
        except ProcessLookupError:
            return
        time.sleep(0.005)


def _mount_own_proc() -> None:
    """Mount a /proc that shows only these processes, and make kernel settings read-only."""
    mount_path("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    if os.geteuid() != 0:
        return  # only root can write there
    for name in READ_ONLY_PROC_PATHS:
        path = f"/proc/{name}"
        if os.path.exists(path):  # noqa: PTH110
            mount_path(path, path, None, MS_BIND | MS_REC)
            set_read_only(path, deep=True)
    if os.path.ismount("/sys"):
        mount_path("/sys", "/sys", None, MS_BIND | MS_REC)
        set_read_only("/sys", deep=True)


def confine_agent() -> None:
    """Permanently drop, also for child processes, all privileges that affect the outside."""
    for capability in ESCAPE_CAPABILITIES:
        try:
            call_prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            if (
                capability <= ESCAPE_CAPABILITIES[-1]
                and os.geteuid() == 0
                and _has_capability(capability)
            ):
                raise
    install_seccomp_filter(build_agent_filter(os.uname().machine))


def _has_capability(capability: int) -> bool:
    """Return whether this process's bounding set has a capability."""
    return bool(libc.prctl(PR_CAPBSET_READ, ctypes.c_ulong(capability), 0, 0, 0) == 1)


def build_agent_filter(machine: str) -> list[FilterStep]:
    """Return the filter of an agent's system calls. Raises OSError for an unknown machine."""
    refused, checked = MACHINES.get(machine, ((), {}))
    groups = [((*refused, *REFUSED_SYSTEM_CALLS), EPERM), (ABSENT_SYSTEM_CALLS, ENOSYS)]
    steps = build_seccomp_filter(machine, groups, foreign=ENOSYS)
    for name, test, operand, error in (
        ("socket", EQUAL, AF_VSOCK, EAFNOSUPPORT),
        ("clone", HAS, os.CLONE_NEWUSER, EPERM),
        ("unshare", HAS, os.CLONE_NEWUSER, EPERM),
    ):
        steps += [
            (EQUAL, 0, 4, checked[name]),
            (LOAD, 0, 0, 16),
            (test, 0, 1, operand),
            (RETURN, 0, 0, ERRNO | error),
            (RETURN, 0, 0, ALLOW),
        ]
    return [*steps, (RETURN, 0, 0, ALLOW)]


def _encode_os_error(error: OSError) -> bytes:
    location = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror}{location}".encode()
