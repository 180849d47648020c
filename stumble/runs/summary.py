"""Summary of a tape, in one line or as JSON."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

from stumble.llm.prices import compute_token_cost
from traces.conversation.classify import classify_request
from traces.conversation.derived_steps import DerivedSteps, derive_tape_steps
from traces.conversation.model_like import find_model_api
from traces.dialects import find_dialect, mcp
from traces.model import Exchange, Request
from traces.store.usage_rows import iter_usage, sum_costs
from traces.tape.reader import Tape

if TYPE_CHECKING:
    from stumble.runs.types import RunResult

UNKNOWN_CA_HINT = ": if a proxy of yours looks into TLS, name its CA in SSL_CERT_FILE"


CHECK_AGENT_HINT = (
    "Check its base URL, whether it has a NO_PROXY or a CA of its own, and whether it is a static "
    "binary or works in docker; `stumble doctor -- COMMAND` tries it"
)


class TapeSummary(Struct, frozen=True, kw_only=True):
    """Counts of a tape; `cost_usd` None where a model's price is not known."""

    exchanges: int
    model: int
    tool: int
    other: int
    steps: int
    tool_calls: int
    hosted_calls: int
    cost_usd: float | None
    errors: int
    dropped_bytes: int

    def to_line(self) -> str:
        """`14 exchanges (9 model, 5 tool), 9 steps, 5 tool calls, $0.0123`."""
        kinds = [(self.model, "model"), (self.tool, "tool"), (self.other, "other")]
        said = ", ".join(f"{count} {name}" for count, name in kinds if count)
        parts = [
            f"{self.exchanges} exchange{_plural_suffix(self.exchanges)}"
            + (f" ({said})" if said else "")
        ]
        parts += [f"{self.steps} step{_plural_suffix(self.steps)}"]
        parts += [f"{self.tool_calls} tool call{_plural_suffix(self.tool_calls)}"]
        hosted = self.hosted_calls
        parts += [f"{hosted} hosted call{_plural_suffix(hosted)}"] if hosted else []
        parts += [f"${self.cost_usd:.4f}"] if self.cost_usd is not None else []
        parts += [f"{self.errors} without an answer"] if self.errors else []
        return ", ".join(parts)


def _plural_suffix(count: int) -> str:
    return "" if count == 1 else "s"


def summarize_tape(tape: Tape, derived_steps: DerivedSteps | None = None) -> TapeSummary:
    """The counts of a tape."""
    derived_steps = derived_steps or derive_tape_steps(tape)
    kinds = [placed.kind for placed in derived_steps.contexts.values()]
    return TapeSummary(
        exchanges=len(tape.exchanges),
        model=kinds.count("model"),
        tool=kinds.count("tool"),
        other=kinds.count("other"),
        steps=len(derived_steps.agent_steps),
        tool_calls=len(derived_steps.tool_uses),
        hosted_calls=sum(len(step.hosted) for step in derived_steps.agent_steps),
        cost_usd=sum_costs(list(iter_usage(tape, derived_steps, compute_token_cost))),
        errors=sum(_is_broken_exchange(exchange) for exchange in tape.exchanges),
        dropped_bytes=tape.dropped,
    )


def describe_injections(tape: Tape, played: "RunResult") -> Iterator[str]:
    """Yield a line for each injection of a live run and for each fault without one."""
    for injection in tape.injections:
        again = "" if injection.repeat_of is None else ", again"
        what = injection.tool or "an answer"
        yield (
            f"faulted {what} at {injection.place} with {injection.op}{again} "
            f"(exchange {injection.seq})"
        )
    for name in played.unfired:
        yield f"{name} did not fire: not_fired, the run made no call that it selects"
    for why in dict.fromkeys(played.no_site):
        yield f"could not be applied: no_site, {why}"


def collect_run_warnings(runs: Iterable["RunResult"]) -> tuple[str, ...]:
    """Return each warning about traffic that was not recorded, once."""
    found: list[str] = []
    for run in runs:
        found += describe_untrusted_hosts(run.untrusted)
        found += [*run.refusals.values(), *run.warnings]
    return tuple(dict.fromkeys(found))


def describe_untrusted_hosts(untrusted: Mapping[str, str]) -> tuple[str, ...]:
    """A line for each host whose traffic the agent would not let us see, with what may be why."""
    return tuple(
        f"nothing was seen of {host}: {why}; does the agent pin certificates or trust only its own?"
        for host, why in untrusted.items()
    )


def _is_broken_exchange(exchange: Exchange) -> bool:
    """True where no whole answer came; an agent may leave an MCP server that has said it all."""
    if exchange.error is None or not exchange.error.startswith("cancelled"):
        return exchange.error is not None
    return not (mcp.is_listening_request(exchange.request) or mcp.has_mcp_response(exchange))


def describe_recording_gaps(tape: Tape) -> Iterator[str]:
    """What a person should know of a recording: unread model traffic, none, errors upstream."""
    yield from describe_upstream_errors([tape])
    yield from describe_unread_models(x.request for x in tape.exchanges)
    if not tape.exchanges:
        yield f"no traffic at all was seen; does the agent honour HTTPS_PROXY? {CHECK_AGENT_HINT}"
    elif not any(classify_request(x.request) == "model" for x in tape.exchanges):
        yield f"no model traffic was seen; did the agent call a model? {CHECK_AGENT_HINT}"


def describe_upstream_errors(tapes: Iterable[Tape]) -> Iterator[str]:
    """Yield a line for each error of live requests, with the hosts and what may mend it."""
    found: dict[str, set[str]] = {}
    for exchange in chain.from_iterable(tape.exchanges for tape in tapes):
        error, is_live = exchange.error, exchange.answered_by == "live"
        if error and is_live and exchange.response is None and _is_broken_exchange(exchange):
            found.setdefault(error, set()).add(urlsplit(exchange.request.url).netloc)
    for error, hosts in sorted(found.items()):
        yield f"{error} ({', '.join(sorted(hosts))}){_suggest_tls_option(error, min(hosts))}"


def describe_unread_models(requests: Iterable[Request]) -> Iterator[str]:
    """Yield a line for each model API without a dialect: its requests are bytes, not steps."""
    counts = Counter(
        api
        for request in requests
        if find_dialect(request) is None and (api := find_model_api(request)) is not None
    )
    for api, count in counts.items():
        yield (
            f"{count} request{_plural_suffix(count)} to {api}: recorded and replayed as bytes, but"
            " without steps, tool calls and tokens, and no fault goes to its answers"
        )


def _suggest_tls_option(error: str, authority: str) -> str:
    """Return what lets a refused certificate pass, after a colon; empty for other errors."""
    if not error.startswith("tls: ") or "certificate" not in error.lower():
        return ""
    if "certificate required" in error or "alert" in error:
        return ": the server wants a certificate of the client; give --client-cert FILE"
    host = urlsplit(f"//{authority}").hostname
    if any(word in error for word in ("expired", "not yet valid", "mismatch")):
        return f": --insecure-upstream {host} trusts any certificate of it"
    hint = f": --upstream-ca FILE trusts its CA, --insecure-upstream {host} any certificate"
    return (UNKNOWN_CA_HINT if "issuer" in error else "") + hint
