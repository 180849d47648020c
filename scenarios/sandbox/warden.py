"""Runs one untrusted command and ends all it started: `python -I -S warden.py ORDER`.

ORDER is a dictionary, as `marshal` writes it, in hexadecimal:

    command   program and arguments; `cwd` where it starts
    scratch   a folder of its own, limited in size; the file `left` in it is handed back
    env       all of its environment; None is the warden's own, which is not read as easily as ORDER
    writes    folders that it may write to besides; hidden: folders that it sees empty
    shown     [(FOLDER, PATH), ...]: at PATH, if that is a folder, it sees FOLDER
    limits    cpu, memory, file, disk, processes, files
    hold      a pipe, by number: when its other end is closed all is ended; `report`: a pipe that
              gets another such dictionary and then the bytes of `left`
    door      a Unix socket, by number, that gets a socket which listens at `port` of the loopback
              of the command's own network, where it has one

Where the kernel allows, it first enters namespaces of its own: a network without interfaces, a
file system that is read-only but for these folders, and processes of which none outlives this
one. A process with our rights watches over the command's processes from within. Who is root
makes the command another user, that may read everything and write what it is given; who is not
gets a user namespace. What could not be had is said.

Standard library only, and little of it, for every run waits for this to start: json and
contextlib alone would double that. Both sides are the same Python, so marshal is safe.
"""

import ctypes
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

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 1, 2, 4, 4096, 16384, 1 << 18
SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE = 442, -100, 0x8000  # linux/mount.h, all machines
PR_SET_PDEATHSIG, PR_SET_KEEPCAPS, PR_SET_CHILD_SUBREAPER = 1, 8, 36  # linux/prctl.h
PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 38, 47, 2
CAP_DAC_READ_SEARCH, CAPABILITY_VERSION_3 = 2, 0x20080522
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
BY_HANDLE = {"x86_64": (0xC000003E, 304), "aarch64": (0xC00000B7, 265)}
"""How audit names a machine, and the number of open_by_handle_at there."""
FOREIGN = 0x4000_0000
"""Numbers of calls from here on are those of other programs on the same machine, as of x32."""
IFF_UP, SIOCSIFFLAGS = 1, 0x8914  # linux/if.h, linux/sockios.h
ADDR_NO_RANDOMIZE = 0x0040000
STRANGERS = 0x4000_0000
"""User ids from here on belong to nobody: so the processes of each command are counted alone."""
NOBODY = 65534
GLANCE = 0.05
"""Seconds between two looks at what the command and all that it started use."""
STUBBORN = 5.0
"""Seconds after which what survives SIGKILL (stuck in the kernel) is left."""
TICKS, PAGE = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")


class Order:
    """What is to be run, and how much it may use."""

    def __init__(self, text: str) -> None:
        told = marshal.loads(bytes.fromhex(text))
        self.command: list[str] = told["command"]
        self.env: dict[str, str] = dict(os.environ) if told["env"] is None else told["env"]
        self.cwd, self.scratch, self.left = str(told["cwd"]), str(told["scratch"]), told["left"]
        self.writes: list[str] = told["writes"]
        self.hidden: list[str] = told["hidden"]
        self.shown: list[tuple[str, str]] = told.get("shown", [])
        self.limits: dict[str, float] = told["limits"]
        self.hold, self.report = int(told["hold"]), int(told["report"])
        self.door, self.port = told.get("door"), int(told.get("port", 0))
        for each in (self.hold, self.report, self.door):
            if each is not None:
                os.set_inheritable(each, False)  # or the command could report on itself

    def limit(self, name: str) -> int:
        return int(self.limits[name])


libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: object) -> None:
    """A function of the C library that says 0 where it is done; OSError where it is not."""
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """mount(2)."""
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    call("mount", *texts, ctypes.c_ulong(flags), os.fsencode(data) or None)


def read_only(path: str, *, on: bool, deep: bool = False) -> None:
    """mount_setattr(2): whether what is mounted at a path, and under it, can be written to."""
    wanted = struct.pack("=QQQQ", on, not on, 0, 0)
    flags = AT_RECURSIVE if deep else 0
    call("syscall", SYS_MOUNT_SETATTR, AT_FDCWD, os.fsencode(path), flags, wanted, len(wanted))


