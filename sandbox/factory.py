"""Open a sandbox of the requested kind, and list the mounts and hosts its agent needs."""

import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from urllib.parse import urlsplit

from sandbox.docker.docker_sandbox import open_docker_sandbox
from sandbox.docker.images import DEFAULT_IMAGE
from sandbox.process_sandbox import open_process_sandbox
from sandbox.types import Sandbox, SandboxKind, SandboxMount, SandboxSpec

SCENARIOS_FOLDER = Path(__file__).resolve().parents[1] / "scenarios"
MODELS = (
    "api.anthropic.com",
    "api.deepseek.com",
    "api.groq.com",
    "api.mistral.ai",
    "api.moonshot.ai",
    "api.openai.com",
    "api.x.ai",
    "dashscope.aliyuncs.com",
    "generativelanguage.googleapis.com",
    "open.bigmodel.cn",
    "openrouter.ai",
    "*.openai.azure.com",
)
URLS = ("_BASE_URL", "_API_BASE", "_ENDPOINT", "_BASE")
PORTS = {"http": 80, "https": 443}


def open_sandbox(
    isolation: SandboxKind, order: SandboxSpec, *, image: str = DEFAULT_IMAGE
) -> AbstractAsyncContextManager[Sandbox]:
    """Open a sandbox of this kind. Raises ChildProcessError, with one line, if it cannot be."""
    return (
        open_docker_sandbox(order, image=image)
        if isolation == "docker"
        else open_process_sandbox(order)
    )


def find_model_hosts(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the hosts of models an agent may use: the known ones, and those in its variables."""
    urls = [urlsplit(value) for name, value in env.items() if name.endswith(URLS)]
    hosts = (
        url.netloc.rpartition("@")[2].lower() + ("" if url.port else f":{PORTS[url.scheme]}")
        for url in urls
        if url.scheme in PORTS
    )
    return tuple(dict.fromkeys((*MODELS, *hosts)))


def list_agent_mounts() -> tuple[SandboxMount, ...]:
    """Return the mounts an agent of `scenarios.agents` needs: Python, packages, and its folder."""
    paths = {Path(sys.prefix), Path(sys.base_prefix)}
    if not SCENARIOS_FOLDER.is_relative_to(sys.prefix):
        paths |= {SCENARIOS_FOLDER / "__init__.py", SCENARIOS_FOLDER / "agents"}
    return tuple(SandboxMount(source=path, target=str(path)) for path in sorted(paths))
