"""What of an environment a sandboxed agent gets, and which files that brings with it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from urllib.parse import unquote, urlsplit

from scenarios.sandbox.values import Mount

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
NAMES = (
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
"""What an agent needs to speak to its model by a recorder; all else of a machine stays outside."""


def passed(base: Mapping[str, str], more: Iterable[str] = ()) -> dict[str, str]:
    """The proxy variables, those that lead to models, and what is named besides (`MY_*` too)."""
    patterns = (*PROXIES, *NAMES, *more)
    return {
        name: value
        for name, value in base.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    }


def files(env: Mapping[str, str]) -> tuple[Mount, ...]:
    """The files that these variables name, to be seen where they are."""
    named = {path for value in env.values() for path in _paths(value)}
    return tuple(Mount(source=path, target=str(path)) for path in sorted(named) if path.is_file())


def _paths(value: str) -> Iterator[Path]:
    if value.startswith("/"):
        yield Path(value)
    for url in re.findall(r"file:///\S+", value):
        yield Path(unquote(urlsplit(url).path))


def led(env: Mapping[str, str], relay: str, allow: Iterable[str]) -> dict[str, str]:
    """The environment with all proxies the relay.

    What listens in the sandbox itself is reached past it, but not where the agent may reach a
    server on this machine's loopback, which clients cannot tell from their own.
    """
    names = ("localhost", "127.", "[::1]", "::1")
    outside = any(entry.startswith(names) for entry in allow)
    own = "" if outside else "localhost,127.0.0.1,::1"
    return {**env, **dict.fromkeys(PROXIES, relay), "NO_PROXY": own, "no_proxy": own}


def proxy(env: Mapping[str, str]) -> tuple[str, int] | None:
    """Where the proxy of an environment listens; None where it has none.

    ChildProcessError where it is not that of a recorder.
    """
    url = next((env[name] for name in PROXIES if env.get(name)), None)
    if url is None:
        return None
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname is None or parts.username is not None:
        named = f"{parts.scheme}://{parts.hostname}"
        raise ChildProcessError(f"{named} is not the proxy of a recorder; see `stumble record`")
    return parts.hostname, parts.port or 80