def shut_in() -> bool:
    """Enter namespaces of our own, whether one of users too; OSError where we may not."""
    uid, gid = os.getuid(), os.getgid()
    flags = os.CLONE_NEWNS | os.CLONE_NEWNET | os.CLONE_NEWPID | os.CLONE_NEWIPC
    try:
        os.unshare(flags)
        return False
    except PermissionError:
        os.unshare(flags | os.CLONE_NEWUSER)
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{uid} {uid} 1"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
                file.write(text)
        return True


def open_door(order: Order) -> None:
    """Hand out a socket that listens in our network, in which loopback is down at first."""
    if order.door is None:
        return
    import socket  # half as much as all the others

    with socket.socket(fileno=order.door) as door, socket.socket() as asking:
        up = struct.pack("16sh14x", b"lo", IFF_UP)
        fcntl.ioctl(asking, SIOCSIFFLAGS, up)
        with socket.create_server(("127.0.0.1", order.port), backlog=512) as listening:
            socket.send_fds(door, [b"."], [listening.fileno()])


def close_folders(order: Order) -> None:
    """Let all be read-only but the folders of the command, and hide what it is not to see.

    /run is hidden as well, for sockets lie there, which no network namespace closes.
    """
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    close_devices()
    for folder in order.writes:
        mount(folder, folder, None, MS_BIND | MS_REC)
    read_only("/", on=True, deep=True)
    for folder in order.writes:
        read_only(folder, on=False)
    for folder in filter(os.path.isdir, (*order.hidden, "/run")):
        mount("none", folder, "tmpfs", MS_RDONLY, "size=4k,mode=555")
    for folder, path in order.shown:
        if os.path.isdir(path):  # noqa: PTH112
            mount(folder, path, None, MS_BIND | MS_REC)
    for folder in filter(os.path.isdir, (order.scratch, "/dev/shm")):
        size = order.limit("disk")
        mount("none", folder, "tmpfs", MS_NOSUID | MS_NODEV, f"size={size},mode=1777")


def close_devices() -> None:
    """Cover each device that is not for everybody to read: a disk shows also what is hidden."""
    for at, _, names in os.walk("/dev"):
        for path in (f"{at}/{name}" for name in names):
            try:
                mode = os.lstat(path).st_mode
                device = stat.S_ISBLK(mode) or stat.S_ISCHR(mode)
                if device and not mode & stat.S_IROTH:
                    mount("/dev/null", path, None, MS_BIND)
            except FileNotFoundError:  # a terminal that has just been closed
                continue


def own(folders: list[str], user: int) -> None:
    """Give folders, and all in them, to a user, also where a path is longer than may be."""
    for folder in folders:
        os.chown(folder, user, user)
        for _, inner, files, at in os.fwalk(folder):
            for name in (*inner, *files):
                os.chown(name, user, user, dir_fd=at, follow_symlinks=False)


def stranger(order: Order) -> int | None:
    """The user that the command becomes, who owns its folders; None where it stays ours."""
    if os.geteuid() != 0:
        return None
    for user in (STRANGERS + os.getpid(), NOBODY):
        try:
            own([order.scratch, *order.writes], user)
        except OSError:  # a user namespace that knows few users
            continue
        return user
    return None


def become(user: int | None) -> None:
    """Be this user for good, who may look into every folder, as an interpreter's may be closed."""
    if user is not None:
        call("prctl", PR_SET_KEEPCAPS, 1, 0, 0, 0)
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
        try:
            keep(1 << CAP_DAC_READ_SEARCH)
            call("prctl", PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_READ_SEARCH, 0, 0)
            call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            open_by_name()
        except OSError:  # root of a container that never could
            keep(0)
    elif os.geteuid() == 0:
        keep(0)
    call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def open_by_name() -> None:
    """Open files by no handle, which would find what is hidden; OSError where that cannot be had.

    It is a filter of seccomp(2) for struct seccomp_data, whose first word is the call's number and
    whose second names the machine.
    """
    if (machine := os.uname().machine) not in BY_HANDLE:
        raise OSError(f"which call opens by a handle on {machine} is not known")
    name, number = BY_HANDLE[machine]
    load, equal, beyond, answer = 0x20, 0x15, 0x35, 0x06  # linux/bpf_common.h
    steps = (
        (load, 0, 0, 4),
        (equal, 0, 4, name),
        (load, 0, 0, 0),
        (beyond, 2, 0, FOREIGN),
        (equal, 1, 0, number),
        (answer, 0, 0, 0x7FFF_0000),  # SECCOMP_RET_ALLOW
        (answer, 0, 0, 0x0005_0000 | 1),  # SECCOMP_RET_ERRNO, EPERM
    )
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = struct.pack("HP", len(steps), ctypes.addressof(code))
    call("prctl", PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0)


