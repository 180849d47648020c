"""A container without a network that holds the namespaces in which the agent's containers run.

In its network namespace there is nothing but loopback, and on it a socket of ours. It reads its
standard input, which is ours as well: when we are killed it ends, and with it, since its process
is the first one of their process namespace, all that ran in its containers.

Making a socket in there needs CAP_SYS_ADMIN on the machine of the engine. Where we lack it a
small program in the container listens and passes on to a Unix socket, on which a reset is an end.
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

from scenarios.sandbox import engine
from scenarios.sandbox.places import bind

if TYPE_CHECKING:
    from docker import APIClient
    from docker.types import Mount

PORT = 3128
"""Where the relay listens inside, always; so that an environment is the same in every run."""
READY = 30.0
NOBODY = "65534:65534"
BRIDGED = "a reset by the far side comes to the agent as an end (no right to enter its network)"
FIRST = 'exec 3<&0; "$@" <&3 & wait $!'
"""The first process there: it reaps what others leave, and ends when its command does."""
BRIDGE = """
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
class Holder:
    """A container that runs, and who listens in it."""

    id: str
    listening: socket.socket
    weaker: tuple[str, ...] = ()


@contextmanager
def held(
    client: "APIClient", image: str, mounts: Sequence["Mount"], *, bridge: bool = False
) -> Iterator[Holder]:
    """A holder of this image; by a bridge where the other way is not wanted, or not to be had."""
    with ExitStack() as stack:
        if not bridge:
            id, _ = stack.enter_context(_started(client, image, ("cat",), mounts))
            if (inside := _entered(client, id)) is not None:
                yield Holder(id=id, listening=stack.enter_context(inside))
                return
            stack.close()
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="stumble-")))
        listening = stack.enter_context(_unix(folder / "relay"))
        relay = bind(folder / "relay", "/relay", writable=True)
        command = ("python3", "-c", BRIDGE, str(PORT))
        id, said = stack.enter_context(_started(client, image, command, (*mounts, relay)))
        said.settimeout(READY)
        if b"ready" not in said.recv(64):
            raise ChildProcessError(f"{image}: its python3 does not work, which the relay needs")
        yield Holder(id=id, listening=listening, weaker=(BRIDGED,))


@contextmanager
def _started(
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
        pids_limit=1024,  # a bridge has a thread or two per connection
        log_config=LogConfig(type="none"),
    )
    made = client.create_container(
        image,
        command=["sh", "-c", FIRST, "sh", *command],
        user=NOBODY,
        stdin_open=True,
        host_config=config,
        labels=engine.owner(),
        use_config_proxy=False,
    )
    try:
        with engine.attached(client, made["Id"]) as stream:
            client.start(made["Id"])
            yield made["Id"], stream
    finally:
        engine.remove(client, made["Id"])


def _unix(folder: Path) -> socket.socket:
    """A socket that any user reaches who sees this folder, which lies in one that is ours alone."""
    folder.mkdir(mode=0o755)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(folder / "socket"))
    (folder / "socket").chmod(0o666)
    return listening


def _entered(client: "APIClient", id: str) -> socket.socket | None:
    """A socket that listens in the network of a container; None where we cannot enter it."""
    pid = client.inspect_container(id)["State"]["Pid"]
    made: list[socket.socket] = []

    def enter() -> None:
        try:
            if id not in Path(f"/proc/{pid}/cgroup").read_text():
                return  # the engine has other processes than we
            with Path(f"/proc/{pid}/ns/net").open() as namespace:
                os.setns(namespace.fileno(), os.CLONE_NEWNET)
            made.append(socket.create_server(("127.0.0.1", PORT), backlog=512))
        except OSError:
            return

    # A thread of its own, since it cannot be led back, and only it is led there.
    entering = threading.Thread(target=enter)
    entering.start()
    entering.join()
    return made[0] if made else None
