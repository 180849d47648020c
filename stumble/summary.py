"""What a tape holds, in one line or as JSON."""

from dataclasses import dataclass

from stumble.prices import price
from traces.index import rows
from traces.story import Story, tell
from traces.tape import Tape


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
        errors=sum(exchange.error is not None for exchange in tape.exchanges),
        dropped_bytes=tape.dropped,
    )


WARN_NO_MODEL = (
    "no model traffic was seen. Check that the agent honours HTTPS_PROXY and the CA bundle in "
    "SSL_CERT_FILE, and that it did call a model."
)
