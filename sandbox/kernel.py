"""Calls of the Linux kernel that Python lacks, and the processes below this one.

Both isolations use it: that of agents (`recorder/agent/`) and that of programs that are not trusted
(`supervisor.py`). Every function that calls the kernel raises OSError if it refuses.

Standard library only, with few imports: every run waits for the scripts that import this.
"""

import ctypes
import errno
import os
import signal
import struct
import sys

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32  # sys/mount.h
MS_BIND, MS_REC, MS_PRIVATE, MNT_DETACH = 4096, 16384, 1 << 18, 2
SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE = 442, -100, 0x8000  # linux/mount.h, all machines
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_READ, PR_CAPBSET_DROP = 1, 4, 23, 24  # linux/prctl.h
PR_SET_SECCOMP, PR_SET_SECUREBITS, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 22, 28, 36, 38
SECCOMP_MODE_FILTER = 2
AUDIT_MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The number of each machine whose system calls can be filtered (linux/audit.h)."""
FOREIGN_SYSTEM_CALLS = 0x4000_0000
"""Call numbers from here on belong to other ABIs of the same machine, such as x32."""
LOAD, EQUAL, BEYOND, HAS, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # linux/bpf_common.h
ALLOW, ERRNO = 0x7FFF_0000, 0x0005_0000  # linux/seccomp.h

type FilterStep = tuple[int, int, int, int]
"""A struct sock_filter: code, jump if true, jump if false, operand."""

libc = ctypes.CDLL(None, use_errno=True)


def call_libc(name: str, *arguments: object, path: str | None = None) -> None:
    """Call a C library function that returns 0 on success; an OSError names `path`."""
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)


def call_prctl(option: int, *values: int) -> None:
    """Call prctl(2) for this process."""
    call_libc("prctl", option, *(ctypes.c_ulong(each) for each in (*values, 0, 0, 0, 0)[:4]))


def set_process_option(option: int, value: int) -> None:
    """Call prctl(2) if this is Linux; a refusal has no effect."""
    if sys.platform == "linux":
        libc.prctl(option, *(ctypes.c_ulong(each) for each in (value, 0, 0, 0)))


def mount_path(
    source: str | None, target: str, kind: str | None, flags: int, data: str = ""
) -> None:
    """Call mount(2)."""
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    call_libc("mount", *encoded, ctypes.c_ulong(flags), os.fsencode(data) or None, path=target)


def set_read_only(path: str, *, on: bool = True, deep: bool = False) -> None:
    """Set whether a mount, and with `deep` those below it, is read-only; from Linux 5.12 on."""
    attributes = struct.pack("=QQQQ", on, not on, 0, 0)  # struct mount_attr
    where = AT_FDCWD, os.fsencode(path), AT_RECURSIVE if deep else 0
    size = ctypes.c_size_t(len(attributes))
    call_libc("syscall", SYS_MOUNT_SETATTR, *where, attributes, size, path=path)


def enter_namespaces(flags: int) -> bool:
    """Enter new namespaces; return whether one is a user namespace, which any other user needs."""
    uid, gid = os.getuid(), os.getgid()
    try:
        os.unshare(flags)
        return False
    except PermissionError:
        os.unshare(flags | os.CLONE_NEWUSER)
    maps = {"setgroups": "deny", "uid_map": f"{uid} {uid} 1", "gid_map": f"{gid} {gid} 1"}
    for name, text in maps.items():
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
            file.write(text)
    return True


def build_seccomp_filter(
    machine: str, refused: list[tuple[tuple[int, ...], int]], foreign: int
) -> list[FilterStep]:
    """Return the beginning of a filter for seccomp(2), which ends in ALLOW or further checks.

    `refused` are call numbers, each group with the error that they fail with; `foreign` is that of
    calls of other architectures and ABIs, such as 32-bit programs'. Struct seccomp_data begins with
    the call number and the architecture; its arguments start at offset 16.
    """
    if machine not in AUDIT_MACHINES:
        raise OSError(errno.ENOSYS, f"system calls of {machine} cannot be filtered")
    steps = [
        (LOAD, 0, 0, 4),
        (EQUAL, 1, 0, AUDIT_MACHINES[machine]),
        (RETURN, 0, 0, ERRNO | foreign),
        (LOAD, 0, 0, 0),
        (BEYOND, 0, 1, FOREIGN_SYSTEM_CALLS),
        (RETURN, 0, 0, ERRNO | foreign),
    ]
    for numbers, error in refused:
        for number in numbers:
            steps += [(EQUAL, 0, 1, number), (RETURN, 0, 0, ERRNO | error)]
    return steps


def install_seccomp_filter(steps: list[FilterStep]) -> None:
    """Filter the system calls of this process and of all that it starts, for good."""
    call_prctl(PR_SET_NO_NEW_PRIVS, 1)
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(code)))
    call_prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(program))


def reap_children(flags: int = 0) -> tuple[list[tuple[int, int]], bool]:
    """Return PID and wait status of the children that have ended, and whether any is left."""
    ended: list[tuple[int, int]] = []
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG | flags)
        except ChildProcessError:
            return ended, False
        if pid == 0:
            return ended, True
        ended.append((pid, status))


def list_descendants() -> list[int]:
    """List the PIDs of all descendants from /proc, parents first; empty without a /proc."""
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


def become_program(program: str, command: list[str]) -> None:
    """Become the program, or exit with code 126 or 127, and a line, if it cannot be executed.

    A script without a first line is one of sh, as for execvp (POSIX).
    """
    try:
        try:
            os.execv(program, command)
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            os.execv("/bin/sh", ["sh", program, *command[1:]])
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


def exit_as_child(code: int) -> None:
    """Exit with this code, or by signal n for -n, without a second core dump."""
    if code >= 0:
        sys.exit(code)
    set_process_option(PR_SET_DUMPABLE, 0)
    if -code not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
