"""Shuts itself into namespaces and becomes a command: `python -I -S walls.py ORDER COMMAND...`.

ORDER is JSON, all of it optional:

    channel   a unix socket, by number, that gets `{}` with the sockets below, or `{"lacks": why}`
    ports     be alone in a network namespace: these ports of 127.0.0.1 listen there for whoever
              holds the channel, and whatever else is sent anywhere is seen and refused
    cover     [COPY, PATH]: PATH shows the folder COPY
    through   [[NAME, LAYER or null], ...]: in COPY, NAME shows what is at PATH/NAME; what is
              written to a folder goes to LAYER, without one it cannot be written to
    shown     [[FOLDER, PATH], ...]: each PATH, just under /, shows FOLDER, and need not be there
    cwd       where the command starts

The network namespace has loopback and an address of its own, 198.51.100.1 (RFC 5737). Its default
route is loopback too, where packets to strangers are seen and dropped: so a packet socket can
tell where they were meant to go, which no counter does. IPv6 refuses such a route by itself,
with a message that is seen there as well.

Who is not root gets a user namespace in which they are themselves; the command has no power over
it. Whatever is mounted or bound here is gone when the last process in here is.

Standard library only, and little of it, for every run waits for this to start.
"""

import ctypes
import json
import os
import socket
import struct
import sys

MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18  # sys/mount.h
MNT_DETACH = 2
OLD = "/.old"
RTM_NEWLINK, RTM_NEWADDR, RTM_NEWROUTE = 16, 20, 24  # linux/rtnetlink.h
NLM_REQUEST_ACK, NLM_CREATE = 0x5, 0x400
RT_TABLE_MAIN, RTPROT_STATIC, RT_SCOPE_LINK, RTN_UNICAST = 254, 4, 253, 1
NO_DAD = 2
ETH_P_ALL = 3
ADDRESSES = {socket.AF_INET: "198.51.100.1", socket.AF_INET6: "2001:db8::1"}
ASKED = ("/run/systemd/resolve", "/run/nscd", "/var/run/nscd")
"""Sockets of name servers lie here: a path leads out of a network namespace."""


