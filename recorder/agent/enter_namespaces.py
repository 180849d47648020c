"""Enter namespaces, then execute a command: `python -I -S enter_namespaces.py ORDER COMMAND...`.

ORDER is JSON; every key is optional:

    channel   number of a unix socket; gets `{}` with the sockets below, or `{"lacks": reason}`
    ports     enter a network namespace: these ports of 127.0.0.1 listen there for the holder
              of the channel; everything sent elsewhere is observed and refused
    cover     [COPY, PATH]: mount the folder COPY at PATH, which need not exist
    through   [[NAME, LAYER or null], ...]: in COPY, NAME shows PATH/NAME; writes to a folder
              go to LAYER, without a LAYER it is read-only
    shown     [[FOLDER, PATH], ...]: mount FOLDER at each PATH, directly under /; PATH need
              not exist
    outside   {"folders": [[PATH, LAYER], ...], "kept": [PATH, ...]}: writes below each PATH go to
              its LAYER, except below a kept PATH (`outside_mounts.py`); "required": no other way
    scratch   {"folders": [[PATH, FOLDER], ...], "kept": [PATH, ...]}: PATH shows the new FOLDER,
              and in it each kept PATH
    devices   [PATH, ...]: /dev is one of the command's own, with these paths of the real one
    cwd       working directory of the command
    processes run the command in PID and user namespaces (`pid_namespace.py`); the processes it
              leaves have `grace` seconds after SIGTERM
    limits    {"limits": [MEMORY, PROCESSES, DISK], "folders": [FOLDER, ...]}: with processes, the
              most that they may use (`run_limits.py`), and where their files are

The network namespace has loopback and one more address, 198.51.100.1 (RFC 5737). Its default route
is loopback too, where packets to outside addresses are captured and dropped: a packet socket can
report their targets, which no packet counter does. IPv6 rejects such a route itself, with a message
that is captured as well.

A user other than root gets a user namespace with the same uid; the command has no privileges over
it. All mounts and sockets disappear with the last process inside.

Standard library only, with few imports: every run waits for this to start.
"""

import json
import os
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from functools import partial

if __name__ == "__main__":  # a script does not find our packages
    sys.path.insert(0, os.path.abspath(f"{__file__}/../../.."))  # noqa: PTH100

from sandbox.kernel import (  # noqa: E402
    MNT_DETACH,
    MS_BIND,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
    become_program,
    call_libc,
    enter_namespaces,
    exit_as_child,
    mount_path,
)

OLD_ROOT = "/.old"
RTM_NEWLINK, RTM_NEWADDR, RTM_NEWROUTE = 16, 20, 24  # linux/rtnetlink.h
NLM_REQUEST_ACK, NLM_CREATE = 0x5, 0x400
RT_TABLE_MAIN, RTPROT_STATIC, RT_SCOPE_LINK, RTN_UNICAST = 254, 4, 253, 1
NO_DAD = 2
ETH_P_ALL = 3
NAMESPACE_ADDRESSES = {socket.AF_INET: "198.51.100.1", socket.AF_INET6: "2001:db8::1"}
NAME_SERVER_SOCKETS = ("/run/systemd/resolve", "/run/nscd", "/var/run/nscd")
"""Folders of name servers' sockets: unix sockets bypass a network namespace."""


