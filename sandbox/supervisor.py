"""Run one untrusted command and end all it started: `python -I -S supervisor.py ORDER`.

ORDER is a dictionary, encoded with `marshal`, in hexadecimal:

    command   program and arguments; `cwd`: where it starts
    scratch   a private folder, limited in size; its file `left` is returned
    env       the complete environment; None is the supervisor's own, which is harder to read
              than ORDER
    writes    further writable folders; hidden: folders that appear empty
    shown     [(FOLDER, PATH), ...]: mount FOLDER at PATH, if that is a folder
    root      paths; it sees these, `shown`, its own folders, and no other file of this machine.
              None: it sees all files
    sealed    whether it may execute no machine code but that of the files it sees read-only
    limits    cpu, memory, file, disk, processes, files
    hold      number of a pipe: when its other end is closed, everything is ended; `report`: a
              pipe that gets another such dictionary and then the content of `left`
    door      number of a Unix socket that gets a socket listening at `port` of the loopback of
              the command's own network, if it has one

If the kernel allows, it first enters new namespaces: a network without interfaces, a file system
that is read-only except for these folders, and processes of which none outlives this one. A process
with the supervisor's privileges monitors the command's processes from inside. As root, it switches
the command to another user, who can read everything and write what it is given; otherwise it enters
a user namespace. Unavailable protections are reported.

Standard library only, with few imports, because every run waits for this to start: json and
contextlib alone would double the time. Both sides are the same Python, so marshal is safe.
"""

import ctypes
import errno
import fcntl
import marshal
import os
import resource
import select
import signal
import stat
import struct
import sys
import time

if __name__ == "__main__":  # a script does not find our packages
    sys.path.insert(0, os.path.abspath(f"{__file__}/../.."))  # noqa: PTH100

from sandbox.deep_folders import walk_folders  # noqa: E402
from sandbox.kernel import (  # noqa: E402
    ALLOW,
    MNT_DETACH,
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    PR_SET_CHILD_SUBREAPER,
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    PR_SET_SECUREBITS,
    RETURN,
    build_seccomp_filter,
    call_libc,
    call_prctl,
    enter_namespaces,
    install_seccomp_filter,
    libc,
    list_descendants,
    mount_path,
    reap_children,
    set_process_option,
    set_read_only,
)

SECBIT_NO_SETUID_FIXUP = 1 << 2  # linux/securebits.h
PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 47, 2
CAP_DAC_READ_SEARCH, CAPABILITY_VERSION_3 = 2, 0x20080522
PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN = 65, 1  # from Linux 6.3 on
BY_HANDLE: dict[str, tuple[int, ...]] = {"x86_64": (304,), "aarch64": (265,)}
"""The number of open_by_handle_at, which would open hidden files."""
NEW_CODE: dict[str, tuple[int, ...]] = {
    "x86_64": (319, 447, 30, 101, 311),
    "aarch64": (279, 447, 196, 117, 271),
}
"""The numbers of the calls that could execute what a program writes: memfd_create, memfd_secret,
shmat, ptrace and process_vm_writev.
"""
IFF_UP, SIOCSIFFLAGS = 1, 0x8914  # linux/if.h, linux/sockios.h
ADDR_NO_RANDOMIZE = 0x0040000
DEVICES = ("null", "zero", "full", "random", "urandom")
"""What of /dev a command sees in a file system that is built for it."""
FIRST_UNUSED_UID = 0x4000_0000
"""User ids from here on are unused: so each command's processes are counted separately."""
NOBODY_UID = 65534
CHECK_INTERVAL = 0.05
"""Seconds between two checks of the usage of the command and its descendants."""
KILL_TIMEOUT = 5.0
"""Seconds after which processes that survive SIGKILL (stuck in the kernel) are abandoned."""
TICKS, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


class SupervisorOrder:
    """The command to run and its limits."""

    def __init__(self, text: str) -> None:
        order = marshal.loads(bytes.fromhex(text))
        self.command: list[str] = order["command"]
        self.env: dict[str, str] = dict(os.environ) if order["env"] is None else order["env"]
        self.cwd, self.scratch, self.left = str(order["cwd"]), str(order["scratch"]), order["left"]
        self.writes: list[str] = order["writes"]
        self.hidden: list[str] = order["hidden"]
        self.shown: list[tuple[str, str]] = order.get("shown", [])
        self.root: list[str] | None = order.get("root")
        self.sealed = bool(order.get("sealed"))
        self.limits: dict[str, float] = order["limits"]
        self.hold, self.report = int(order["hold"]), int(order["report"])
        self.door, self.port = order.get("door"), int(order.get("port", 0))
        for each in (self.hold, self.report, self.door):
            if each is not None:
                os.set_inheritable(each, False)  # or the command could report on itself

    def limit(self, name: str) -> int:
        return int(self.limits[name])