def unshare(flags: int) -> None:
    """Enter new namespaces; OSError where the kernel does not let us."""
    uid, gid = os.getuid(), os.getgid()
    try:
        os.unshare(flags)
    except PermissionError:
        os.unshare(flags | os.CLONE_NEWUSER)
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{uid} {uid} 1"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123
                file.write(text)
    if flags & os.CLONE_NEWNS:
        mount(None, "/", None, MS_REC | MS_PRIVATE)


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """mount(2); OSError where it fails."""
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(*texts, ctypes.c_ulong(flags), os.fsencode(data) or None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


def network() -> None:
    """Loopback, an address that nobody else has, and a way out that ends in here."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        link.bind((0, 0))
        lo, up = socket.if_nametoindex("lo"), 1
        tell(link, RTM_NEWLINK, 0, struct.pack("=BxHiII", 0, 0, lo, up, up))
        for family, text in ADDRESSES.items():
            address = socket.inet_pton(family, text)
            bits, flags = len(address) * 8, NO_DAD if family == socket.AF_INET6 else 0
            named = attribute(1, address) + attribute(2, address)  # IFA_ADDRESS, IFA_LOCAL
            scope = RT_SCOPE_LINK if family == socket.AF_INET else 0
            way = (family, 0, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, scope, RTN_UNICAST, 0)
            out = attribute(4, struct.pack("=I", lo))  # RTA_OIF
            try:
                new = struct.pack("=BBBBI", family, bits, flags, 0, lo) + named
                tell(link, RTM_NEWADDR, NLM_CREATE, new)
                tell(link, RTM_NEWROUTE, NLM_CREATE, struct.pack("=BBBBBBBBI", *way) + out)
            except OSError:
                if family == socket.AF_INET:  # IPv6 may be switched off
                    raise


def tell(link: socket.socket, kind: int, flags: int, body: bytes) -> None:
    """One rtnetlink request; OSError where the kernel refuses it."""
    link.send(struct.pack("=IHHII", 16 + len(body), kind, NLM_REQUEST_ACK | flags, 1, 0) + body)
    (error,) = struct.unpack_from("=i", link.recv(4096), 16)
    if error:
        raise OSError(-error, os.strerror(-error))


def attribute(kind: int, data: bytes) -> bytes:
    """One attribute of an rtnetlink request."""
    return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def sockets(ports: list[int]) -> list[socket.socket]:
    """Who listens here, who sees what is sent, and who refuses it (IPv4, IPv6 if there is any)."""
    found = [socket.create_server(("127.0.0.1", port), backlog=1024) for port in ports]
    seen = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
    seen.bind(("lo", ETH_P_ALL))
    found += [seen, socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)]
    try:
        ipv6 = socket.IPPROTO_ICMPV6
        found.append(socket.socket(socket.AF_INET6, socket.SOCK_RAW, ipv6))
    except OSError:
        return found
    return found


def cover(copy: str, path: str, through: list[tuple[str, str | None]]) -> None:
    """Let `path` show the folder `copy`, and in it what is still only at `path`."""
    for name, layer in through:
        source, target = f"{path}/{name}", f"{copy}/{name}"
        if layer is None or not overlaid(source, target, layer):
            mount(source, target, None, MS_BIND | MS_REC)
            read_only(target)
    mount(copy, path, None, MS_BIND | MS_REC)


def overlaid(source: str, target: str, layer: str) -> bool:
    """Let `target` show `source` with what is written in `layer`; False where it cannot be had."""
    if any(mark in source + layer for mark in ":,\\"):
        return False
    if not os.path.isdir(f"{layer}/up"):  # noqa: PTH112
        os.makedirs(f"{layer}/aside")  # noqa: PTH103
        was = os.stat(source)  # noqa: PTH116
        os.mkdir(f"{layer}/up", was.st_mode & 0o7777)  # noqa: PTH102
        os.utime(f"{layer}/up", ns=(was.st_atime_ns, was.st_mtime_ns))
    layers = f"lowerdir={source},upperdir={layer}/up,workdir={layer}/aside"
    for options in (layers, f"{layers},userxattr"):
        try:
            mount("overlay", target, "overlay", 0, options)
        except OSError:
            continue
        return True
    return False


def read_only(target: str) -> None:
    """Make a bound folder or file read-only, and keep how it was mounted, as a user must."""
    kept = os.statvfs(target).f_flag & (os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC | os.ST_NOATIME)
    mount(None, target, None, MS_BIND | MS_REMOUNT | MS_RDONLY | kept)


def show(shown: list[tuple[str, str]]) -> None:
    """Take another /, that has all of this one and these folders besides, and forget this one."""
    mount("none", "/tmp", "tmpfs", 0, "size=16m,mode=755")  # noqa: S108
    os.mkdir(f"/tmp{OLD}")  # noqa: PTH102, S108
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.pivot_root(b"/tmp", os.fsencode(f"/tmp{OLD}")) != 0:  # noqa: S108
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "/")
    os.chdir("/")
    folders = {path: OLD + folder for folder, path in shown}
    for name in os.listdir(OLD):  # noqa: PTH208
        source, target = f"{OLD}/{name}", f"/{name}"
        if target in folders:
            continue
        if os.path.islink(source):  # noqa: PTH114
            os.symlink(os.readlink(source), target)  # noqa: PTH115, PTH211
        elif os.path.isdir(source):  # noqa: PTH112
            os.mkdir(target)  # noqa: PTH102
            mount(source, target, None, MS_BIND | MS_REC)
    for path, folder in folders.items():
        os.mkdir(path)  # noqa: PTH102
        mount(folder, path, None, MS_BIND | MS_REC)
    if libc.umount2(os.fsencode(OLD), MNT_DETACH) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), OLD)
    os.rmdir(OLD)  # noqa: PTH106


def build(order: dict[str, object]) -> list[socket.socket]:
    """Put up what is ordered; the sockets that belong to whoever holds the channel."""
    ports, covered, through = order.get("ports"), order.get("cover"), order.get("through", [])
    unshare(os.CLONE_NEWNS | (os.CLONE_NEWNET if ports else 0))
    made: list[socket.socket] = []
    if ports and isinstance(ports, list):
        network()
        made = sockets(ports)
        for folder in filter(os.path.isdir, ASKED):
            mount("none", folder, "tmpfs", 0, "size=4k")
    if isinstance(covered, list) and isinstance(through, list):
        cover(covered[0], covered[1], through)
    if isinstance(shown := order.get("shown"), list):
        show(shown)
    return made


def main() -> None:
    """Build and become the command; where either fails it is said, and the exit code is 126."""
    order, command = json.loads(sys.argv[1]), sys.argv[2:]
    channel = order.get("channel")
    told = socket.socket(fileno=channel) if channel is not None else None
    try:
        made = build(order)
        if cwd := order.get("cwd"):
            os.chdir(cwd)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        if told:
            told.send(json.dumps({"lacks": f"{error.strerror}{where}"}).encode())
        else:
            os.write(2, f"stumble: not shut in: {error.strerror}{where}\n".encode())
        sys.exit(126)
    if told:
        socket.send_fds(told, [b"{}"], [each.fileno() for each in made])
        told.close()
    for each in made:
        each.close()
    if not command:
        return
    program, *arguments = command
    try:
        os.execv(program, arguments)
    except OSError as error:
        os.write(2, f"{arguments[0]}: {error.strerror}\n".encode())
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


if __name__ == "__main__":
    main()
