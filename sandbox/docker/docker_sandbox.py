"""The docker sandbox: each command in its own container, all in one set of namespaces."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sandbox.disk_usage import exceeds_disk_limit
from sandbox.docker import engine, images
from sandbox.docker.mount_paths import find_engine_path, make_bind_mount
from sandbox.docker.namespace_container import EGRESS_PORT, run_namespace_container
from sandbox.docker.stream_copy import StreamCopy
from sandbox.egress.allowlist import EgressAllowlist
from sandbox.egress.egress_proxy import EgressProxy
from sandbox.file_ownership import restore_ownership, transfer_ownership
from sandbox.sandbox_env import find_env_files, find_proxy_address, with_proxy
from sandbox.types import HOME, EndReason, SandboxKind, SandboxMount, SandboxResult, SandboxSpec

if TYPE_CHECKING:
    from docker import APIClient
    from docker.types import HostConfig
    from docker.types import Mount as Bound

GRACE = 2
"""Seconds between SIGTERM and SIGKILL."""
DISK_CHECK_INTERVAL = 1.0
"""Seconds between two checks of the workspace's size."""


@asynccontextmanager
async def open_docker_sandbox(
    order: SandboxSpec, *, image: str = images.DEFAULT_IMAGE, bridge: bool = False
) -> AsyncIterator["DockerSandbox"]:
    """Open a sandbox of this image. Raises ChildProcessError, with one line, if that fails."""
    with ExitStack() as stack:
        client = stack.enter_context(engine.open_docker_engine())
        await asyncio.to_thread(engine.remove_orphan_containers, client)
        image_mounts = images.find_image_mounts(client, image)
        container = run_namespace_container(client, image, image_mounts, bridge=bridge)
        holder = await asyncio.to_thread(stack.enter_context, container)
        relay = EgressProxy(EgressAllowlist(order.allow), find_proxy_address(order.env))
        await relay.serve(holder.listening)
        try:
            yield DockerSandbox(
                order=order,
                relay=relay,
                weaker=(*holder.weaker, *_describe_missing_limits(client)),
                _client=client,
                _image=image,
                _holder=holder.id,
                _mounts=(*image_mounts, *_make_bind_mounts(order)),
            )
        finally:
            await relay.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerSandbox:
    """An open docker sandbox."""

    order: SandboxSpec
    relay: EgressProxy
    weaker: tuple[str, ...]
    isolation: SandboxKind = "docker"
    _client: "APIClient"
    _image: str
    _holder: str
    _mounts: tuple["Bound", ...]

    @property
    def refused(self) -> Mapping[str, int]:
        """Count of refused connections, by `host:port: reason`."""
        return self.relay.refused

    async def run(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        budget: float | None = None,
        stdin: int | None = None,
        stdout: int = 1,
        stderr: int = 2,
    ) -> SandboxResult:
        """Run a command to its end; see `Sandbox.run`."""
        id = await self._create_container(
            command, cwd or self.order.workspace, env or {}, stdin is not None
        )
        try:
            with engine.attach_streams(self._client, id) as stream:
                if (start_error := await asyncio.to_thread(self._start_container, id)) is not None:
                    return SandboxResult(exit=start_error, ended="exit")
                limit = self.order.bounds.output
                streams = StreamCopy(
                    stream=stream, stdin=stdin, stdout=stdout, stderr=stderr, limit=limit
                )
                copying = asyncio.create_task(asyncio.to_thread(streams.run))
                try:
                    ended = await self._wait_for_end(id, budget)
                finally:
                    await _finish_despite_cancel(
                        asyncio.to_thread(self._client.stop, id, timeout=GRACE)
                    )
                await copying
            return await asyncio.to_thread(self._read_result, id, ended, streams.dropped)
        finally:
            await _finish_despite_cancel(
                asyncio.to_thread(engine.remove_container, self._client, id)
            )
            await _finish_despite_cancel(asyncio.to_thread(restore_ownership, self.order))

    async def _wait_for_end(self, id: str, budget: float | None) -> EndReason:
        """Wait until the command ends or must be ended; return why."""
        waiting = asyncio.create_task(asyncio.to_thread(self._client.wait, id, timeout=None))
        loop = asyncio.get_running_loop()
        until = None if budget is None else loop.time() + budget
        while not waiting.done():
            pause = (
                DISK_CHECK_INTERVAL
                if until is None
                else min(DISK_CHECK_INTERVAL, until - loop.time())
            )
            await asyncio.wait((waiting,), timeout=max(0.0, pause))
            if waiting.done():
                break
            if until is not None and loop.time() >= until:
                return "time"
            if await asyncio.to_thread(
                exceeds_disk_limit, self.order.writable_paths, self.order.bounds.disk
            ):
                return "disk"
        waiting.result()
        return "exit"

    def _read_result(self, id: str, ended: EndReason, dropped: int) -> SandboxResult:
        state = self._client.inspect_container(id)["State"]
        code = int(state["ExitCode"])
        if ended == "exit" and code and state["OOMKilled"]:
            ended = "memory"
        return SandboxResult(exit=code, ended=ended, dropped=dropped)

    def _start_container(self, id: str) -> int | None:
        """Start the container; return 126 or 127 if the command cannot be executed, else None."""
        from docker.errors import APIError

        try:
            self._client.start(id)
        except APIError as error:
            message = str(error.explanation).lower()
            if "permission denied" in message:
                return 126
            if "not found" in message or "no such file" in message:
                return 127
            raise
        return None

    async def _create_container(
        self, command: Sequence[str], cwd: Path, env: Mapping[str, str], reads: bool
    ) -> str:
        relay = f"http://127.0.0.1:{EGRESS_PORT}"
        environment = {"HOME": HOME, **with_proxy(self.order.env, relay, self.order.allow), **env}
        user = await asyncio.to_thread(transfer_ownership, self.order)
        container = await asyncio.to_thread(
            self._client.create_container,
            self._image,
            command=list(command),
            user=f"{user}:{os.getgid() if user == os.getuid() else user}",
            working_dir=str(cwd),
            environment=environment,
            stdin_open=reads,
            host_config=self._make_host_config(user),
            labels=engine.make_owner_label(),
            use_config_proxy=False,
        )
        return str(container["Id"])

    def _make_host_config(self, user: int) -> "HostConfig":
        from docker.types import LogConfig, Ulimit

        bounds, namespace = self.order.bounds, f"container:{self._holder}"
        owner = f"uid={user}"
        scratch = f"rw,exec,nosuid,nodev,size={bounds.scratch}"
        home = {} if self.order.home else {HOME: f"{scratch},mode=700,{owner}"}
        hidden = dict.fromkeys(_find_hidden_targets(self.order.hidden, self._mounts), "ro,size=4k")
        return self._client.create_host_config(
            network_mode=namespace,
            pid_mode=namespace,
            mounts=list(self._mounts),
            tmpfs={"/tmp": f"{scratch},mode=1777", **home, **hidden},  # noqa: S108
            read_only=True,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            nano_cpus=int(bounds.cpus * 1e9),
            mem_limit=bounds.memory,
            memswap_limit=bounds.memory,
            pids_limit=bounds.processes,
            ulimits=[Ulimit(name="core", soft=0, hard=0)],
            log_config=LogConfig(type="none"),
        )