def send_listening_socket(order: SupervisorOrder) -> None:
    """Send a socket that listens in this network, after setting up its loopback."""
    if order.door is None:
        return
    import socket  # takes half as long to import as all the others

    with socket.socket(fileno=order.door) as door, socket.socket() as control:
        request = struct.pack("16sh14x", b"lo", IFF_UP)
        fcntl.ioctl(control, SIOCSIFFLAGS, request)
        with socket.create_server(("127.0.0.1", order.port), backlog=512) as listener:
            socket.send_fds(door, [b"."], [listener.fileno()])


def restrict_folders(order: SupervisorOrder) -> None:
    """Make everything read-only except the command's folders, and hide folders.

    /run is hidden as well: its sockets are not blocked by a network namespace.
    """
    mount_path("none", "/", None, MS_REC | MS_PRIVATE)
    cover_devices()
    if os.geteuid() == 0:
        cover_root_files(deep=order.door is not None)
    for folder in order.writes:
        mount_path(folder, folder, None, MS_BIND | MS_REC)
    set_read_only("/", on=True, deep=True)
    for folder in order.writes:
        set_read_only(folder, on=False)
    for folder in filter(os.path.isdir, (*order.hidden, "/run")):
        mount_path("none", folder, "tmpfs", MS_RDONLY, "size=4k,mode=555")
    for folder, path in order.shown:
        if os.path.isdir(path):
            mount_path(folder, path, None, MS_BIND | MS_REC)
    mount_scratch_folders(order)


def build_root(order: SupervisorOrder, paths: list[str]) -> None:
    """Enter a file system of these paths, `shown` and the command's own folders.

    It is made in a file system in memory, so what nobody lists is not there: homes, stores,
    other runs and other checkouts. All but the command's folders is read-only.
    """
    mount_path("none", "/", None, MS_REC | MS_PRIVATE)
    new = order.scratch
    mount_path("none", new, "tmpfs", MS_NOSUID, "size=1m,mode=755")
    if order.door is not None:
        add_agent_folders(order, new)
    for path in (*paths, *(f"/dev/{name}" for name in DEVICES), "/proc"):
        add_path(path, new + path)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"{new}/dev/{name}")
    os.symlink("/proc/self/fd", f"{new}/dev/fd")
    for folder in filter(os.path.isdir, (new + path for path in order.hidden)):
        mount_path("none", folder, "tmpfs", 0, "size=64k,mode=755")
    for folder, path in [*order.shown, *((path, path) for path in order.writes)]:
        add_path(folder, new + path)
    for path in (order.scratch, "/dev/shm"):
        os.makedirs(new + path, exist_ok=True)
    os.chdir(new)
    call_libc("pivot_root", b".", b".")  # the old root is now mounted over the new one
    call_libc("umount2", b".", MNT_DETACH)
    if os.geteuid() == 0:
        cover_root_files(deep=False)
    set_read_only("/", on=True, deep=True)
    for folder in (*order.writes, *(["/tmp"] if order.door is not None else [])):  # noqa: S108
        set_read_only(folder, on=False)
    mount_scratch_folders(order)


def add_agent_folders(order: SupervisorOrder, new: str) -> None:
    """Add what agents use and graded programs do not: a /tmp and terminals of their own."""
    for folder in ("tmp", "dev/pts"):
        os.makedirs(f"{new}/{folder}")
    size = order.limit("disk")
    mount_path("none", f"{new}/tmp", "tmpfs", MS_NOSUID | MS_NODEV, f"size={size},mode=1777")
    mount_path("devpts", f"{new}/dev/pts", "devpts", MS_NOSUID, "newinstance,ptmxmode=0666")
    os.symlink("pts/ptmx", f"{new}/dev/ptmx")
    add_path("/dev/tty", f"{new}/dev/tty")


