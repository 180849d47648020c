"""`stumble show`: a tape, readable."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble import options
from stumble.exits import Wrong

if TYPE_CHECKING:
    from traces.model import Exchange
    from traces.story import Step, Story, ToolUse
    from traces.tape import Tape

WIDTH = 100


@click.command(short_help="Show the steps of a recording.")
@options.tape_path
@click.argument(
    "other", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False
)
@click.option(
    "--tools",
    is_flag=True,
    help="Which tools were offered; with a second tape, what changed (exit 1 if anything did).",
)
@click.option("--exchanges", is_flag=True, help="What crossed the wire instead of what it means.")
@click.option("--step", "number", type=int, help="One step, in full.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(
    tape: Path,
    other: Path | None,
    tools: bool,
    exchanges: bool,
    number: int | None,
    as_json: bool,
) -> None:
    """Show the steps of a recording: what the agent said, called and was told.

    \b
    stumble show refund.tape
    stumble show refund.tape --step 7
    stumble show refund.tape --exchanges
    stumble show --tools refund.tape
    stumble show --tools monday.tape tuesday.tape
    """
    if tools:
        from stumble.toolsets import show_tools

        show_tools(tape, other, as_json=as_json)
        return
    if other is not None:
        raise Wrong("two tapes are only compared with --tools")
    from stumble.summary import summary
    from stumble.tapes import load
    from traces.story import tell

    found = load(tape)
    told = tell(found)
    if number is not None and number not in {step.number for step in told.steps}:
        raise Wrong(f"{tape} has steps 1 to {len(told.steps)}, no {number}")
    if as_json:
        lines = _exchange_rows(found, told) if exchanges else _step_rows(found, told, number)
        click.echo(json.dumps(list(lines), indent=2, ensure_ascii=False))
        return
    if exchanges:
        for row in _exchange_rows(found, told):
            click.echo(_exchange_line(row))
    else:
        for line in _told(found, told, number):
            click.echo(line)
    if number is None:
        click.echo(f"{found.trajectory.id}: {summary(found, told).line()}; {_ended(found)}")


def _ended(tape: "Tape") -> str:
    ending = tape.ending
    if ending is None:
        return "how it ended is not known" if tape.trajectory.imported else "not closed"
    verdict = {True: ", end state right", False: ", end state wrong", None: ""}[ending.passed]
    return f"ended {ending.ended}, exit {ending.exit_code}{verdict}"


def _labels(tape: "Tape", told: "Story") -> dict[int, str]:
    """Who answered each step and tool; nothing where all of them were answered live."""
    proofs = (*(step.seqs for step in told.steps), *(use.seqs for use in told.uses))
    shown = {seqs[-1] for seqs in proofs if seqs}
    labels = {
        x.seq: f"{x.answered_by}{', a cascade' if x.cascade else ''}"
        for x in tape.exchanges
        if x.seq in shown
    }
    return labels if set(labels.values()) - {"live"} else {}


def _told(tape: "Tape", told: "Story", number: int | None) -> Iterator[str]:
    labels = _labels(tape, told)
    pinned = {id for x in tape.exchanges for id in x.pinned}
    for step in told.steps:
        if number in (None, step.number):
            full = number is not None
            yield _head(step, labels.get(step.seqs[-1]) if step.source == "agent" else None)
            if step.missing:
                yield f"       (goes on from {step.missing}, which is not on this tape)"
            if step.message:
                yield _indented(step.message, full)
            for use in told.uses:
                if use.step == step.number:
                    yield from _use(use, full, labels, use.call_id in pinned)


def _head(step: "Step", label: str | None) -> str:
    lane = f"  lane {step.lane}" if step.lane else ""
    seqs = ",".join(map(str, step.seqs))
    model = f"  {step.model}" if step.model else ""
    tries = f"  {len(step.seqs)} attempts" if step.source == "agent" and len(step.seqs) > 1 else ""
    by = f"  {label}" if label else ""
    return f"{step.number:3}  {step.source}{model}{lane}{tries}{by}  [exchange {seqs}]"


def _use(use: "ToolUse", full: bool, labels: dict[int, str], pinned: bool) -> Iterator[str]:
    seqs = ",".join(map(str, use.seqs))
    where = f"{use.place}, joined by {use.join}, exchange {seqs}" if use.seqs else use.place
    yield _indented(f"-> {use.tool}({use.arguments})", full)
    mark = "!! " if use.is_error else "<- "
    said = "no result was ever sent" if use.result is None else use.result
    by = [labels[use.seqs[-1]]] if use.seqs and labels else []
    by += ["the model was told the recorded result"] if pinned else []
    yield _indented(f"{mark}{said}", full) + (f"  ({', '.join(by)})" if by else "")
    if full:
        yield f"       {where}"


def _indented(text: str, full: bool) -> str:
    if not full:
        text = " ".join(text.split())
        text = text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"
    return "\n".join(f"       {line}" for line in text.splitlines())


def _step_rows(tape: "Tape", told: "Story", number: int | None) -> Iterator[dict[str, object]]:
    by = {x.seq: x.answered_by for x in tape.exchanges}
    cascades = {x.seq for x in tape.exchanges if x.cascade}
    pinned = {id for x in tape.exchanges for id in x.pinned}
    for step in told.steps:
        if number in (None, step.number):
            yield {
                "step": step.number,
                "source": step.source,
                "model": step.model,
                "lane": step.lane,
                "message": step.message,
                "missing": step.missing,
                "exchanges": list(step.seqs),
                "answered_by": by[step.seqs[-1]] if step.source == "agent" else None,
                "cascade": step.source == "agent" and step.seqs[-1] in cascades,
                "tool_calls": [
                    {
                        "id": use.call_id,
                        "tool": use.tool,
                        "arguments": use.arguments,
                        "result": use.result,
                        "is_error": use.is_error,
                        "place": use.place,
                        "join": use.join,
                        "exchanges": list(use.seqs),
                        "answered_by": by[use.seqs[-1]] if use.seqs else None,
                        "drifted": use.call_id in pinned,
                    }
                    for use in told.uses
                    if use.step == step.number
                ],
            }


def _exchange_rows(tape: "Tape", told: "Story") -> Iterator[dict[str, object]]:
    struck = {injection.seq: injection.op for injection in tape.injections}
    for exchange in tape.exchanges:
        placed, answer = told.placed[exchange.seq], exchange.response
        yield {
            "seq": exchange.seq,
            "kind": placed.kind,
            "lane": placed.lane,
            "method": exchange.request.method,
            "url": exchange.request.url,
            "mcp": _mcp(exchange),
            "status": answer.status if answer else None,
            "error": exchange.error,
            "started": round(exchange.started, 6),
            "duration": _duration(exchange),
            "request_bytes": len(exchange.request.body),
            "response_bytes": len(answer.body) if answer else None,
            "chunks": len(answer.chunks) if answer else None,
            "version": answer.version if answer else None,
            "answered_by": exchange.answered_by,
            "cascade": exchange.cascade,
            "pinned": list(exchange.pinned),
            "attempt_of": placed.attempt_of,
            "redacted": exchange.redacted,
            "struck": struck.get(exchange.seq),
        }


def _mcp(exchange: "Exchange") -> str | None:
    """What was said to an MCP server: `tools/list`, or `tools/call get_order`."""
    from traces.dialects import mcp

    said = mcp.message(exchange.request)
    if said is None:
        return None
    if said.call is not None:
        return f"{said.method} {said.call.name}"
    return {"GET": "listens", "DELETE": "ends the session"}.get(said.method, said.method)


def _duration(exchange: "Exchange") -> float | None:
    from traces.story import over

    return round(over(exchange) - exchange.started, 6) if exchange.response else None


def _pinned(ids: object) -> list[str]:
    count = len(ids) if isinstance(ids, list) else 0
    return [f"{count} result{'' if count == 1 else 's'} pinned"] if count else []


_H2 = "HTTP/2.0"


def _exchange_line(row: dict[str, object]) -> str:
    took, size = row["duration"], row["response_bytes"]
    ms = f"{took * 1000:8.1f} ms" if isinstance(took, float) else "           "
    status = row["status"] or "---"
    notes = [str(row["mcp"])] if row["mcp"] else []
    notes += [str(row["error"])] if row["error"] else []
    notes += [f"{_H2}, replayed over HTTP/1.1"] if row["version"] == _H2 else []
    notes += [f"{row['answered_by']}"] if row["answered_by"] != "live" else []
    notes += ["live, a cascade"] if row["cascade"] else []
    notes += _pinned(row["pinned"])
    notes += [f"struck by {row['struck']}"] if row["struck"] else []
    notes += [f"again for {row['attempt_of']}"] if row["attempt_of"] is not None else []
    notes += (
        [f"{row['chunks']} chunks"] if isinstance(row["chunks"], int) and row["chunks"] > 1 else []
    )
    return (
        f"{row['seq']:4}  {row['kind']:5}  {status}  {ms}  {size or 0:8} B  "
        f"{row['method']} {row['url']}" + (f"  ({', '.join(notes)})" if notes else "")
    )
