"""Third-party agents in one workspace, in front of a provider that uses TLS.

They trust the certificate authority of the provider, configured as users do, and connect to their
built-in addresses, which `--host` redirects to loopback.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from mitmproxy.certs import CertStore

from scenarios.practice.tasks import network
from scenarios.practice.tasks.files import WORKSPACE_TASKS
from scenarios.practice.tasks.shell import ShellTask, write_start_files
from tests.support.agents.client_table import (
    AIDER,
    CLIENTS,
    MODEL,
    Client,
)
from tests.support.agents.framework_table import FRAMEWORKS
from tests.support.agents.language_table import LANGUAGES
from tests.support.agents.provider_table import BEDROCK_MODEL, PROVIDERS
from tests.support.practice_shop import (
    Said,
    Shop,
    shop,
)

TASK = WORKSPACE_TASKS["work-stock"]
LIMIT = 120.0
"""Seconds for one run of one agent on a busy machine; on an idle one they take 2 to 7."""
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
    "ollama.com",
    "api.cohere.com",
    "api.mistral.ai",
    "stumble-test.openai.azure.com",
    "bedrock-runtime.us-east-1.amazonaws.com",
    "us-east5-aiplatform.googleapis.com",
    "us-central1-aiplatform.googleapis.com",
    "os-api.agno.com",
    "app.crewai.com",
    "telemetry.crewai.com",
    *(f"{registry}.org" for registry in ("pypi", "registry.npmjs")),
)
"""The agents' built-in hosts: all are redirected to the provider, which serves only models."""
SIDE_HOSTS = (
    "api.cline.bot",
    "api.continue.dev",
    "code.kimi.com",
    "data.cline.bot",
    "openaipublic.blob.core.windows.net",
    "otel.cline.bot",
    "platform.claude.com",
    "raw.githubusercontent.com",
)
"""Further hosts of agents that are started in each of their forms."""
NAMES = (
    "claude-sonnet-4-5",
    "claude-haiku-4-5-20251001",
    "claude-haiku-5-5",
    "gemini-2.5-pro",
    "gemini-2.5-flash",
    "gpt-4o",
    BEDROCK_MODEL,
)
"""Model names that are built into agents."""
AGENTS = {"aider": AIDER, **CLIENTS, **PROVIDERS, **FRAMEWORKS, **LANGUAGES}


@cache
def certificate() -> tuple[Path, Path]:
    """Return the provider's CA, and the key and certificate for all its names."""
    folder = Path(mkdtemp(prefix="stumble-test-"))
    store = CertStore.from_store(folder, "theirs", 2048)
    entry = store.get_cert(
        None, [x509.DNSName(host) for host in (*HOSTS, *SIDE_HOSTS, network.FILES_HOST)]
    )
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
    """A folder with files, a provider, and one agent that works there."""

    shop: Shop
    agent: Client
    ca: Path
    task: ShellTask = TASK
    elsewhere: tuple[str, ...] = ()
    """Further hosts, each with its actual address."""
    plain: bool = False
    """Whether it is used as by a user who set no variable: the store is in the folder."""
    more: Mapping[str, str] = field(default_factory=dict)
    """Further variables."""

    @property
    def folder(self) -> Path:
        """The agent's working folder."""
        return self.shop.folder / "work"

    @property
    def command(self) -> tuple[str, ...]:
        return self.agent.command(self.task.prompt)

    def stumble(self, command: str, *options: str) -> Said:
        """Run `stumble COMMAND` with these options and the agent, with an empty home folder.

        For a recording its files are laid out first; everything else works in copies of them.
        """
        if command == "record" and not self.plain:
            options = ("--times", "1", *options)  # a control replay is a test of its own
        if not self.folder.exists():
            self.folder.mkdir()
            write_start_files(self.folder, self.task)
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
        if self.plain:
            del kept["STUMBLE_STORE"]
        return kept | own | dict(self.agent.env) | dict(self.more)

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
    """Set up a workplace for the agent of that name."""
    ca, pem = certificate()
    names = [word for name in NAMES for word in ("--name", f"{name}={MODEL}")]
    with shop(folder, "refund-1", "--tls", str(pem), *names, *provider) as opened:
        yield Workplace(shop=opened, agent=AGENTS[agent], ca=ca)
