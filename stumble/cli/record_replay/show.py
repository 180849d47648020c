"""`stumble show`: print the steps or exchanges of a tape, or the steps of a run of the store."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.cli.record_replay.show_stored_run import (
    describe_unusual_end,
    format_hosted_calls,
    indent_step_text,
    list_hosted_calls,
    show_stored_run,
)
from stumble.cli.tape_path import RunPath, TapePath
from stumble.errors import UsageError

if TYPE_CHECKING:
    from traces.conversation.derived_steps import DerivedSteps, ToolUse, TrajectoryStep
    from traces.model import Exchange
    from traces.tape.reader import Tape


@click.command()
@click.argument("tape", type=RunPath(), metavar="TAPE|RUN")
@click.argument("other", type=TapePath(), required=False)
@click.option(
    "--tools",
    is_flag=True,
    help="List the tools offered to the model; with a second tape, list the changes (exit code 1 "
    "if there are any).",
)
@click.option("--exchanges", is_flag=True, help="List HTTP exchanges instead of steps.")
@click.option("--step", "number", type=int, metavar="N", help="Print step N in full.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(
    tape: Path | str,
    other: Path | None,
    tools: bool,
    exchanges: bool,
    number: int | None,
    as_json: bool,
) -> None:
    """List the steps of a recording: the agent's messages, tool calls and their results.

    RUN is the id (`trajectory_id`) of a run of the store, recorded or imported. An imported
    conversation has no exchanges and no offered tools.

    \b
    stumble show refund.tape
    stumble show refund.tape --step 7
    stumble show tau-1f0c2d3e4a5b6c7d
    stumble show refund.tape --exchanges
    stumble show --tools refund.tape
    stumble show --tools monday.tape tuesday.tape
    """
    if isinstance(tape, str):
        if tools or exchanges or other is not None:
            raise UsageError(f"{tape} is an imported conversation, which has only steps")
        show_stored_run(tape, number, as_json=as_json)
        return
    if tools:
        from stumble.cli.tool_diff import show_tools

        show_tools(tape, other, as_json=as_json)
        return
    if other is not None:
        raise UsageError("two tapes are only compared with --tools")
    from stumble.control_characters import escape_controls
    from stumble.runs.summary import describe_unread_models, summarize_tape
    from stumble.store.tape_files import load_tape
    from traces.conversation.derived_steps import derive_tape_steps

    recording = load_tape(tape)
    derived = derive_tape_steps(recording)
    if number is not None and number not in {step.number for step in derived.steps}:
        raise UsageError(f"{tape} has steps 1 to {len(derived.steps)}, but no step {number}")
    if as_json:
        lines = (
            _list_exchange_rows(recording, derived)
            if exchanges
            else _list_step_rows(recording, derived, number)
        )
        click.echo(json.dumps(list(lines), indent=2, ensure_ascii=False))
        return
    if exchanges:
        for row in _list_exchange_rows(recording, derived):
            click.echo(escape_controls(_format_exchange_line(row)))
    else:
        for line in _format_steps(recording, derived, number):
            click.echo(escape_controls(line))
    if number is None:
        click.echo(
            f"{recording.trajectory.id}: {summarize_tape(recording, derived).to_line()}; "
            f"{_describe_ending(recording)}"
        )
        for line in describe_unread_models(x.request for x in recording.exchanges):
            click.echo(escape_controls(f"note: {line}"))


def _describe_ending(tape: "Tape") -> str:
    ending = tape.ending
    if ending is None:
        imported = tape.trajectory.is_imported
        return "how it ended is not known" if imported else f"cut at exchange {tape.cut_at}"
    verdict = {True: ", end state right", False: ", end state wrong", None: ""}[ending.passed]
    return f"ended {ending.ended}, exit {ending.exit_code}{verdict}"


def _label_answers(tape: "Tape", derived_steps: "DerivedSteps") -> dict[int, str]:
    """Map seq to the origin of the answer; empty if all answers were live."""
    proofs = (
        *(step.seqs for step in derived_steps.steps),
        *(use.seqs for use in derived_steps.tool_uses),
    )
    shown = {seqs[-1] for seqs in proofs if seqs}
    labels = {
        x.seq: f"{x.answered_by}{', a cascade' if x.cascade else ''}"
        for x in tape.exchanges
        if x.seq in shown
    }
    return labels if set(labels.values()) - {"live"} else {}


def _format_steps(tape: "Tape", derived_steps: "DerivedSteps", number: int | None) -> Iterator[str]:
    labels = _label_answers(tape, derived_steps)
    pinned = {id for x in tape.exchanges for id in x.pinned}
    for step in derived_steps.steps:
        if number in (None, step.number):
            full = number is not None
            yield _format_step_head(
                step, labels.get(step.seqs[-1]) if step.source == "agent" else None
            )
            if step.missing:
                yield f"       (goes on from {step.missing}, which is not on this tape)"
            yield from format_hosted_calls(step.hosted, full)
            text = _append_media(step.message, step.media)
            if text:
                yield indent_step_text(text, full)
            for use in derived_steps.tool_uses:
                if use.step == step.number:
                    yield from _format_tool_use(use, full, labels, use.call_id in pinned)


def _format_step_head(step: "TrajectoryStep", label: str | None) -> str:
    lane = f"  lane {step.lane}" if step.lane else ""
    seqs = ",".join(map(str, step.seqs))
    model = f"  {step.model}" if step.model else ""
    tries = f"  {len(step.seqs)} attempts" if step.source == "agent" and len(step.seqs) > 1 else ""
    by = f"  {label}" if label else ""
    end = describe_unusual_end(step.source, step.finish)
    return f"{step.number:3}  {step.source}{model}{lane}{tries}{by}{end}  [exchange {seqs}]"


def _append_media(text: str, media: Iterable[str]) -> str:
    """Return a text with what is beside it, such as `[2 images]`."""
    counts = Counter(media)
    named = [f"[{n} {kind}{'' if n == 1 else 's'}]" for kind, n in counts.items()]
    return " ".join([text, *named] if text else named)


def _format_tool_use(
    use: "ToolUse", full: bool, labels: dict[int, str], pinned: bool
) -> Iterator[str]:
    seqs = ",".join(map(str, use.seqs))
    where = f"{use.place}, joined by {use.join}, exchange {seqs}" if use.seqs else use.place
    cut = "  (cut off)" if use.incomplete else ""
    yield indent_step_text(f"-> {use.tool}({use.arguments})", full) + cut
    mark = {True: "!! ", False: "<- ", None: "<? "}[use.is_error]
    result = "no result was ever sent" if use.result is None else use.result
    result = _append_media(result, use.media)
    by = [labels[use.seqs[-1]]] if use.seqs and labels else []
    by += ["the model was told the recorded result"] if pinned else []
    yield indent_step_text(f"{mark}{result}", full) + (f"  ({', '.join(by)})" if by else "")
    if full:
        yield f"       {where}"


def _list_step_rows(
    tape: "Tape", derived_steps: "DerivedSteps", number: int | None
) -> Iterator[dict[str, object]]:
    by = {x.seq: x.answered_by for x in tape.exchanges}
    cascades = {x.seq for x in tape.exchanges if x.cascade}
    pinned = {id for x in tape.exchanges for id in x.pinned}
    for step in derived_steps.steps:
        if number in (None, step.number):
            yield {
                "step": step.number,
                "source": step.source,
                "model": step.model,
                "lane": step.lane,
                "message": step.message,
                "missing": step.missing,
                "finish_reason": step.finish,
                "media": list(step.media),
                "hosted": list_hosted_calls(step.hosted),
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
                        "incomplete": use.incomplete,
                        "media": list(use.media),
                    }
                    for use in derived_steps.tool_uses
                    if use.step == step.number
                ],
            }


def _list_exchange_rows(tape: "Tape", derived_steps: "DerivedSteps") -> Iterator[dict[str, object]]:
    from traces.dialects.rpc_method import read_mcp_method, read_rpc_method

    operators = {injection.seq: injection.op for injection in tape.injections}
    for exchange in tape.exchanges:
        placed, answer = derived_steps.contexts[exchange.seq], exchange.response
        yield {
            "seq": exchange.seq,
            "kind": placed.kind,
            "lane": placed.lane,
            "method": exchange.request.method,
            "url": exchange.request.url,
            "mcp": read_mcp_method(exchange.request),
            "rpc": read_rpc_method(exchange.request),
            "status": answer.status if answer else None,
            "error": exchange.error,
            "started": round(exchange.started, 6),
            "duration": _exchange_duration(exchange),
            "request_bytes": len(exchange.request.body),
            "response_bytes": len(answer.body) if answer else None,
            "chunks": len(answer.chunks) if answer else None,
            "version": answer.version if answer else None,
            "answered_by": exchange.answered_by,
            "cascade": exchange.cascade,
            "pinned": list(exchange.pinned),
            "substituted": list(exchange.substituted),
            "renamed": list(exchange.renamed),
            "attempt_of": placed.attempt_of,
            "redacted": exchange.redacted,
            "fault": operators.get(exchange.seq),
        }


def _exchange_duration(exchange: "Exchange") -> float | None:
    from traces.conversation.derived_steps import find_answer_end

    return round(find_answer_end(exchange) - exchange.started, 6) if exchange.response else None


def _describe_pinned(ids: object) -> list[str]:
    count = len(ids) if isinstance(ids, list) else 0
    return [f"{count} result{'' if count == 1 else 's'} pinned"] if count else []


def _describe_prefix(substituted: object, renamed: object) -> list[str]:
    from traces.conversation.prefix_changes import describe_counts

    shown = len(substituted) if isinstance(substituted, list) else 0
    return list(describe_counts(shown, len(renamed) // 2 if isinstance(renamed, list) else 0))


_H2 = "HTTP/2.0"


def _format_exchange_line(row: dict[str, object]) -> str:
    took, size = row["duration"], row["response_bytes"]
    ms = f"{took * 1000:8.1f} ms" if isinstance(took, float) else "           "
    status = row["status"] or "---"
    notes = [str(row["rpc"])] if row["rpc"] else []
    notes += [str(row["error"])] if row["error"] else []
    notes += [f"{_H2}, replayed over HTTP/1.1"] if row["version"] == _H2 else []
    notes += [f"{row['answered_by']}"] if row["answered_by"] != "live" else []
    notes += ["live, a cascade"] if row["cascade"] else []
    notes += _describe_pinned(row["pinned"])
    notes += _describe_prefix(row["substituted"], row["renamed"])
    notes += [f"faulted by {row['fault']}"] if row["fault"] else []
    notes += [f"again for {row['attempt_of']}"] if row["attempt_of"] is not None else []
    notes += (
        [f"{row['chunks']} chunks"] if isinstance(row["chunks"], int) and row["chunks"] > 1 else []
    )
    return (
        f"{row['seq']:4}  {row['kind']:5}  {status}  {ms}  {size or 0:8} B  "
        f"{row['method']} {row['url']}" + (f"  ({', '.join(notes)})" if notes else "")
    )