def set_up_network() -> None:
    """Set up loopback, a private address, and a default route that ends inside the namespace."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        link.bind((0, 0))
        lo, up = socket.if_nametoindex("lo"), 1
        send_rtnetlink_request(link, RTM_NEWLINK, 0, struct.pack("=BxHiII", 0, 0, lo, up, up))
        for family, text in NAMESPACE_ADDRESSES.items():
            address = socket.inet_pton(family, text)
            bits, flags = len(address) * 8, NO_DAD if family == socket.AF_INET6 else 0
            addresses = pack_rtnetlink_attribute(1, address) + pack_rtnetlink_attribute(
                2, address
            )  # IFA_ADDRESS, IFA_LOCAL
            scope = RT_SCOPE_LINK if family == socket.AF_INET else 0
            route = (family, 0, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, scope, RTN_UNICAST, 0)
            interface = pack_rtnetlink_attribute(4, struct.pack("=I", lo))  # RTA_OIF
            try:
                payload = struct.pack("=BBBBI", family, bits, flags, 0, lo) + addresses
                send_rtnetlink_request(link, RTM_NEWADDR, NLM_CREATE, payload)
                send_rtnetlink_request(
                    link, RTM_NEWROUTE, NLM_CREATE, struct.pack("=BBBBBBBBI", *route) + interface
                )
            except OSError:
                if family == socket.AF_INET:  # IPv6 may be disabled
                    raise


def allow_low_ports_and_ping() -> None:
    """Allow unprivileged users of this network to bind low ports and to ping, as root can."""
    for name, text in (("ip_unprivileged_port_start", "0"), ("ping_group_range", "0 2147483647")):
        try:
            with open(f"/proc/sys/net/ipv4/{name}", "w") as file:  # noqa: PTH123
                file.write(text)
        except OSError:  # read-only, as in containers: both fail there, as they do outside
            continue


def send_rtnetlink_request(link: socket.socket, kind: int, flags: int, body: bytes) -> None:
    """Send one rtnetlink request. Raises OSError if the kernel rejects it."""
    link.send(struct.pack("=IHHII", 16 + len(body), kind, NLM_REQUEST_ACK | flags, 1, 0) + body)
    (error,) = struct.unpack_from("=i", link.recv(4096), 16)
    if error:
        raise OSError(-error, os.strerror(-error))


def pack_rtnetlink_attribute(kind: int, data: bytes) -> bytes:
    """Pack one attribute of an rtnetlink request."""
    return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def open_namespace_sockets(ports: list[int]) -> list[socket.socket]:
    """Open the listening sockets, the packet socket and raw ICMP sockets (IPv6 if available)."""
    sockets = [socket.create_server(("127.0.0.1", port), backlog=1024) for port in ports]
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
    packets.bind(("lo", ETH_P_ALL))
    sockets += [packets, socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)]
    try:
        ipv6 = socket.IPPROTO_ICMPV6
        sockets.append(socket.socket(socket.AF_INET6, socket.SOCK_RAW, ipv6))
    except OSError:
        return sockets
    return sockets


def mount_entries_into_copy(copy: str, path: str, through: list[tuple[str, str | None]]) -> None:
    """Mount the `through` entries of the folder `path` into `copy`."""
    for name, layer in through:
        source, target = f"{path}/{name}", f"{copy}/{name}"
        if layer is None or not mount_overlay(source, target, layer):
            mount_path(source, target, None, MS_BIND | MS_REC)
            remount_read_only(target)


def cover_path_with_copy(copy: str, path: str) -> None:
    """Mount the folder `copy` at `path`."""
    if not os.path.isdir(path):  # noqa: PTH112
        make_mount_point(path)
    mount_path(copy, path, None, MS_BIND | MS_REC)


def make_mount_point(path: str) -> None:
    """Show a new folder at `path`, in here only; what is beside it stays as it is.

    The nearest folder above that exists is covered by one with the same entries.
    """
    above = os.path.dirname(path)  # noqa: PTH120
    while not os.path.isdir(above):  # noqa: PTH112
        above = os.path.dirname(above)  # noqa: PTH120
    if above == "/":
        pivot_to_shown_folders([])
    else:
        cover_with_same_entries(above)
    os.makedirs(path)  # noqa: PTH103


def cover_with_same_entries(folder: str) -> None:
    """Cover a folder by an empty one, into which all its entries are mounted."""
    before = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    original = f"/proc/self/fd/{before}"
    try:
        names = os.listdir(original)  # noqa: PTH208
    except PermissionError:  # nor could the agent list or use them
        names = []
    mount_path("none", folder, "tmpfs", 0, "size=64m,mode=755")
    for name in names:
        source, target = f"{original}/{name}", f"{folder}/{name}"
        if os.path.islink(source):  # noqa: PTH114
            os.symlink(os.readlink(source), target)  # noqa: PTH115, PTH211
            continue
        if os.path.isdir(source):  # noqa: PTH112
            os.mkdir(target)  # noqa: PTH102
        else:
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
        try:
            mount_path(source, target, None, MS_BIND | MS_REC)
        except OSError:  # it has gone meanwhile
            continue
    os.close(before)


def mount_overlay(source: str, target: str, layer: str) -> bool:
    """Mount an overlay of `source` at `target`, with writes going to `layer`; False if it fails."""
    if any(mark in source + layer for mark in ":,\\"):
        return False
    if not os.path.isdir(f"{layer}/up"):  # noqa: PTH112
        make_upper_folder(source, layer)
    work = f"{layer}/aside-{os.getpid()}"  # each mount has its own
    os.makedirs(work, exist_ok=True)  # noqa: PTH103
    layers = f"lowerdir={source},upperdir={layer}/up,workdir={work}"
    variants = (f"{layers},redirect_dir=on", layers)
    if not owns_first_user_namespace():  # the kernel mounts those too, and fails later
        variants = (f"{layers},userxattr", layers)
    for options in variants:
        try:
            mount_path("overlay", target, "overlay", 0, options)
        except OSError:
            continue
        return True
    return False


def owns_first_user_namespace() -> bool:
    """Return whether this process may set attributes of the `trusted` class; see xattr(7)."""
    with open("/proc/self/uid_map") as file:  # noqa: PTH123
        return os.geteuid() == 0 and file.read().split() == ["0", "0", "4294967295"]


def make_upper_folder(source: str, layer: str) -> None:
    """Make the folder for an overlay's writes, with the attributes of `source`: they are shown."""
    status = os.stat(source)  # noqa: PTH116
    os.makedirs(layer, exist_ok=True)  # noqa: PTH103
    os.mkdir(f"{layer}/up")  # noqa: PTH102
    if os.geteuid() == 0:
        os.chown(f"{layer}/up", status.st_uid, status.st_gid)
    os.chmod(f"{layer}/up", status.st_mode & 0o7777)  # noqa: PTH101
    os.utime(f"{layer}/up", ns=(status.st_atime_ns, status.st_mtime_ns))


