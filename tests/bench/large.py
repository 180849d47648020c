"""Cost of a model request of 1 MB, and of an armed fault that never matches.

    python -m tests.bench.large

A conversation in each dialect, as its clients send it: the full history with each request, a cache
marker that moves with the last message, a changing reminder inserted at the front, source text as
results. A request has 1 MB after 60 steps of 16 KB, or after 600 of 1.6 KB. Times are processor
time: the median of the last ten requests, the worst of the dialects and shapes.

    first    ms, ConversationTap and TapePlayer: a request unlike any before it
    bytes    ms, ConversationTap and TapePlayer: the tape has the identical request
    meaning  ms, the same with a different time in it, which a rule ignores
    rewrite  ms, ConversationTap and FaultInjector: a result injected in an earlier request persists
    idle     us, FaultInjector alone: its fault matches no call
    tool     us, the same for the request of a tool, 1 KB
"""

import json
import time
from collections.abc import Callable, Iterator
from copy import replace
from functools import partial
from itertools import product
from pathlib import Path
from random import Random
from statistics import median

from faults.injector.injector import FaultInjector, RunSeeds
from faults.targeting.bound_fault import BoundFault
from replay.matching.rules import MatchRules, parse_match_rule
from replay.player import TapePlayer
from tests.bench.target import target
from tests.bench.traffic import SOURCES
from traces.conversation.tracker import ConversationTap
from traces.dialects import LENSES, openai_responses
from traces.dialects.types import DialectLens, ModelAnswer, ToolCall
from traces.model import Chunk, Exchange, Fault, Request, Response, Trajectory
from traces.redaction.redactor import Redactor
from traces.tape.reader import Tape
from traces.taps import TapChain

type Json = dict[str, object]

SHAPES = ((60, 16_000), (600, 1_500))
"""Number of steps, and bytes of each result."""
RUN, LAST = 15, 10
"""The number of measured requests at the end of a conversation, and of those that count."""
PATHS = {
    "text_history": "chat/completions",
    "openai_chat": "chat/completions",
    "anthropic_messages": "messages",
    "openai_responses": "responses",
}
MARK: Json = {"cache_control": {"type": "ephemeral"}}
NOTE = "Your shell command goes between ```bash\nand\n```"
TOOLS = [
    {"type": "function", "name": f"tool_{n}", "description": SOURCES[n * 900 :][:900]}
    for n in range(12)
]


def turn(dialect: DialectLens, call: ToolCall, text: str) -> list[Json]:
    """Return the items that a client adds to the conversation after a call."""
    document = json.loads(call.arguments)
    match dialect.NAME:
        case "text_history":
            said = f"Let me look.\n\n```bash\n{document['command']}\n```"
            output = f"<returncode>0</returncode>\n<output>\n{text}</output>"
            return [{"role": "assistant", "content": said}, {"role": "user", "content": output}]
        case "openai_chat":
            function: Json = {"name": call.name, "arguments": call.arguments}
            calls = [{"id": call.id, "type": "function", "function": function}]
            result: Json = {"role": "tool", "tool_call_id": call.id, "content": text}
            return [{"role": "assistant", "content": None, "tool_calls": calls}, result]
        case "anthropic_messages":
            use = {"type": "tool_use", "id": call.id, "name": call.name, "input": document}
            block: Json = {"type": "tool_result", "tool_use_id": call.id, "content": text}
            return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [block]}]
    item: Json = {"type": "function_call", "call_id": call.id, "name": call.name}
    returned: Json = {"type": "function_call_output", "call_id": call.id, "output": text}
    return [item | {"arguments": call.arguments}, returned]


def requests(dialect: DialectLens, steps: int, size: int, at: str = "10:00") -> Iterator[Exchange]:
    """Yield the last exchanges of one run."""
    chance, said = Random(7), list[Json]()
    for number in range(steps):
        reminder: Json = {"role": "user", "content": f"reminder {chance.randrange(9)}: keep a list"}
        system: Json = {"role": "system", "content": NOTE + SOURCES[:12_000]}
        marked = [*said[:-1], said[-1] | MARK] if said else []
        body: Json = {"model": "m", dialect.MESSAGES_KEY: [system, reminder, *marked]}
        body |= {"metadata": {"at": at}, "max_tokens": 9}
        body |= {} if dialect.NAME == "text_history" else {"tools": TOOLS}
        path = chance.randrange(len(SOURCES) - size)
        arguments = json.dumps({"command": f"sed -n {path},+400p file_{number}.py"})
        call = ToolCall(id=f"call_{chance.getrandbits(64):x}", name="bash", arguments=arguments)
        if number >= steps - RUN:
            yield asked(dialect, number, body, answer(dialect, call))
        said += turn(dialect, call, SOURCES[path:][:size])


def answer(dialect: DialectLens, call: ToolCall) -> ModelAnswer:
    if dialect.NAME != "text_history":
        return ModelAnswer(calls=(call,), model="m", finish="tool_calls")
    command = json.loads(call.arguments)["command"]
    return ModelAnswer(message=f"Let me look.\n\n```bash\n{command}\n```", model="m", finish="stop")


