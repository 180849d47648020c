"""A run as exporters see it: from a tape here, from rows in `stored_run`."""

from collections.abc import Mapping

from msgspec import Struct, field

from traces.conversation.derived_steps import derive_tape_steps
from traces.dialects.types import HostedCall, TokenUsage
from traces.exporters.sent_messages import SentMessage, SentMessages, list_sent_messages
from traces.store.rows import derive_agent_name
from traces.store.usage_rows import PriceFunction, iter_usage, price_nothing, sum_costs
from traces.tape.reader import Tape


class ExportedCall(Struct, frozen=True, kw_only=True):
    """A tool call with its result; None if no result was ever returned."""

    id: str
    tool: str
    arguments: str
    result: str | None
    is_error: bool | None = None
    incomplete: bool | None = None
    """True if the answer ended before the arguments did; None if unknown."""
    cut: Mapping[str, int] = field(default_factory=dict)
    """Full size in bytes of `arguments` or `result`, if they are shortened."""


class ExportedStep(Struct, frozen=True, kw_only=True):
    """A message of the system or the user, or a response of the agent."""

    source: str
    message: str
    model: str | None = None
    calls: tuple[ExportedCall, ...] = ()
    usage: TokenUsage | None = None
    cost: float | None = None
    """US dollars of the response, if its source reported them."""
    lane: int = 0
    """The conversation that it is part of."""
    sent: SentMessages = SentMessages()
    """What it answers; empty for a message."""
    started: float | None = None
    """Seconds since the start of the run at which the model was called; None if unknown."""
    ended: float | None = None
    finish: str | None = None
    """Why the response ended, as the provider wrote it."""
    hosted: tuple[HostedCall, ...] = ()


class ExportedRun(Struct, frozen=True, kw_only=True):
    """A run."""

    id: str
    steps: tuple[ExportedStep, ...]
    agent: str | None = None
    model: str | None = None
    recorded_at: float | None = None
    facts: Mapping[str, object] = field(default_factory=dict)
    """`source`, and those of `EXPORTED_FACTS` (of importers) that are known."""

    @property
    def unanswered(self) -> tuple[SentMessage, ...]:
        """Its last messages of system or user, to which their conversation has no response."""
        last = {step.lane: place for place, step in enumerate(self.steps) if step.source == "agent"}
        return tuple(
            SentMessage(role=step.source, text=step.message)
            for place, step in enumerate(self.steps)
            if step.source != "agent" and place > last.get(step.lane, -1)
        )


def to_exported_run(tape: Tape, price: PriceFunction = price_nothing) -> ExportedRun:
    """Convert a recorded run; ValueError if it has no steps."""
    derived, run = derive_tape_steps(tape), tape.trajectory
    if not derived.steps:
        raise ValueError("it has no steps")
    start_times = {x.seq: x.started for x in tape.exchanges}
    ending, sent = tape.ending, list_sent_messages(derived)
    steps = tuple(
        ExportedStep(
            source=step.source,
            message=step.message,
            model=step.model,
            calls=tuple(
                ExportedCall(
                    id=use.call_id,
                    tool=use.tool,
                    arguments=use.arguments,
                    result=use.result,
                    is_error=use.is_error,
                    incomplete=use.incomplete,
                )
                for use in derived.tool_uses
                if use.step == step.number
            ),
            usage=step.usage,
            lane=step.lane,
            sent=sent.get(place, SentMessages()),
            started=start_times[step.seqs[0]] if run.timed and step.seqs else None,
            ended=step.at if run.timed else None,
            finish=step.finish,
            hosted=step.hosted,
        )
        for place, step in enumerate(derived.steps)
    )
    cost = sum_costs(list(iter_usage(tape, derived, price)))
    facts = {
        "cost_usd": cost,
        "cost_source": None if cost is None else "list_price",
        "source": run.source,
        "scenario": run.scenario,
        "task": run.task,
        "passed": ending.passed if ending else None,
        "reward": ending.reward if ending else None,
        "ended": ending.ended if ending else None,
    }
    return ExportedRun(
        id=run.id,
        steps=steps,
        agent=derive_agent_name(run),
        model=run.model or next((step.model for step in steps if step.model), None),
        recorded_at=run.recorded_at,
        facts={name: value for name, value in facts.items() if value is not None},
    )


def to_valid_utf8(text: str) -> str:
    """Replace characters that UTF-8 cannot encode: JSON may hold half a surrogate pair."""
    return text.encode("utf-8", "replace").decode()
