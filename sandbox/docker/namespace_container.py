"""A container without a network whose namespaces the agent's containers share.

Its network namespace has only loopback, and on it the egress proxy's socket. The container reads
its standard input from this process: if this process is killed, it ends, and because it is the
first process of the shared PID namespace, so do all processes in the agent's containers.

Creating a socket in there needs CAP_SYS_ADMIN on the engine's machine. Without it, a small program
in the container listens and forwards to a Unix socket, on which a reset becomes an ordinary end.
"""

import os
import socket
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox.docker import engine
from sandbox.docker.mount_paths import make_bind_mount

if TYPE_CHECKING:
    from docker import APIClient
    from docker.types import Mount

EGRESS_PORT = 3128
"""The proxy's port inside, always the same, so that environments are equal in every run."""
READY = 30.0
NOBODY = "65534:65534"
BRIDGE_LIMITATION = (
    "a reset by the far side comes to the agent as an end (no right to enter its network)"
)
INIT_SCRIPT = 'exec 3<&0; "$@" <&3 & wait $!'
"""The first process: it reaps orphans, and ends when its command does."""
BRIDGE_SCRIPT = """
import os, socket, sys, threading
def copy(a, b):
    try:
        while data := a.recv(65536): b.sendall(data)
    except OSError: pass
    finally:
        try: b.shutdown(socket.SHUT_WR)
        except OSError: pass
def serve(client):
    with client, socket.socket(socket.AF_UNIX) as far:
        far.connect("/relay/socket")
        back = threading.Thread(target=copy, args=(far, client))
        back.start(); copy(client, far); back.join()
def listen():
    with socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=512) as here:
        print("ready", flush=True)
        while True: threading.Thread(target=serve, args=(here.accept()[0],), daemon=True).start()
threading.Thread(target=listen, daemon=True).start()
sys.stdin.read(); os._exit(0)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceContainer:
    """A running container, and the socket listening in it."""

    id: str
    listening: socket.socket
    weaker: tuple[str, ...] = ()


@contextmanager
def run_namespace_container(
    client: "APIClient", image: str, mounts: Sequence["Mount"], *, bridge: bool = False
) -> Iterator[NamespaceContainer]:
    """Run such a container; with a bridge if requested, or if there is no other way."""
    with ExitStack() as stack:
        if not bridge:
            id, _ = stack.enter_context(_run_container(client, image, ("cat",), mounts))
            if (listener := _listen_in_network(client, id)) is not None:
                yield NamespaceContainer(id=id, listening=stack.enter_context(listener))
                return
            stack.close()
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stumble-")))
        listening = stack.enter_context(_listen_on_unix_socket(folder / "relay"))
        relay = make_bind_mount(folder / "relay", "/relay", writable=True)
        command = ("python3", "-c", BRIDGE_SCRIPT, str(EGRESS_PORT))
        id, output = stack.enter_context(_run_container(client, image, command, (*mounts, relay)))
        output.settimeout(READY)
        if b"ready" not in output.recv(64):
            raise ChildProcessError(f"{image}: its python3 does not work, which the relay needs")
        yield NamespaceContainer(id=id, listening=listening, weaker=(BRIDGE_LIMITATION,))


@contextmanager
def _run_container(
    client: "APIClient", image: str, command: Sequence[str], mounts: Sequence["Mount"]
) -> Iterator[tuple[str, socket.socket]]:
    from docker.types import LogConfig

    config = client.create_host_config(
        network_mode="none",
        mounts=list(mounts),
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        mem_limit="64m",
        pids_limit=1024,  # a bridge has one or two threads per connection
        log_config=LogConfig(type="none"),
    )
    container = client.create_container(
        image,
        command=["sh", "-c", INIT_SCRIPT, "sh", *command],
        user=NOBODY,
        stdin_open=True,
        host_config=config,
        labels=engine.make_owner_label(),
        use_config_proxy=False,
    )
    try:
        with engine.attach_streams(client, container["Id"]) as stream:
            client.start(container["Id"])
            yield container["Id"], stream
    finally:
        engine.remove_container(client, container["Id"])


def _listen_on_unix_socket(folder: Path) -> socket.socket:
    """Listen on a socket for any user who sees `folder`, which is in a private folder."""
    folder.mkdir(mode=0o755)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "socket"))
    (folder / "socket").chmod(0o666)
    return listener


def _listen_in_network(client: "APIClient", id: str) -> socket.socket | None:
    """Return a socket listening in a container's network; None if that cannot be entered."""
    pid = client.inspect_container(id)["State"]["Pid"]
    sockets: list[socket.socket] = []

    def enter() -> None:
        try:
            if id not in Path(f"/proc/{pid}/cgroup").read_text():
                return  # the engine runs in another PID namespace
            with Path(f"/proc/{pid}/ns/net").open() as namespace:
                os.setns(namespace.fileno(), os.CLONE_NEWNET)
            sockets.append(socket.create_server(("127.0.0.1", EGRESS_PORT), backlog=512))
        except OSError:
            return

    # A separate thread, because setns affects only the calling thread and cannot be undone.
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return sockets[0] if sockets else None