def keep(capabilities: int) -> None:
    """Have no other capabilities than these."""
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    call("capset", header, struct.pack("=6I", *[capabilities] * 3, *[0] * 3))


def limit(order: Order, *, counted: bool) -> None:
    """What one process may use; how many there are only where they are counted alone."""
    cpu = max(1, round(order.limits["cpu"]))
    wanted = {
        resource.RLIMIT_CPU: (cpu, cpu + 1),
        resource.RLIMIT_AS: (int(order.limits.get("addresses", order.limit("memory"))),) * 2,
        resource.RLIMIT_FSIZE: (order.limit("file"),) * 2,
        resource.RLIMIT_NOFILE: (order.limit("files"),) * 2,
        resource.RLIMIT_CORE: (0, 0),
    }
    if counted:
        wanted[resource.RLIMIT_NPROC] = (order.limit("processes"),) * 2
    for what, (soft, hard) in wanted.items():
        _, most = resource.getrlimit(what)
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        resource.setrlimit(what, (soft, hard))


def execute(order: Order, user: int | None, *, counted: bool) -> None:
    """Become the command; exit code 126 or 127 where that cannot be, which is told as `start`."""
    os.setsid()
    os.chdir(order.cwd)
    os.umask(0o022)
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    if sys.platform == "linux":
        libc.personality(ctypes.c_ulong(ADDR_NO_RANDOMIZE))  # so that runs are alike
        with open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123
            file.write("1000")
    limit(order, counted=counted)
    if sys.platform == "linux":
        become(user)
    os.execvpe(order.command[0], order.command, order.env)