def remount_read_only(target: str) -> None:
    """Remount a bind mount read-only, with the other flags that a user namespace must keep."""
    flags = os.statvfs(target).f_flag & (os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC | os.ST_NOATIME)
    mount_path(None, target, None, MS_BIND | MS_REMOUNT | MS_RDONLY | flags)


def pivot_to_shown_folders(shown: list[tuple[str, str]]) -> None:
    """Pivot to a new / with these folders and the entries of the old one; unmount the old one."""
    mount_path("none", "/tmp", "tmpfs", 0, "size=16m,mode=755")  # noqa: S108
    os.mkdir(f"/tmp{OLD_ROOT}")  # noqa: PTH102, S108
    call_libc("pivot_root", b"/tmp", os.fsencode(f"/tmp{OLD_ROOT}"), path="/")  # noqa: S108
    os.chdir("/")
    folders = {path: OLD_ROOT + folder for folder, path in shown}
    for name in os.listdir(OLD_ROOT):  # noqa: PTH208
        source, target = f"{OLD_ROOT}/{name}", f"/{name}"
        if target in folders:
            continue
        if os.path.islink(source):  # noqa: PTH114
            os.symlink(os.readlink(source), target)  # noqa: PTH115, PTH211
        elif os.path.isdir(source):  # noqa: PTH112
            os.mkdir(target)  # noqa: PTH102
            mount_path(source, target, None, MS_BIND | MS_REC)
    for path, folder in folders.items():
        os.mkdir(path)  # noqa: PTH102
        mount_path(folder, path, None, MS_BIND | MS_REC)
    call_libc("umount2", os.fsencode(OLD_ROOT), MNT_DETACH, path=OLD_ROOT)
    os.rmdir(OLD_ROOT)  # noqa: PTH106