def add_path(source: str, target: str) -> None:
    """Bind a file or folder to a path that is made for it; a symbolic link is copied."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(source):
        os.symlink(os.readlink(source), target)
    elif os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
        mount_path(source, target, None, MS_BIND | MS_REC)
    elif os.path.exists(source):
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
        mount_path(source, target, None, MS_BIND)


def mount_scratch_folders(order: SupervisorOrder) -> None:
    """Mount file systems in memory, limited in size, where the command may write."""
    for folder in filter(os.path.isdir, (order.scratch, "/dev/shm")):
        size = order.limit("disk")
        flags = MS_NOSUID | MS_NODEV | (MS_NOEXEC if order.sealed else 0)
        mount_path("none", folder, "tmpfs", flags, f"size={size},mode=1777")


def cover_devices() -> None:
    """Cover devices that are not readable by all users: a disk would expose hidden folders."""
    for folder, _, names in os.walk("/dev"):
        for path in (f"{folder}/{name}" for name in names):
            try:
                mode = os.lstat(path).st_mode
                device = stat.S_ISBLK(mode) or stat.S_ISCHR(mode)
                if device and not mode & stat.S_IROTH:
                    mount_path("/dev/null", path, None, MS_BIND)
            except FileNotFoundError:  # a terminal that was just closed
                continue


def cover_root_files(*, deep: bool) -> None:
    """Cover files in /etc that only root can read, such as password hashes.

    The command can traverse every folder, since an interpreter's folder may be private, and could
    read them. For an agent /etc is searched recursively; graded programs, of which there are many,
    have no network.
    """
    for folder, folders, names in os.walk("/etc"):
        for name in (*folders, *names):
            try:
                mode = os.lstat(path := f"{folder}/{name}").st_mode
                if stat.S_ISREG(mode) and not mode & stat.S_IROTH:
                    mount_path("/dev/null", path, None, MS_BIND)
                elif stat.S_ISDIR(mode) and not mode & (stat.S_IROTH | stat.S_IXOTH):
                    mount_path("none", path, "tmpfs", MS_RDONLY, "size=4k,mode=555")
            except FileNotFoundError:  # just removed
                continue
        if not deep:
            return


def chown_folders(folders: list[str], user: int) -> None:
    """Change the owner of folders and their contents, however deep."""
    for folder in folders:
        os.chown(folder, user, user)
        for _, entries in walk_folders(folder):
            for entry in entries:
                try:
                    os.chown(entry.path, user, user, follow_symlinks=False)
                except FileNotFoundError:  # just removed
                    continue


def assign_command_user(order: SupervisorOrder) -> int | None:
    """Choose the command's user and give it its folders; None if the user stays the same."""
    if os.geteuid() != 0:
        return None
    for user in (FIRST_UNUSED_UID + os.getpid(), NOBODY_UID):
        try:
            chown_folders([order.scratch, *order.writes], user)
        except OSError:  # a user namespace that maps few users
            continue
        return user
    return None


def switch_user(user: int | None) -> None:
    """Switch permanently to this user, who may traverse every folder.

    An interpreter's folder may be private. Without SECBIT_NO_SETUID_FIXUP access(2) ignores the
    capability, and compilers refuse to write over a file in a folder that root alone may traverse.
    """
    if user is not None:
        call_prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP)
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        try:
            set_capabilities(1 << CAP_DAC_READ_SEARCH)
            call_prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH)
            forbid_calls(BY_HANDLE)
        except OSError:  # root in a container without this capability
            set_capabilities(0)
    elif os.geteuid() == 0:
        set_capabilities(0)
    call_prctl(PR_SET_NO_NEW_PRIVS, 1)


def forbid_new_code() -> None:
    """Let no process execute what it has written: not as memory, nor through another process.

    A file it writes is on a file system without programs. The refusal of memory that becomes
    executable is the kernel's own, and older ones do not have it.
    """
    set_read_only("/proc", on=True)  # /proc/self/mem writes to code as well
    set_process_option(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN)
    if os.uname().machine in NEW_CODE:
        forbid_calls(NEW_CODE)


def forbid_calls(numbers_by_machine: dict[str, tuple[int, ...]]) -> None:
    """Forbid system calls by their numbers, and all of other ABIs. Raises OSError if it cannot."""
    machine = os.uname().machine
    refused = [(numbers_by_machine.get(machine, ()), errno.EPERM)]
    steps = build_seccomp_filter(machine, refused, foreign=errno.EPERM)
    install_seccomp_filter([*steps, (RETURN, 0, 0, ALLOW)])


