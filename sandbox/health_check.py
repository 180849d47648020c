"""Check whether this machine can sandbox agents, by sandboxing a probe."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sandbox.docker import engine
from sandbox.docker.docker_sandbox import open_docker_sandbox
from sandbox.egress.egress_check import try_egress_routes
from sandbox.process_sandbox import find_missing_protections
from sandbox.types import SandboxSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthCheckLine:
    """The result of one check, and what to do if it failed."""

    ok: bool | None
    """None if it is not there and not needed."""
    what: str
    next: str = ""


async def check_docker_sandbox(image: str) -> tuple[HealthCheckLine, ...]:
    """Check the docker engine, and the isolation of a sandbox of this image."""
    lines: list[HealthCheckLine] = []
    try:
        lines += check_docker_engine()
        with tempfile.TemporaryDirectory(prefix="stumble-") as name:
            workspace = Path(name).resolve()
            async with open_docker_sandbox(
                SandboxSpec(workspace=workspace, env={}), image=image
            ) as sandbox:
                lines.append(
                    HealthCheckLine(ok=True, what=f"image {image}: a container of it starts")
                )
                lines += [HealthCheckLine(ok=True, what=f"but {lack}") for lack in sandbox.weaker]
                for route in await try_egress_routes(sandbox, workspace):
                    is_blocked = route.why is not None
                    what = f"{route.name} is {'not ' if is_blocked else ''}reached from inside"
                    advice = "" if is_blocked else "do not run agents here that nobody trusts"
                    lines.append(
                        HealthCheckLine(
                            ok=is_blocked,
                            what=f"{what}{f' ({route.why})' * is_blocked}",
                            next=advice,
                        )
                    )
    except ChildProcessError as error:
        lines.append(HealthCheckLine(ok=False, what=str(error)))
        lines += [
            HealthCheckLine(ok=True, what=f"processes instead: {lack}")
            for lack in await find_missing_protections()
        ]
    return tuple(lines)


def check_docker_engine() -> Iterator[HealthCheckLine]:
    """Describe the engine and its limits. Raises ChildProcessError if none answers."""
    with engine.open_docker_engine() as client:
        info = client.info()
    version, driver = info["ServerVersion"], info["Driver"]
    advice = "" if driver != "vfs" else "vfs copies an image for each container; overlay2 does not"
    yield HealthCheckLine(
        ok=True, what=f"docker engine {version} answers (images by {driver})", next=advice
    )
    lacking = engine.find_unlimited_resources(info)
    message = f"cgroup v{info.get('CgroupVersion', '1')}: "
    if lacking:
        advice_for_limits = "mount these cgroup controllers and start the engine again"
        yield HealthCheckLine(
            ok=False, what=f"{message}no limit of {', '.join(lacking)}", next=advice_for_limits
        )
    else:
        yield HealthCheckLine(
            ok=True, what=f"{message}memory, processor time and processes are limited"
        )
