"""Select the environment variables of a sandboxed agent, and the files they require."""

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sandbox.types import SandboxMount

PROXY_VARIABLES = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
)
PASSED_VARIABLES = (
    "LANG",
    "LC_*",
    "TERM",
    "TZ",
    "COLORTERM",
    "NO_COLOR",
    "*_API_KEY",
    "*_AUTH_TOKEN",
    "*_BASE_URL",
    "*_API_BASE",
    "*_API_VERSION",
    "*_ENDPOINT",
    "*_MODEL",
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "CODEX_CA_CERTIFICATE",
    "GIT_SSL_CAINFO",
    "AWS_CA_BUNDLE",
    "PIP_CERT",
    "DENO_CERT",
    "CARGO_HTTP_CAINFO",
    "HTTPLIB2_CA_CERTS",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "NIX_SSL_CERT_FILE",
    "NODE_OPTIONS",
    "LITELLM_LOCAL_MODEL_COST_MAP",
)
"""The variables an agent needs to reach its model through a recorder; all others are withheld."""


def select_agent_env(base: Mapping[str, str], more: Iterable[str] = ()) -> dict[str, str]:
    """Return the proxy variables, those for models, and those that `more` names (`MY_*` too)."""
    patterns = (*PROXY_VARIABLES, *PASSED_VARIABLES, *more)
    return {
        name: value
        for name, value in base.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    }


def find_env_files(env: Mapping[str, str]) -> tuple[SandboxMount, ...]:
    """Return mounts of the files that these variables name, at the same paths."""
    paths = {path for value in env.values() for path in _find_paths(value)}
    return tuple(
        SandboxMount(source=path, target=str(path)) for path in sorted(paths) if path.is_file()
    )


def _find_paths(value: str) -> Iterator[Path]:
    if value.startswith("/"):
        yield Path(value)
    for url in re.findall(r"file:///\S+", value):
        yield Path(unquote(urlsplit(url).path))


def with_proxy(env: Mapping[str, str], relay: str, allow: Iterable[str]) -> dict[str, str]:
    """Return the environment with `relay` as every proxy.

    Servers inside the sandbox are reached without it, except if the agent may reach a server on
    this machine's loopback, because clients cannot distinguish the two.
    """
    names = ("localhost", "127.", "[::1]", "::1")
    outside = any(entry.startswith(names) for entry in allow)
    no_proxy = "" if outside else "localhost,127.0.0.1,::1"
    return {
        **env,
        **dict.fromkeys(PROXY_VARIABLES, relay),
        "NO_PROXY": no_proxy,
        "no_proxy": no_proxy,
    }


def find_proxy_address(env: Mapping[str, str]) -> tuple[str, int] | None:
    """Return host and port of an environment's proxy; None without one.

    Raises ChildProcessError if it is not a recorder's.
    """
    url = next((env[name] for name in PROXY_VARIABLES if env.get(name)), None)
    if url is None:
        return None
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname is None or parts.username is not None:
        origin = f"{parts.scheme}://{parts.hostname}"
        raise ChildProcessError(f"{origin} is not the proxy of a recorder; see `stumble record`")
    return parts.hostname, parts.port or 80