def _make_bind_mounts(order: SandboxSpec) -> tuple["Bound", ...]:
    """Return the mounts of the workspace, of the order, and of files the environment names."""
    mounts = {
        str(order.workspace): make_bind_mount(order.workspace, str(order.workspace), writable=True)
    }
    home = (SandboxMount(source=order.home, target=HOME, writable=True),) if order.home else ()
    for each in (*home, *order.mounts, *find_env_files(order.env)):
        mounts.setdefault(
            each.target, make_bind_mount(each.source, each.target, writable=each.writable)
        )
    return tuple(mounts.values())


def _find_hidden_targets(hidden: Sequence[str], mounts: Sequence["Bound"]) -> Iterator[str]:
    """Yield the paths in the container at which hidden folders would be visible."""
    for folder in (find_engine_path(Path(each)) for each in hidden if Path(each).is_dir()):
        for mount in mounts:
            if folder.is_relative_to(mount["Source"]):
                yield str(Path(mount["Target"]) / folder.relative_to(mount["Source"]))


def _describe_missing_limits(client: "APIClient") -> tuple[str, ...]:
    """Describe the limits that this engine cannot enforce."""
    resources = engine.find_unlimited_resources(client.info())
    return tuple(f"{what} is not limited by this engine" for what in resources)


async def _finish_despite_cancel[T](ending: Awaitable[T]) -> T:
    """Complete a cleanup even if this task is cancelled meanwhile."""
    return await asyncio.shield(ending)
