"""What a tape shows of each stage of its pipeline, for those who ask why a stage failed."""

from collections.abc import Iterable, Iterator, Mapping

from traces.encoding import plain
from traces.failures import KEPT, Asked, Attempt, Used
from traces.model import Exchange
from traces.story import Story

_READ = 65536
"""How many bytes of an answer are read for the words of an error."""


def attempts(
    rows: Iterable[Mapping[str, object]], exchanges: Iterable[Exchange], told: Story
) -> Iterator[Attempt]:
    """One attempt per row of `stages`, with what was asked and used in that stage."""
    of_model = [x for x in exchanges if told.placed[x.seq].kind == "model"]
    for row in rows:
        stage = str(row["stage"])
        asked = [x for x in of_model if told.placed[x.seq].stage == stage]
        said = [x.seq for x in asked if x.seq in told.answers and told.answers[x.seq].message]
        score, code = row.get("score"), row.get("agent_exit")
        outcome, budget = row.get("outcome"), row.get("budget")
        yield Attempt(
            stage=stage,
            score=score if isinstance(score, float | int) else None,
            outcome=str(outcome) if outcome else None,
            exit=code if isinstance(code, int) else None,
            budget=str(budget) if budget else None,
            asked=tuple(_asked(x) for x in asked),
            used=tuple(
                Used(
                    seq=use.result_seq if use.result_seq is not None else use.asked_by,
                    tool=use.tool,
                    arguments=use.arguments,
                    result=use.result or "",
                    is_error=use.is_error,
                )
                for use in told.uses
                if use.stage == stage
            ),
            said=told.answers[said[-1]].message if said else "",
            said_seq=said[-1] if said else None,
        )


def _asked(exchange: Exchange) -> Asked:
    answer = exchange.response
    failed = answer is not None and answer.status >= 400
    text = (plain(answer.headers, answer.body) or b"")[:_READ] if answer and failed else b""
    return Asked(
        seq=exchange.seq,
        status=answer.status if answer else None,
        error=exchange.error,
        text=text.decode("utf-8", "replace")[: 10 * KEPT],
        refused=exchange.answered_by == "refused",
    )
