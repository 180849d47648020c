"""Base URLs of ours that stand for real ones: for clients that take a base URL and no proxy.

A request to `http://127.0.0.1:PORT` is one to the origin that the port stands for, with the
same path, and is recorded under the real URL, as if the agent had called it.
"""

import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from stumble.exits import Wrong

VARIABLES: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_BASE_URL",),
    "generativelanguage": ("GOOGLE_GEMINI_BASE_URL",),
    "gemini": ("GOOGLE_GEMINI_BASE_URL",),
    "openai": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    "/v1": ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
}
"""What a URL holds, and which variables its clients read; the first that fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """A real base URL, and how an agent is told of the one that stands for it."""

    url: str
    port: int = 0
    """Where we listen for it; 0 is any free port."""
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

    def base(self, ports: Mapping[str, int]) -> str:
        """The base URL that stands for it."""
        return f"http://127.0.0.1:{ports[self.origin]}{urlsplit(self.url).path}"


def read(texts: Iterable[str], names: Iterable[str] = ()) -> tuple[Upstream, ...]:
    """What `--upstream` and `--base-url-env` say; Wrong where they are wrong."""
    known = [_upstream(text) for text in texts]
    named: dict[str, list[str]] = {}
    for name in names:
        variable, equals, url = name.partition("=")
        if not equals and len(known) == 1:
            url = known[0].url
        url = _upstream(url).url if url else ""
        if url not in [each.url for each in known]:
            raise Wrong(f"--base-url-env {name}: say which --upstream, as {variable}=URL")
        named.setdefault(url, []).append(variable)
    found = tuple(
        Upstream(url=each.url, port=each.port, variables=tuple(named.get(each.url, each.variables)))
        for each in known
    )
    _check(found)
    return found


def remembered(upstreams: Mapping[str, tuple[str, ...]]) -> tuple[Upstream, ...]:
    """Those of a recording."""
    known = [(_upstream(text), variables) for text, variables in upstreams.items()]
    return tuple(
        Upstream(url=each.url, port=each.port, variables=tuple(variables))
        for each, variables in known
    )


def _upstream(text: str) -> Upstream:
    number, equals, url = text.partition("=")
    if not (equals and number.isdecimal()):
        number, url = "0", text
    parts = urlsplit(url.rstrip("/"))
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
        raise Wrong(f"--upstream {text}: not [PORT=]http(s)://HOST[:PORT][/PATH]")
    default = f":{80 if parts.scheme == 'http' else 443}"
    url = parts._replace(netloc=parts.netloc.lower().removesuffix(default)).geturl()
    fits = (names for mark, names in VARIABLES.items() if mark in url.lower())
    return Upstream(url=url, port=int(number), variables=next(fits, ()))


def _check(upstreams: tuple[Upstream, ...]) -> None:
    told = [name for each in upstreams for name in each.variables]
    if twice := next((name for name in told if told.count(name) > 1), None):
        raise Wrong(f"{twice} would stand for two upstreams; say --base-url-env NAME=URL for each")
    for each in upstreams:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", each.port))
            except (OSError, OverflowError) as error:
                raise Wrong(f"--upstream {each.text}: cannot listen there: {error}") from None


def ports(upstreams: Iterable[Upstream]) -> dict[str, int]:
    """Origin to the port that is wanted for it."""
    wanted: dict[str, int] = {}
    for each in upstreams:
        wanted[each.origin] = wanted.get(each.origin, 0) or each.port
    return wanted


def variables(upstreams: Iterable[Upstream], ports: Mapping[str, int]) -> dict[str, str]:
    """What an agent's environment must say."""
    return {name: each.base(ports) for each in upstreams for name in each.variables}


def told(upstreams: Iterable[Upstream], ports: Mapping[str, int]) -> Iterator[str]:
    """A line for each, for who has to tell an agent by hand."""
    for each in upstreams:
        said = f"set as {', '.join(each.variables)}" if each.variables else "set in no variable"
        yield f"{each.base(ports)} stands for {each.url} ({said})"
