"""Agents that others wrote, in one workspace, before a provider that speaks TLS.

Nothing is configured but what a user of each agent has in the environment anyway: a key, a
model's name, and the certificate authority of the provider's company. The agents talk to the
addresses that are built into them; `--host` leads those to loopback.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from mitmproxy.certs import CertStore

from scenarios.practice.shell import ShellTask, lay_out
from scenarios.practice.workspace import WORKSPACE_TASKS
from tests.agents import LOCKS, environment, native
from tests.shop import Said, Shop, shop

TASK = WORKSPACE_TASKS["work-stock"]
MODEL = "practice/naive"
LIMIT = 120.0
"""Seconds for one run of one agent on a busy machine; alone they take 2 to 7."""
HOSTS = (
    "api.openai.com",
    "api.anthropic.com",
    "chatgpt.com",
    "ab.chatgpt.com",
    "api.github.com",
    "github.com",
    "http-intake.logs.us5.datadoghq.com",
    "downloads.claude.ai",
)
"""Where the agents go by themselves: all of it ends at the provider, which knows only models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One agent: its command for a prompt, and what its user has in the environment."""

    command: Callable[[str], tuple[str, ...]]
    tool: str = "bash"
    """The name of its shell."""
    env: Mapping[str, str] = field(default_factory=dict)
    record: tuple[str, ...] = ()
    """More options for its recording."""


def _claude(prompt: str) -> tuple[str, ...]:
    output = ("--output-format", "stream-json", "--verbose")
    unasked = "--dangerously-skip-permissions"
    return (str(native("claude-code")), "-p", prompt, unasked, "--model", MODEL, *output)


def _codex(prompt: str) -> tuple[str, ...]:
    unasked = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
    return (str(native("codex")), "exec", *unasked, "-m", MODEL, prompt)


def _mini(prompt: str) -> tuple[str, ...]:
    program = environment("mini-swe-agent").with_name("mini")
    options = ("-y", "--exit-immediately", "-o", "../mini.json")
    return (str(program), "-m", f"openai/{MODEL}", "-t", prompt, *options)


def _openai3(prompt: str) -> tuple[str, ...]:
    return (str(environment("openai3")), str(LOCKS / "openai_bash.py"), MODEL, prompt)


def _pydantic(prompt: str) -> tuple[str, ...]:
    return (str(environment("pydantic-ai")), str(LOCKS / "pydantic_bash.py"), MODEL, prompt)


AGENTS: Mapping[str, Agent] = {
    "claude-code": Agent(
        command=_claude,
        tool="Bash",
        env={
            "ANTHROPIC_API_KEY": "sk-ant-test-0123456789",
            "ANTHROPIC_DEFAULT_HAIKU_MODEL": MODEL,
            "IS_SANDBOX": "1",
        },
    ),
    "codex": Agent(
        command=_codex,
        tool="exec_command",
        env={"CODEX_API_KEY": "sk-test-0123456789"},
    ),
    "codex-http": Agent(
        command=_codex,
        tool="exec_command",
        env={"CODEX_API_KEY": "sk-test-0123456789"},
        record=("--no-websocket",),
    ),
    "mini-swe-agent": Agent(
        command=_mini,
        env={
            "MSWEA_CONFIGURED": "true",
            "MSWEA_COST_TRACKING": "ignore_errors",
            "MSWEA_SILENT_STARTUP": "1",
        },
    ),
    "openai3": Agent(command=_openai3),
    "pydantic-ai": Agent(command=_pydantic),
}


@cache
def _certificate() -> tuple[Path, Path]:
    """The provider's authority, and the key and certificate for all its names."""
    folder = Path(mkdtemp(prefix="stumble-test-"))
    store = CertStore.from_store(folder, "theirs", 2048)
    entry = store.get_cert(None, [x509.DNSName(host) for host in HOSTS])
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
    agent: Agent
    ca: Path
    task: ShellTask = TASK

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
        own = {"SSL_CERT_FILE": str(self.ca), "XDG_DATA_HOME": data}
        kept = {k: v for k, v in self.shop.environment().items() if not k.startswith("ANTHROPIC")}
        return kept | own | dict(self.agent.env)

    @property
    def hosts(self) -> tuple[str, ...]:
        port = self.shop.hosts[1].rpartition(":")[2]
        return tuple(w for host in HOSTS for w in ("--host", f"{host}=127.0.0.1:{port}"))

    @property
    def tape(self) -> Path:
        return self.shop.folder / "a.tape"


@contextmanager
def workplace(folder: Path, agent: str, *provider: str) -> Iterator[Workplace]:
    """A workplace for the agent of that name."""
    ca, pem = _certificate()
    with shop(folder, "refund-1", "--tls", str(pem), *provider) as opened:
        yield Workplace(shop=opened, agent=AGENTS[agent], ca=ca)