def set_capabilities(capabilities: int) -> None:
    """Drop all capabilities except these."""
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    call_libc("capset", header, struct.pack("=6I", *[capabilities] * 3, *[0] * 3))


def set_process_limits(order: SupervisorOrder, *, counted: bool) -> None:
    """Set the limits of one process; their number only if processes are counted separately."""
    cpu = max(1, round(order.limits["cpu"]))
    limits = {
        resource.RLIMIT_CPU: (cpu, cpu + 1),
        resource.RLIMIT_AS: (int(order.limits.get("addresses", order.limit("memory"))),) * 2,
        resource.RLIMIT_FSIZE: (order.limit("file"),) * 2,
        resource.RLIMIT_NOFILE: (order.limit("files"),) * 2,
        resource.RLIMIT_CORE: (0, 0),
    }
    if counted:
        limits[resource.RLIMIT_NPROC] = (order.limit("processes"),) * 2
    for kind, (soft, hard) in limits.items():
        _, current_hard = resource.getrlimit(kind)
        if current_hard != resource.RLIM_INFINITY:
            soft, hard = min(soft, current_hard), min(hard, current_hard)
        resource.setrlimit(kind, (soft, hard))


def exec_command(order: SupervisorOrder, user: int | None, had: list[str]) -> None:
    """Execute the command. Raises OSError if it cannot be executed."""
    os.setsid()
    os.chdir(order.cwd)
    os.umask(0o022)
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    if sys.platform == "linux":
        libc.personality(ctypes.c_ulong(ADDR_NO_RANDOMIZE))  # so that runs are reproducible
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    set_process_limits(order, counted="count" in had)
    if sys.platform == "linux":
        if order.sealed and "folders" in had:
            forbid_new_code()
        switch_user(user)
    os.execvpe(order.command[0], order.command, order.env)


