"""Whether agents can be held on this machine, found out by holding one."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scenarios.sandbox import engine
from scenarios.sandbox.confined import lacking
from scenarios.sandbox.docked import docked
from scenarios.sandbox.reach import tried
from scenarios.sandbox.values import Order


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One thing that was looked at, and what to do where it is not well."""

    ok: bool
    what: str
    next: str = ""


async def looked(image: str) -> tuple[Line, ...]:
    """What there is of docker, and how a sandbox of this image holds."""
    lines: list[Line] = []
    try:
        lines += _engine()
        with tempfile.TemporaryDirectory(prefix="stumble-") as name:
            workspace = Path(name).resolve()
            async with docked(Order(workspace=workspace, env={}), image=image) as sandbox:
                lines.append(Line(ok=True, what=f"image {image}: a container of it starts"))
                lines += [Line(ok=True, what=f"but {lacks}") for lacks in sandbox.weaker]
                for way in await tried(sandbox, workspace):
                    held = way.why is not None
                    what = f"{way.name} is {'not ' if held else ''}reached from inside"
                    then = "" if held else "do not run agents here that nobody trusts"
                    lines.append(Line(ok=held, what=f"{what}{f' ({way.why})' * held}", next=then))
    except ChildProcessError as error:
        lines.append(Line(ok=False, what=str(error)))
        lines += [Line(ok=True, what=f"processes instead: {lacks}") for lacks in await lacking()]
    return tuple(lines)


def _engine() -> Iterator[Line]:
    with engine.engine() as client:
        info = client.info()
    version, driver = info["ServerVersion"], info["Driver"]
    slow = "" if driver != "vfs" else "vfs copies an image for each container; overlay2 does not"
    yield Line(ok=True, what=f"docker engine {version} answers (images by {driver})", next=slow)
    lacking = engine.unlimited(info)
    what = f"cgroup v{info.get('CgroupVersion', '1')}: "
    if lacking:
        then = "mount these cgroup controllers and start the engine again"
        yield Line(ok=False, what=f"{what}no limit of {', '.join(lacking)}", next=then)
    else:
        yield Line(ok=True, what=f"{what}memory, processor time and processes are limited")
