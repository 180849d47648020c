"""What a model request of 1 MB costs on its way, and what an armed fault that never fits costs.

    python -m tests.bench.large [steps]

One conversation in each dialect, as its clients send it: everything again with each request, a
cache marker that moves with the last message, a reminder put in at the front that changes, source
text as results. After 60 steps a request has 1 MB. Times are of the processor, in ms or us; of the
last ten requests the median, of the dialects the worst.

`bytes` is Watch and Player where the tape has the very request, `meaning` where a time in it is
another one and a rule says that it does not count, `rewrite` Watch and Nemesis where a result that
was struck long ago stays struck, with the bytes that go on. `first` is a request of 1 MB that
resembles none before it.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import median

from faults.nemesis import Armed, Nemesis
from replay.player import Player
from replay.rules import Rules, bind
from tests.bench.conversation import SOURCES
from tests.bench.target import target
from traces.conversation import Watch
from traces.dialects import LENSES, openai_responses
from traces.model import Chunk, Exchange, Fault, Request, Response, Trajectory
from traces.redact import Redactor
from traces.step import Answer, Lens, ToolCall
from traces.tape import Tape
from traces.taps import Taps

type Json = dict[str, object]

STEPS, RESULT, LAST = 60, 16_000, 10
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


def turn(dialect: Lens, call: ToolCall, told: str) -> list[Json]:
    """What a client adds to the conversation when a call has returned."""
    given = json.loads(call.arguments)
    match dialect.NAME:
        case "text_history":
            said = f"Let me look.\n\n```bash\n{given['command']}\n```"
            output = f"<returncode>0</returncode>\n<output>\n{told}</output>"
            return [{"role": "assistant", "content": said}, {"role": "user", "content": output}]
        case "openai_chat":
            function: Json = {"name": call.name, "arguments": call.arguments}
            calls = [{"id": call.id, "type": "function", "function": function}]
            result: Json = {"role": "tool", "tool_call_id": call.id, "content": told}
            return [{"role": "assistant", "content": None, "tool_calls": calls}, result]
        case "anthropic_messages":
            use = {"type": "tool_use", "id": call.id, "name": call.name, "input": given}
            block: Json = {"type": "tool_result", "tool_use_id": call.id, "content": told}
            return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [block]}]
    item: Json = {"type": "function_call", "call_id": call.id, "name": call.name}
    returned: Json = {"type": "function_call_output", "call_id": call.id, "output": told}
    return [item | {"arguments": call.arguments}, returned]


def requests(dialect: Lens, steps: int, at: str = "10:00") -> Iterator[Exchange]:
    """The exchanges of one run; the last request has 1 MB if it has 60 steps."""
    chance, said = Random(7), list[Json]()
    for number in range(steps):
        reminder: Json = {"role": "user", "content": f"reminder {chance.randrange(9)}: keep a list"}
        system: Json = {"role": "system", "content": NOTE + SOURCES[:12_000]}
        marked = [*said[:-1], said[-1] | MARK] if said else []
        body: Json = {"model": "m", dialect.LIST: [system, reminder, *marked]}
        body |= {"metadata": {"at": at}, "max_tokens": 9}
        body |= {} if dialect.NAME == "text_history" else {"tools": TOOLS}
        path = chance.randrange(len(SOURCES) - RESULT)
        arguments = json.dumps({"command": f"sed -n {path},+400p file_{number}.py"})
        call = ToolCall(id=f"call_{chance.getrandbits(64):x}", name="bash", arguments=arguments)
        yield asked(dialect, number, body, answer(dialect, call))
        said += turn(dialect, call, SOURCES[path:][:RESULT])


def answer(dialect: Lens, call: ToolCall) -> Answer:
    if dialect.NAME != "text_history":
        return Answer(calls=(call,), model="m", finish="tool_calls")
    command = json.loads(call.arguments)["command"]
    return Answer(message=f"Let me look.\n\n```bash\n{command}\n```", model="m", finish="stop")


def asked(dialect: Lens, number: int, body: Json, said: Answer) -> Exchange:
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()
    started = number * 2.0
    stream = dialect.NAME == openai_responses.NAME
    headers, chunks = dialect.write(said, stream=stream, id=f"x{number}", created=0)
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
    """Seconds of the processor."""
    began = time.process_time()
    work()
    return time.process_time() - began


def each(taps: Taps, said: list[Exchange], work: Callable[[Exchange], object]) -> list[float]:
    """What each request of a run costs in a chain of taps that goes on to its end."""
    costs = list[float]()
    for exchange in said:
        asked = replace(exchange, request=replace(exchange.request), response=None)
        costs.append(took(lambda asked=asked: work(asked)))  # type: ignore[misc]
        taps.whole(exchange)
    return costs


def played(recorded: list[Exchange], said: list[Exchange]) -> list[float]:
    """Each request, asked of a player."""
    trajectory = Trajectory(id="large", recorded_at=0.0)
    tape = Tape(path=Path("large.tape"), trajectory=trajectory, exchanges=recorded, spans={})
    watch, rules = Watch(), Rules([bind("ignore:body.metadata.at")])
    player = Player(tape, watch, redact=Redactor(["sk-" + "x" * 48]).request, rules=rules)
    taps = Taps([watch, player])
    costs = each(taps, said, taps.request)
    if player.diverged:
        raise RuntimeError(player.diverged[0])
    return costs


def struck(said: list[Exchange]) -> tuple[list[float], list[float]]:
    """Each request with a result that stays struck: Watch and Nemesis together, and the latter."""
    watch, injections = Watch(), list[object]()
    fault = Fault(name="truncate", at="model-boundary", nth=5)
    nemesis = Nemesis([Armed(fault=fault)], watch, injections.append, run="r", trace="t")
    alone = list[float]()

    def work(exchange: Exchange) -> None:
        watch.request(exchange)
        alone.append(took(lambda: len(nemesis.request(exchange).forwarded.body)))

    costs = each(Taps([watch, nemesis]), said, work)
    if len(injections) != 1:
        raise RuntimeError(f"{len(injections)} strikes")
    return costs, alone


def idle(said: list[Exchange]) -> list[float]:
    """What a nemesis takes of each request whose fault fits no call."""
    watch = Watch()
    fault = Fault(name="truncate", where={"tool": "no_such_tool"}, at="model-boundary")
    nemesis = Nemesis([Armed(fault=fault)], watch, print, run="r", trace="t")
    alone = list[float]()

    def work(exchange: Exchange) -> None:
        watch.request(exchange)
        alone.append(took(lambda: nemesis.holds(nemesis.request(exchange))))

    each(Taps([watch, nemesis]), said, work)
    return alone


def main(steps: int) -> None:
    worst: dict[str, float] = {}
    for dialect in LENSES:
        said = list(requests(dialect, steps))
        later = list(requests(dialect, steps, at="11:00"))
        rewritten, nemesis = struck(said)
        found = {
            "first": played(said[-1:], said[-1:])[0] * 1e3,
            "bytes": median(played(said, said)[-LAST:]) * 1e3,
            "meaning": median(played(said, later)[-LAST:]) * 1e3,
            "rewrite": median(rewritten[-LAST:]) * 1e3,
            "nemesis": median(nemesis[-LAST:]) * 1e3,
            "idle": median(idle(said)[-LAST:]) * 1e6,
        }
        figures = "  ".join(f"{name} {figure:6.2f}" for name, figure in found.items())
        print(f"{dialect.NAME:19} {len(said[-1].request.body):,} B  {figures}", flush=True)
        worst = {name: max(figure, worst.get(name, 0.0)) for name, figure in found.items()}
    target("matching a model request of 1 MB by its bytes", worst["bytes"], "ms", most=10)
    target("matching a model request of 1 MB by meaning", worst["meaning"], "ms", most=10)
    target("rewriting one result in a model request of 1 MB", worst["rewrite"], "ms", most=10)
    target("an armed engine whose fault fits nothing, 1 MB", worst["idle"], "us", most=50)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else STEPS)