def build_namespaces(
    order: dict[str, object],
    divert_outside_writes: Callable[[], None] | None = None,
    replacements: Sequence[Callable[[], None]] = (),
) -> list[socket.socket]:
    """Enter and set up the ordered namespaces; return the sockets for the holder of the channel."""
    ports, cover, through = order.get("ports"), order.get("cover"), order.get("through", [])
    enter_namespaces(
        os.CLONE_NEWNS
        | (os.CLONE_NEWNET if ports else 0)
        | (os.CLONE_NEWIPC if order.get("processes") else 0)
    )
    mount_path(None, "/", None, MS_REC | MS_PRIVATE)
    sockets: list[socket.socket] = []
    if ports and isinstance(ports, list):
        set_up_network()
        if order.get("processes") and os.geteuid() == 0:
            allow_low_ports_and_ping()
        sockets = open_namespace_sockets(ports)
        for folder in filter(os.path.isdir, NAME_SERVER_SOCKETS):
            mount_path("none", folder, "tmpfs", 0, "size=4k")
    if isinstance(cover, list) and isinstance(through, list):
        mount_entries_into_copy(cover[0], cover[1], through)
    if divert_outside_writes:
        divert_outside_writes()
    if isinstance(cover, list):
        cover_path_with_copy(cover[0], cover[1])
    if isinstance(shown := order.get("shown"), list):
        pivot_to_shown_folders(shown)
    for replace in replacements:
        replace()
    return sockets


def main() -> None:
    """Set up the namespaces and execute the command; report a failure and exit with code 126."""
    order, command = json.loads(sys.argv[1]), sys.argv[2:]
    channel = order.get("channel")
    reply = socket.socket(fileno=channel) if channel is not None else None
    sockets_inside: list[socket.socket] = []

    # Imported now: a user namespace may not be able to read the files.
    watch = None
    if order.get("processes"):
        from recorder.agent.pid_namespace import run_agent_in_pid_namespace
        from recorder.agent.run_limits import LimitWatch, RunLimits

        if limits := order.get("limits"):
            watch = LimitWatch(RunLimits(*limits["limits"]), limits["folders"])
    divert, replacements = None, list[Callable[[], None]]()
    if outside := order.get("outside"):
        from recorder.agent.outside_mounts import divert_outside_writes

        divert = partial(divert_outside_writes, **outside)
    shown_in = [*(order.get("cover") or [])[1:], order.get("cwd") or ""]
    if scratch := order.get("scratch"):
        from recorder.agent.outside_mounts import replace_scratch

        replacements.append(partial(replace_scratch, scratch["folders"], scratch["kept"]))
    if (devices := order.get("devices")) is not None:
        from recorder.agent.outside_mounts import replace_devices

        kept = [*devices, *(path for path in shown_in if path.startswith("/dev/"))]
        replacements.append(partial(replace_devices, kept))

    def ready() -> None:
        if reply:
            socket.send_fds(reply, [b"{}"], [each.fileno() for each in sockets_inside])
            reply.close()
        for each in sockets_inside:
            each.close()

    try:
        sockets_inside += build_namespaces(order, divert, replacements)
        if cwd := order.get("cwd"):
            os.chdir(cwd)
        if order.get("processes"):
            sockets = tuple(
                each.fileno() for each in (*sockets_inside, *([reply] if reply else []))
            )
            program, arguments = (command[0], command[1:]) if command else (None, [])
            grace = float(order.get("grace", 0))
            exit_as_child(
                run_agent_in_pid_namespace(program, arguments, grace, ready, sockets, watch)
            )
    except OSError as error:
        location = f" ({error.filename})" if error.filename else ""
        if reply:
            reply.send(json.dumps({"lacks": f"{error.strerror}{location}"}).encode())
        else:
            os.write(2, f"stumble: not shut in: {error.strerror}{location}\n".encode())
        sys.exit(126)
    ready()
    if command:
        become_program(command[0], command[1:])


if __name__ == "__main__":
    main()
