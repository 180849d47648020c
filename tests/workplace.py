"""Agents that others wrote, in one workspace, before a provider that speaks TLS.

They trust the certificate authority of the provider's company, as their users have it set, and
talk to the addresses that are built into them; `--host` leads those to loopback.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from mitmproxy.certs import CertStore

from scenarios.practice import elsewhere
from scenarios.practice.shell import ShellTask, lay_out
from scenarios.practice.workspace import WORKSPACE_TASKS
from tests.shop import Said, Shop, shop
from tests.support.clients import AIDER, CLIENTS, MODEL, Client

TASK = WORKSPACE_TASKS["work-stock"]
LIMIT = 120.0
"""Seconds for one run of one agent on a busy machine; alone they take 2 to 7."""
HOSTS = (
    "api.openai.com",
    "api.anthropic.com",
    "generativelanguage.googleapis.com",
    "chatgpt.com",
    "ab.chatgpt.com",
    "api.github.com",
    "github.com",
    "http-intake.logs.us5.datadoghq.com",
    "downloads.claude.ai",
    "dashscope.aliyuncs.com",
    "models.opencode.ai",
    "play.googleapis.com",
    *(f"{registry}.org" for registry in ("pypi", "registry.npmjs")),
)
"""Where the agents go by themselves: all of it ends at the provider, which knows only models."""
NAMES = ("claude-sonnet-4-5", "claude-haiku-4-5-20251001", "gemini-2.5-pro", "gemini-2.5-flash")
"""What models are called that agents know by themselves."""


@cache
def certificate() -> tuple[Path, Path]:
    """The provider's authority, and the key and certificate for all its names."""
    folder = Path(mkdtemp(prefix="stumble-test-"))
    store = CertStore.from_store(folder, "theirs", 2048)
    entry = store.get_cert(None, [x509.DNSName(host) for host in (*HOSTS, elsewhere.HOST)])
    key = entry.privatekey.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    pem = folder / "server.pem"
    pem.write_bytes(entry.cert.to_pem() + key)
    return folder / "theirs-ca-cert.pem", pem


@dataclass(slots=True, kw_only=True)
class Workplace:
    """A folder with files in it, a provider, and one agent to work there."""

    shop: Shop
    agent: Client
    ca: Path
    task: ShellTask = TASK
    elsewhere: tuple[str, ...] = ()
    """More hosts, each with where it is."""

    @property
    def folder(self) -> Path:
        """Where the agent works."""
        return self.shop.folder / "work"

    @property
    def command(self) -> tuple[str, ...]:
        return self.agent.command(self.task.prompt)

    def stumble(self, command: str, *options: str) -> Said:
        """`stumble COMMAND` with these options, then the agent, whose home has nobody lived in.

        What is recorded has its files laid out before; all else works in copies of these.
        """
        if not self.folder.exists():
            self.folder.mkdir()
            lay_out(self.folder, self.task)
        shutil.rmtree(self.shop.folder / "home", ignore_errors=True)
        done = subprocess.run(
            [sys.executable, "-m", "stumble", command, *options, "--", *self.command],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.environment(),
            timeout=LIMIT * 4,
            stdin=subprocess.DEVNULL,
        )
        return Said(code=done.returncode, out=done.stdout, err=done.stderr)

    def environment(self) -> dict[str, str]:
        data = str(self.shop.folder / "data")
        own = {"SSL_CERT_FILE": str(self.ca), "XDG_DATA_HOME": data, "PWD": str(self.folder)}
        kept = {k: v for k, v in self.shop.environment().items() if not k.startswith("ANTHROPIC")}
        return kept | own | dict(self.agent.env)

    @property
    def hosts(self) -> tuple[str, ...]:
        port = self.shop.hosts[1].rpartition(":")[2]
        led = (*(f"{host}=127.0.0.1:{port}" for host in HOSTS), *self.elsewhere)
        return tuple(word for each in led for word in ("--host", each))

    @property
    def tape(self) -> Path:
        return self.shop.folder / "a.tape"


@contextmanager
def workplace(folder: Path, agent: str, *provider: str) -> Iterator[Workplace]:
    """A workplace for the agent of that name, of the table or aider."""
    ca, pem = certificate()
    names = [word for name in NAMES for word in ("--name", f"{name}={MODEL}")]
    with shop(folder, "refund-1", "--tls", str(pem), *names, *provider) as opened:
        yield Workplace(shop=opened, agent=AIDER if agent == "aider" else CLIENTS[agent], ca=ca)
