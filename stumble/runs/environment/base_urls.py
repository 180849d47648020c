"""Local base URLs for real ones: for clients that accept a base URL and no proxy.

A request to `http://127.0.0.1:PORT` is one to the origin that the port stands for, with the
same path, and is recorded under the real URL, as if the agent had called it.
"""

import socket
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from stumble.errors import UsageError

CLIENT_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_BASE_URL",),
    "generativelanguage": ("GOOGLE_GEMINI_BASE_URL",),
    "gemini": ("GOOGLE_GEMINI_BASE_URL",),
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    "/v1": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    "ollama": ("OLLAMA_HOST",),
    ":11434": ("OLLAMA_HOST",),
}
"""Substring of a URL to the variables that its clients read; the first match counts."""


class BaseUrlMapping(Struct, frozen=True, kw_only=True):
    """A real base URL, its local port, and the variables that pass the local URL to an agent."""

    url: str
    port: int = 0
    """Local port to listen on; 0 is any free port."""
    variables: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        """Scheme and authority, `https://api.openai.com`."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def text(self) -> str:
        """As it is given on a command line, `[PORT=]URL`."""
        return f"{self.port}={self.url}" if self.port else self.url

    def to_local_url(self, ports: Mapping[str, int]) -> str:
        """Return the local base URL that replaces it."""
        return f"http://127.0.0.1:{ports[self.origin]}{urlsplit(self.url).path}"


def parse_base_urls(texts: Iterable[str], names: Iterable[str] = ()) -> tuple[BaseUrlMapping, ...]:
    """Parse `--upstream` and `--base-url-env`. Raises UsageError if one is invalid."""
    known = [_parse_base_url(text) for text in texts]
    named: dict[str, list[str]] = {}
    for name in names:
        variable, equals, url = name.partition("=")
        if not equals and len(known) == 1:
            url = known[0].url
        url = _parse_base_url(url).url if url else ""
        if url not in [each.url for each in known]:
            raise UsageError(f"--base-url-env {name}: say which --upstream, as {variable}=URL")
        named.setdefault(url, []).append(variable)
    found = tuple(
        BaseUrlMapping(
            url=each.url, port=each.port, variables=tuple(named.get(each.url, each.variables))
        )
        for each in known
    )
    _check_base_urls(found)
    return found


def restore_base_urls(upstreams: Mapping[str, tuple[str, ...]]) -> tuple[BaseUrlMapping, ...]:
    """Return the base URLs of a recording."""
    known = [(_parse_base_url(text), variables) for text, variables in upstreams.items()]
    return tuple(
        BaseUrlMapping(url=each.url, port=each.port, variables=tuple(variables))
        for each, variables in known
    )


def _parse_base_url(text: str) -> BaseUrlMapping:
    number, equals, url = text.partition("=")
    if not (equals and number.isdecimal()):
        number, url = "0", text
    parts = urlsplit(url.rstrip("/"))
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
        raise UsageError(f"--upstream {text}: not [PORT=]http(s)://HOST[:PORT][/PATH]")
    default = f":{80 if parts.scheme == 'http' else 443}"
    url = parts._replace(netloc=parts.netloc.lower().removesuffix(default)).geturl()
    fits = (names for mark, names in CLIENT_VARIABLES.items() if mark in url.lower())
    return BaseUrlMapping(url=url, port=int(number), variables=next(fits, ()))


def _check_base_urls(upstreams: tuple[BaseUrlMapping, ...]) -> None:
    told = [name for each in upstreams for name in each.variables]
    if twice := next((name for name in told if told.count(name) > 1), None):
        raise UsageError(
            f"{twice} would stand for two upstreams; say --base-url-env NAME=URL for each"
        )
    for each in upstreams:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", each.port))
            except (OSError, OverflowError) as error:
                raise UsageError(f"--upstream {each.text}: cannot listen there: {error}") from None


def collect_origin_ports(upstreams: Iterable[BaseUrlMapping]) -> dict[str, int]:
    """Return a mapping from origin to requested port."""
    wanted: dict[str, int] = {}
    for each in upstreams:
        wanted[each.origin] = wanted.get(each.origin, 0) or each.port
    return wanted


def build_base_url_variables(
    upstreams: Iterable[BaseUrlMapping], ports: Mapping[str, int]
) -> dict[str, str]:
    """Return the base URL variables of an agent's environment."""
    return {name: each.to_local_url(ports) for each in upstreams for name in each.variables}


def describe_base_urls(
    upstreams: Iterable[BaseUrlMapping], ports: Mapping[str, int]
) -> Iterator[str]:
    """A line for each, for who has to tell an agent by hand."""
    for each in upstreams:
        said = f"set as {', '.join(each.variables)}" if each.variables else "set in no variable"
        yield f"{each.to_local_url(ports)} stands for {each.url} ({said})"