class CommandMonitor:
    """Monitors one command, from inside its namespaces if there are any."""

    def __init__(self, order: SupervisorOrder, had: list[str], user: int | None) -> None:
        self.order, self.had = order, had
        self.folders = [*order.writes, *([] if "folders" in had else [order.scratch])]
        self.before = self.measure_writes()
        self.status: int | None = None
        self.over: str | None = None
        self.crowded = False
        self.bell, wakeup_writer = os.pipe()
        os.set_blocking(wakeup_writer, False)
        signal.set_wakeup_fd(wakeup_writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        error_reader, error_writer = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            try:
                exec_command(order, user, had)
            except OSError as error:
                os.write(error_writer, (error.strerror or str(error)).encode())
            finally:
                os._exit(126)
        os.close(error_writer)
        self.unstarted = os.read(error_reader, 4096).decode()
        os.close(error_reader)

    def wait_for_end(self) -> None:
        """Wait for the command's end, or end it if it exceeds a limit or `hold` is closed."""
        next_check = time.monotonic() + CHECK_INTERVAL
        while self.status is None and self.over is None:
            timeout = max(0.0, next_check - time.monotonic())
            ready, _, _ = select.select([self.order.hold, self.bell], [], [], timeout)
            if self.bell in ready:
                os.read(self.bell, 4096)
            self.reap_children()
            if self.order.hold in ready:
                self.over = "let go"
            elif self.status is None and (check_started := time.monotonic()) >= next_check:
                self.over = self.find_exceeded_limit()
                next_check = time.monotonic() + max(
                    CHECK_INTERVAL, 10 * (time.monotonic() - check_started)
                )
        self.kill_all()

    def find_exceeded_limit(self) -> str | None:
        """Return the limit that all processes together exceed, or None."""
        if self.measure_writes() - self.before > self.order.limit("disk"):
            return "disk"
        if "processes" not in self.had:
            return None
        reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
        each = [
            read_process_usage(name)
            for name in os.listdir("/proc")
            if name.isdigit() and name != "1"
        ]
        self.crowded |= len(each) >= self.order.limit("processes")
        cpu = reaped.ru_utime + reaped.ru_stime + sum(seconds for seconds, _ in each)
        if cpu > self.order.limits["cpu"]:
            return "cpu"
        return "memory" if sum(size for _, size in each) > self.order.limit("memory") else None

    def measure_writes(self) -> int:
        """Return the bytes in its writable folders that have no size limit of their own."""
        return sum(measure_disk_usage(folder) for folder in self.folders)

    def reap_children(self) -> bool:
        """Reap ended processes; return False when no child is left."""
        ended, is_any_left = reap_children()
        for pid, status in ended:
            if pid == self.child:
                self.status = os.waitstatus_to_exitcode(status)
        return is_any_left

    def kill_all(self) -> None:
        """Kill the command and its processes; in its own PID namespace, all except this one."""
        deadline = time.monotonic() + KILL_TIMEOUT
        while time.monotonic() < deadline:
            listed = list_descendants() if sys.platform == "linux" else [-self.child]
            for pid in [-1] if "processes" in self.had else listed:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:  # just ended
                    continue
            if not self.reap_children():
                return
            select.select([], [], [], 0.002)

    def write_report(self) -> None:
        """Report how it ended and the file it left."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        data, without = read_left_file(self.order)
        full = "folders" in self.had and os.statvfs(self.order.scratch).f_bavail == 0
        report_data = {
            "code": self.status,
            "over": self.over,
            "full": full,
            "crowded": self.crowded,
            "unstarted": self.unstarted,
            "cpu": used.ru_utime + used.ru_stime,
            "memory": used.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
            "had": self.had,
            "without": without,
        }
        with os.fdopen(self.order.report, "wb") as report:
            marshal.dump(report_data, report)
            report.write(data)


def read_process_usage(pid: str) -> tuple[float, int]:
    """Return the processor seconds of a process and its waited-for children, and its memory."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:  # just ended
        return 0.0, 0
    return sum(int(field) for field in fields[11:15]) / TICKS, int(fields[21]) * PAGE


def measure_disk_usage(folder: str) -> int:
    """Return the disk usage of a folder in bytes."""
    total = 0
    for _, entries in walk_folders(folder):
        for entry in entries:
            try:
                total += entry.stat(follow_symlinks=False).st_blocks * 512
            except OSError:  # just removed
                continue
    return total


def read_left_file(order: SupervisorOrder) -> tuple[bytes, str]:
    """Return the content of the file to hand back, or the reason that there is none."""
    if order.left is None:
        return b"", ""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        file = os.open(f"{order.scratch}/{order.left}", flags)
    except FileNotFoundError:
        return b"", "nothing"
    except OSError as error:
        return b"", f"no file of its own ({error.strerror})"
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            return b"", "no file of its own"
        if status.st_size > order.limit("file"):
            return b"", "too large a file"
        with os.fdopen(os.dup(file), "rb") as opened:
            return opened.read(), ""
    finally:
        os.close(file)


def run_and_report(order: SupervisorOrder, had: list[str], user: int | None) -> None:
    """Run the command to its end and report."""
    monitor = CommandMonitor(order, had, user)
    monitor.wait_for_end()
    monitor.write_report()


def run_in_pid_namespace(order: SupervisorOrder, had: list[str], user: int | None) -> None:
    """Do the same as first process of a PID namespace, whose end ends all processes in it."""
    first_pid = os.fork()
    if first_pid:
        os.waitpid(first_pid, 0)
        return
    call_prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    try:
        mount_path("proc", "/proc", "proc", 0)
        had.append("processes")
    except OSError:  # parts of it are covered, as in containers
        had.append("ends")
    else:
        mount_path("/proc/sys", "/proc/sys", None, MS_BIND)
        set_read_only("/proc/sys", on=True)  # owned by root, so writable without capabilities
    run_and_report(order, had, user)


def main() -> None:
    """Set up the available protections, and run the command in them."""
    # From inside, the first process of a namespace gets only signals that it has a handler for.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    order, had = SupervisorOrder(sys.argv[1]), list[str]()
    if sys.platform == "linux":
        flags = os.CLONE_NEWNS | os.CLONE_NEWNET | os.CLONE_NEWPID | os.CLONE_NEWIPC
        try:
            has_user_namespace = enter_namespaces(flags)
        except OSError:
            call_prctl(PR_SET_CHILD_SUBREAPER, 1)
        else:
            send_listening_socket(order)
            user = assign_command_user(order)
            if order.root is None:
                restrict_folders(order)
            else:
                build_root(order, order.root)
            had += ["network", "folders", *(["count"] if has_user_namespace or user else [])]
            run_in_pid_namespace(order, had, user)
            return
    user = assign_command_user(order)
    run_and_report(order, ["count"] if user else [], user)


if __name__ == "__main__":
    main()
