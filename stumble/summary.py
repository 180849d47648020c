"""What a tape holds, in one line or as JSON."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from traces.dialects import mcp
from traces.kind import kind
from traces.model import Exchange
from traces.story import Story, tell
from traces.tape import Tape

if TYPE_CHECKING:
    from stumble.runs import Played

UNKNOWN_CA = ": if a proxy of yours looks into TLS, name its CA in SSL_CERT_FILE"


CHECK = (
    "Check its base URL, whether it has a NO_PROXY or a CA of its own, and whether it is a static "
    "binary or works in docker; `stumble doctor -- COMMAND` tries it"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Counts of a tape; `cost_usd` None where a model's price is not known."""

    exchanges: int
    model: int
    tool: int
    other: int
    steps: int
    tool_calls: int
    cost_usd: float | None
    errors: int
    dropped_bytes: int

    def line(self) -> str:
        """`14 exchanges (9 model, 5 tool), 9 steps, 5 tool calls, $0.0123`."""
        kinds = [(self.model, "model"), (self.tool, "tool"), (self.other, "other")]
        said = ", ".join(f"{count} {name}" for count, name in kinds if count)
        parts = [f"{self.exchanges} exchange{_s(self.exchanges)}" + (f" ({said})" if said else "")]
        parts += [f"{self.steps} step{_s(self.steps)}"]
        parts += [f"{self.tool_calls} tool call{_s(self.tool_calls)}"]
        parts += [f"${self.cost_usd:.4f}"] if self.cost_usd is not None else []
        parts += [f"{self.errors} without an answer"] if self.errors else []
        return ", ".join(parts)


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def summary(tape: Tape, told: Story | None = None) -> Summary:
    """The counts of a tape."""
    from stumble.prices import price
    from traces.index import rows

    told = told or tell(tape)
    kinds = [placed.kind for placed in told.placed.values()]
    cost = rows(tape, told, price)["trajectories"][0][17]
    return Summary(
        exchanges=len(tape.exchanges),
        model=kinds.count("model"),
        tool=kinds.count("tool"),
        other=kinds.count("other"),
        steps=len(told.turns),
        tool_calls=len(told.uses),
        cost_usd=cost if isinstance(cost, float) else None,
        errors=sum(_broke(exchange) for exchange in tape.exchanges),
        dropped_bytes=tape.dropped,
    )


def struck(tape: Tape, played: "Played") -> Iterator[str]:
    """What the faults of a live run did, each strike in a line, and which did nothing."""
    for injection in tape.injections:
        again = "" if injection.repeat_of is None else ", again"
        what = injection.tool or "an answer"
        yield (
            f"struck {what} at {injection.place} with {injection.op}{again} "
            f"(exchange {injection.seq})"
        )
    for name in played.unfired:
        yield f"{name} never struck: not_fired, no call was reached that it was aimed at"
    for why in dict.fromkeys(played.no_site):
        yield f"could not strike: no_site, {why}"


def troubles(runs: Iterable["Played"]) -> tuple[str, ...]:
    """What stood between the agents and the world, and was not seen: each once."""
    found: list[str] = []
    for run in runs:
        found += blind(run.untrusted)
        found += [*run.refusals.values(), *run.warnings]
    return tuple(dict.fromkeys(found))


def blind(untrusted: Mapping[str, str]) -> tuple[str, ...]:
    """A line for each host whose traffic the agent would not let us see, with what may be why."""
    return tuple(
        f"nothing was seen of {host}: {why}; does the agent pin certificates or trust only its own?"
        for host, why in untrusted.items()
    )


def _broke(exchange: Exchange) -> bool:
    """True where no whole answer came; an agent may leave an MCP server that has said it all."""
    if exchange.error is None or not exchange.error.startswith("cancelled"):
        return exchange.error is not None
    return not (mcp.listens(exchange.request) or mcp.replied(exchange))


def unseen(tape: Tape) -> Iterator[str]:
    """What a person should know of a recording that has no model traffic, or errors upstream."""
    for error, hosts in sorted(_errors(tape).items()):
        yield f"{error} ({', '.join(sorted(hosts))}){UNKNOWN_CA if _unsigned(error) else ''}"
    if not tape.exchanges:
        yield f"no traffic at all was seen; does the agent honour HTTPS_PROXY? {CHECK}"
    elif not any(kind(x.request) == "model" for x in tape.exchanges):
        yield f"no model traffic was seen; did the agent call a model? {CHECK}"


def _unsigned(error: str) -> bool:
    return error.startswith("tls: ") and "issuer" in error


def _errors(tape: Tape) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for exchange in tape.exchanges:
        if exchange.error is not None and exchange.response is None:
            found.setdefault(exchange.error, set()).add(urlsplit(exchange.request.url).netloc)
    return found