class Watch:
    """Watches over one command, from within its namespaces where there are any."""

    def __init__(self, order: Order, had: list[str], user: int | None) -> None:
        self.order, self.had = order, had
        self.folders = [*order.writes, *([] if "folders" in had else [order.scratch])]
        self.before = self.disk()
        self.status: int | None = None
        self.over: str | None = None
        self.crowded = False
        self.bell, clapper = os.pipe()
        os.set_blocking(clapper, False)
        signal.set_wakeup_fd(clapper, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        said, saying = os.pipe()
        self.child = os.fork()
        if self.child == 0:
            try:
                execute(order, user, counted="count" in had)
            except OSError as error:
                os.write(saying, (error.strerror or str(error)).encode())
            finally:
                os._exit(126)
        os.close(saying)
        self.unstarted = os.read(said, 4096).decode()
        os.close(said)

    def mind(self) -> None:
        """Wait for the command's end, or end it where it is beyond a limit or let go of."""
        look = time.monotonic() + GLANCE
        while self.status is None and self.over is None:
            wait = max(0.0, look - time.monotonic())
            ready, _, _ = select.select([self.order.hold, self.bell], [], [], wait)
            if self.bell in ready:
                os.read(self.bell, 4096)
            self.reap()
            if self.order.hold in ready:
                self.over = "let go"
            elif self.status is None and (began := time.monotonic()) >= look:
                self.over = self.beyond()
                look = time.monotonic() + max(GLANCE, 10 * (time.monotonic() - began))
        self.end_all()

    def beyond(self) -> str | None:
        """The limit that all that runs is beyond, together."""
        if self.disk() - self.before > self.order.limit("disk"):
            return "disk"
        if "processes" not in self.had:
            return None
        reaped = resource.getrusage(resource.RUSAGE_CHILDREN)
        each = [usage(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]  # noqa: PTH208
        self.crowded |= len(each) >= self.order.limit("processes")
        cpu = reaped.ru_utime + reaped.ru_stime + sum(seconds for seconds, _ in each)
        if cpu > self.order.limits["cpu"]:
            return "cpu"
        return "memory" if sum(size for _, size in each) > self.order.limit("memory") else None

    def disk(self) -> int:
        """Bytes in the folders that it may write to and that are not bounded by themselves."""
        return sum(held(folder) for folder in self.folders)

    def reap(self) -> bool:
        """Take in what has ended; False when no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.child:
                self.status = os.waitstatus_to_exitcode(status)

    def end_all(self) -> None:
        """Kill the command and what it left; in a namespace of our own, all but us."""
        deadline = time.monotonic() + STUBBORN
        while time.monotonic() < deadline:
            for pid in (-1,) if "processes" in self.had else offspring(os.getpid(), self.child):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:  # it has just ended
                    continue
            if not self.reap():
                return
            select.select([], [], [], 0.002)

    def tell(self) -> None:
        """Report how it ended and what it left."""
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        data, without = taken(self.order)
        full = "folders" in self.had and os.statvfs(self.order.scratch).f_bavail == 0
        said = {
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
            marshal.dump(said, report)
            report.write(data)


def usage(pid: str) -> tuple[float, int]:
    """Seconds of processor time of a process and its waited-for children, and its bytes."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            fields = file.read().rpartition(b")")[2].split()
    except OSError:  # it has just ended
        return 0.0, 0
    return sum(int(field) for field in fields[11:15]) / TICKS, int(fields[21]) * PAGE


def held(folder: str) -> int:
    """Bytes that the files of a folder take."""
    total = 0
    for _, inner, files, at in os.fwalk(folder):
        for name in (*inner, *files):
            try:
                total += os.lstat(name, dir_fd=at).st_blocks * 512
            except OSError:  # it has just gone
                continue
    return total


def offspring(ours: int, child: int) -> list[int]:
    """The processes that descend from ours, as far as the system tells."""
    parents = dict[int, int]()
    if sys.platform != "linux":
        return [-child]
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123
                parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:
            continue
    found = [ours]
    for each in found:
        found += [pid for pid, parent in parents.items() if parent == each]
    return found[1:]


def taken(order: Order) -> tuple[bytes, str]:
    """What the command left in the file that is handed back, or why there is nothing."""
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
        what = os.fstat(file)
        if not stat.S_ISREG(what.st_mode) or what.st_nlink != 1:
            return b"", "no file of its own"
        if what.st_size > order.limit("file"):
            return b"", "too large a file"
        with os.fdopen(os.dup(file), "rb") as opened:
            return opened.read(), ""
    finally:
        os.close(file)


def watched(order: Order, had: list[str], user: int | None) -> None:
    """Run the command to its end and report."""
    watch = Watch(order, had, user)
    watch.mind()
    watch.tell()


def within(order: Order, had: list[str], user: int | None) -> None:
    """The same as the first process of a namespace, with whose end all in there end."""
    first = os.fork()
    if first:
        os.waitpid(first, 0)
        return
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    try:
        mount("proc", "/proc", "proc", 0)
        had.append("processes")
    except OSError:  # parts of it are covered, as in containers
        had.append("ends")
    else:
        mount("/proc/sys", "/proc/sys", None, MS_BIND)
        read_only("/proc/sys", on=True)  # root's, and not only root's capabilities
    watched(order, had, user)


def main() -> None:
    """Build the walls that can be built, and watch over the command in them."""
    # The first process of a namespace hears from within it only signals that it has a handler for.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    order, had = Order(sys.argv[1]), list[str]()
    if sys.platform == "linux":
        try:
            own_user = shut_in()
        except OSError:
            call("prctl", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        else:
            open_door(order)
            user = stranger(order)
            close_folders(order)
            had += ["network", "folders", *(["count"] if own_user or user else [])]
            within(order, had, user)
            return
    user = stranger(order)
    watched(order, ["count"] if user else [], user)


if __name__ == "__main__":
    main()