def asked(dialect: DialectLens, number: int, body: Json, said: ModelAnswer) -> Exchange:
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
    started = number * 2.0
    stream = dialect.NAME == openai_responses.NAME
    headers, chunks = dialect.write_model_answer(said, stream=stream, id=f"x{number}", created=0)
    chunks = tuple(Chunk(at=started + 1, data=chunk.data) for chunk in chunks)
    url = f"https://api.example/v1/{PATHS[dialect.NAME]}"
    return Exchange(
        seq=number,
        started=started,
        request=Request(method="POST", url=url, body=text),
        response=Response(
            status=200, headers=headers, chunks=chunks, at=started, ended=started + 1
        ),
    )


def took(work: Callable[[], object]) -> float:
    """Return the processor seconds of a call."""
    began = time.process_time()
    work()
    return time.process_time() - began


def each(
    taps: TapChain, exchanges: list[Exchange], work: Callable[[Exchange], object]
) -> list[float]:
    """Return the cost of each request of a run in a persistent chain of taps."""
    costs = list[float]()
    for exchange in exchanges:
        asked = replace(exchange, request=replace(exchange.request), response=None)
        costs.append(took(lambda asked=asked: work(asked)))  # type: ignore[misc]
        taps.whole(exchange)
    return costs


def played(recorded: list[Exchange], exchanges: list[Exchange]) -> list[float]:
    """Return the cost of each request to a player."""
    trajectory = Trajectory(id="large", recorded_at=0.0)
    tape = Tape(path=Path("large.tape"), trajectory=trajectory, exchanges=recorded, spans={})
    watch, rules = ConversationTap(), MatchRules([parse_match_rule("ignore:body.metadata.at")])
    player = TapePlayer(
        tape, watch, redact=Redactor(["sk-" + "x" * 48]).redact_request, rules=rules
    )
    taps = TapChain([watch, player])
    costs = each(taps, exchanges, taps.request)
    if player.diverged:
        raise RuntimeError(player.diverged[0])
    return costs


def struck(exchanges: list[Exchange]) -> list[float]:
    """Return the cost of each request with a persistent injected result."""
    watch, injections = ConversationTap(), list[object]()
    fault = Fault(name="truncate", at="model-boundary")
    nemesis = FaultInjector(
        [BoundFault(fault=fault)], watch, injections.append, seeds=RunSeeds(run="r", trace="t")
    )
    taps = TapChain([watch, nemesis])
    costs = each(taps, exchanges, lambda exchange: taps.request(exchange).forwarded)
    if len(injections) != 1:
        raise RuntimeError(f"{len(injections)} strikes")
    return costs


def idle(exchanges: list[Exchange]) -> tuple[list[float], list[float]]:
    """Return a fault injector's cost for each model and tool request that its fault does not
    match.
    """
    watch = ConversationTap()
    fault = Fault(name="truncate", where={"tool": "no_such_tool"}, at="model-boundary")
    nemesis = FaultInjector(
        [BoundFault(fault=fault)], watch, print, seeds=RunSeeds(run="r", trace="t")
    )
    taps, models, tools = TapChain([watch, nemesis]), list[float](), list[float]()
    for exchange in exchanges:
        request = Request(method="POST", url="http://tool/bash", body=SOURCES[:1000].encode())
        tool = replace(exchange, seq=exchange.seq + 10_000, request=request)
        for costs, each in ((models, exchange), (tools, tool)):
            watch.request(each)
            costs.append(took(partial(nemesis.request, each)))
            taps.whole(each)
    return models, tools


def costs(exchanges: list[Exchange], later: list[Exchange]) -> dict[str, float]:
    """Return the figures of one run, recorded and then requested with another time in it."""
    models, tools = idle(exchanges)
    return {
        "first": median(played(exchanges[-1:], exchanges[-1:])[0] for _ in range(LAST)) * 1e3,
        "bytes": median(played(exchanges, exchanges)[-LAST:]) * 1e3,
        "meaning": median(played(exchanges, later)[-LAST:]) * 1e3,
        "rewrite": median(struck(exchanges)[-LAST:]) * 1e3,
        "idle": median(models[-LAST:]) * 1e6,
        "tool": median(tools[-LAST:]) * 1e6,
    }


def main() -> None:
    worst: dict[str, float] = {}
    measured = (each for each in LENSES if each.NAME in PATHS)
    for dialect, (steps, size) in product(measured, SHAPES):
        said = list(requests(dialect, steps, size))
        found = costs(said, list(requests(dialect, steps, size, at="11:00")))
        figures = "  ".join(f"{name} {figure:5.1f}" for name, figure in found.items())
        print(f"{dialect.NAME:18} {len(said[-1].request.body):,} B  {figures}", flush=True)
        worst = {name: max(figure, worst.get(name, 0.0)) for name, figure in found.items()}
    target("matching a model request of 1 MB by its bytes", worst["bytes"], "ms", most=10)
    target("matching a model request of 1 MB by meaning", worst["meaning"], "ms", most=10)
    target("rewriting one result in a model request of 1 MB", worst["rewrite"], "ms", most=10)
    none = max(worst["idle"], worst["tool"])
    target("an armed engine whose fault fits nothing adds", none, "us", most=50)


if __name__ == "__main__":
    main()
