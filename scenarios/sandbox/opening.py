"""Opens the sandbox that was asked for, and says what an agent of ours needs to be in it."""

import sys
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from urllib.parse import urlsplit

from scenarios.sandbox.confined import confined
from scenarios.sandbox.docked import docked
from scenarios.sandbox.images import IMAGE
from scenarios.sandbox.values import Isolation, Mount, Order, Sandbox

ROOM = Path(__file__).resolve().parents[1]
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


def opened(
    isolation: Isolation, order: Order, *, image: str = IMAGE
) -> AbstractAsyncContextManager[Sandbox]:
    """A sandbox of this kind; ChildProcessError, in one line, where it cannot be had."""
    return docked(order, image=image) if isolation == "docker" else confined(order)


def models(env: Mapping[str, str]) -> tuple[str, ...]:
    """Whom an agent may ask for answers: the known ones, and where its variables lead it."""
    found = [urlsplit(value) for name, value in env.items() if name.endswith(URLS)]
    named = (
        url.netloc.rpartition("@")[2].lower() + ("" if url.port else f":{PORTS[url.scheme]}")
        for url in found
        if url.scheme in PORTS
    )
    return tuple(dict.fromkeys((*MODELS, *named)))


def ours() -> tuple[Mount, ...]:
    """What an agent of `scenarios.agents` needs: this Python, its packages, and that folder."""
    shown = {Path(sys.prefix), Path(sys.base_prefix)}
    if not ROOM.is_relative_to(sys.prefix):
        shown |= {ROOM / "__init__.py", ROOM / "agents"}
    return tuple(Mount(source=path, target=str(path)) for path in sorted(shown))
