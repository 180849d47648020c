"""Sessions of coding agents on disk: each answer once, with its calls, their results and tokens."""

import json
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from stumble.imports.import_files import import_recordings, list_import_files
from traces.importers import find_format, read_run_tables
from traces.store.trace_store import TraceStore

type Line = dict[str, Any]


def write_lines(path: Path, lines: Iterable[Mapping[str, object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


class ClaudeSession:
    """Lines as Claude Code writes them."""

    def __init__(self, id: str = "s-1") -> None:
        self.id, self.lines, self._number = id, list[Line](), count(1)

    def add(self, type: str, message: object, **more: object) -> Line:
        number = next(self._number)
        line = {
            "parentUuid": f"{self.id}-{number - 1}" if number > 1 else None,
            "isSidechain": False,
            "sessionId": self.id,
            "type": type,
            "message": message,
            "uuid": f"{self.id}-{number}",
            "timestamp": f"2026-11-01T10:00:{number:02}.000Z",
        }
        self.lines.append(line | more)
        return self.lines[-1]

    def asks(self, text: str) -> None:
        self.add("user", {"role": "user", "content": text})

    def answers(
        self, id: str, *blocks: Mapping[str, object], tokens: int = 10, stop: str | None = None
    ) -> None:
        """Write a line for each block; all have the usage of the whole answer, as far as known."""
        for place, block in enumerate(blocks, 1):
            usage = {
                "input_tokens": 3,
                "cache_read_input_tokens": 100,
                "cache_creation_input_tokens": 7,
                "output_tokens": tokens if place == len(blocks) else 1,
            }
            message = {"id": id, "role": "assistant", "model": "claude-x", "content": [block]}
            self.add("assistant", message | {"usage": usage, "stop_reason": stop})

    def returns(self, call: str, text: str, **block: object) -> None:
        result = {"type": "tool_result", "tool_use_id": call, "content": text} | block
        self.add("user", {"role": "user", "content": [result]})


def use(id: str, name: str = "Bash", **input: object) -> Line:
    return {"type": "tool_use", "id": id, "name": name, "input": input}


def text(words: str) -> Line:
    return {"type": "text", "text": words}


def make_claude_session() -> ClaudeSession:
    session = ClaudeSession()
    session.lines.append({"type": "summary", "summary": "earlier", "leafUuid": "x"})
    session.asks("fix it")
    session.answers(
        "m1", {"type": "thinking", "thinking": "hm"}, text("I look."), use("t1"), use("t2")
    )
    session.returns("t1", "fine")
    session.returns("t2", "no such file", is_error=True)
    session.lines.append({"type": "file-history-snapshot", "messageId": "y", "snapshot": {}})
    session.answers("m2", text("Done."), stop="end_turn")
    return session


def read(path: Path) -> dict[str, list[Line]]:
    return {name: table.to_pylist() for name, table in read_run_tables(path).items()}


def test_a_session_of_claude_code_has_each_answer_once(tmp_path: Path) -> None:
    rows = read(write_lines(tmp_path / "a.jsonl", make_claude_session().lines))
    [run] = rows["trajectories"]
    assert (run["source"], run["agent"], run["model"]) == ("claude-code", "claude-code", "claude-x")
    assert (run["n_steps"], run["ended"], run["seconds"]) == (2, None, 7.0)
    assert (run["prompt_tokens"], run["completion_tokens"]) == (220, 20)
    calls = [(c["call_id"], c["is_error"], c["result"], c["duration"]) for c in rows["tool_calls"]]
    assert calls == [("t1", False, "fine", 1.0), ("t2", True, "no such file", 2.0)]
    answers = [s["message"] for s in rows["steps"] if s["source"] == "agent"]
    assert answers == ["I look.", "Done."]


def test_a_result_between_the_lines_of_an_answer_belongs_to_its_call(tmp_path: Path) -> None:
    session = ClaudeSession()
    session.asks("go")
    session.answers("m1", use("t1"))
    session.returns("t1", "one")
    session.answers("m1", use("t2"))
    session.returns("t2", "two")
    rows = read(write_lines(tmp_path / "a.jsonl", session.lines))
    assert [(c["call_id"], c["result"], c["step"]) for c in rows["tool_calls"]] == [
        ("t1", "one", 2),
        ("t2", "two", 2),
    ]


def import_folder(folder: Path, store: Path) -> list[Line]:
    opened = TraceStore(store)
    list(import_recordings(opened, list_import_files([folder])))
    with opened.open_locked() as connection:
        rows = connection.sql("SELECT * FROM trajectories").to_arrow_table().to_pylist()
    return list(rows)


def test_a_resumed_session_is_one_run_and_a_subagent_another(tmp_path: Path) -> None:
    first = make_claude_session()
    write_lines(tmp_path / "sessions" / "p" / "a.jsonl", first.lines)
    resumed = make_claude_session()
    resumed.lines = [line | {"sessionId": "s-2"} for line in first.lines]
    resumed.asks("and this")
    resumed.answers("m3", text("Done, too."), stop="end_turn")
    write_lines(tmp_path / "sessions" / "p" / "b.jsonl", resumed.lines)
    helper = ClaudeSession("s-3")
    helper.asks("look around")
    helper.answers("m9", text("Nothing."), stop="end_turn")
    lines = [line | {"isSidechain": True, "agentId": "a9"} for line in helper.lines]
    write_lines(tmp_path / "sessions" / "p" / "s-1" / "subagents" / "agent-a9.jsonl", lines)
    runs = import_folder(tmp_path / "sessions", tmp_path / "store")
    found = sorted((run["agent"], run["n_steps"]) for run in runs)
    assert found == [("claude-code", 3), ("claude-code subagent", 1)]


def test_an_answer_that_the_client_made_up_is_no_step(tmp_path: Path) -> None:
    session = make_claude_session()
    message = {"id": "m8", "role": "assistant", "model": "<synthetic>", "content": [text("529")]}
    session.add("assistant", message, isApiErrorMessage=True)
    rows = read(write_lines(tmp_path / "a.jsonl", session.lines))
    assert rows["trajectories"][0]["n_steps"] == 2


class CodexSession:
    """Lines as Codex writes them."""

    def __init__(self) -> None:
        self.lines, self._number = list[Line](), count(1)
        self._total = 0
        self.add("session_meta", id="c-1", originator="codex_cli_rs", cli_version="0.171.0")
        self.add("turn_context", model="gpt-x")

    def add(self, line_type: str, **payload: object) -> None:
        at = f"2026-11-01T10:00:{next(self._number):02}.000Z"
        self.lines.append({"timestamp": at, "type": line_type, "payload": payload})

    def item(self, type: str, **payload: object) -> None:
        self.add("response_item", **{"type": type, **payload})

    def says(self, role: str, words: str) -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        self.item("message", role=role, content=[{"type": kind, "text": words}])

    def calls(self, id: str, command: str) -> None:
        arguments = json.dumps({"cmd": command})
        self.item("function_call", name="exec_command", arguments=arguments, call_id=id)

    def returns(self, id: str, code: int) -> None:
        output = f"Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\nx"
        self.item("function_call_output", call_id=id, output=output)

    def counts(self, tokens: int, *, again: bool = False) -> None:
        self._total += 0 if again else tokens
        last = {
            "input_tokens": tokens,
            "cached_input_tokens": 2,
            "output_tokens": 5,
            "reasoning_output_tokens": 1,
        }
        info = {"total_token_usage": {"input_tokens": self._total}, "last_token_usage": last}
        self.add("event_msg", type="token_count", info=info)


def make_codex_session() -> CodexSession:
    session = CodexSession()
    session.add("event_msg", type="task_started")
    session.says("developer", "rules")
    session.says("user", "fix it")
    session.add("event_msg", type="token_count", info=None)
    session.item("reasoning", summary=[])
    session.says("assistant", "I look.")
    session.calls("c1", "ls")
    session.calls("c2", "cat x")
    session.counts(100)
    session.counts(100, again=True)
    session.returns("c1", 0)
    session.returns("c2", 2)
    session.calls("c3", "true")
    session.counts(200)
    session.returns("c3", 0)
    session.says("assistant", "Done.")
    session.counts(300)
    session.add("event_msg", type="task_complete")
    return session


def test_a_session_of_codex_has_answers_calls_and_tokens(tmp_path: Path) -> None:
    rows = read(write_lines(tmp_path / "rollout.jsonl", make_codex_session().lines))
    [run] = rows["trajectories"]
    assert (run["source"], run["agent"], run["model"]) == ("codex", "codex_cli_rs", "gpt-x")
    assert (run["n_steps"], run["ended"]) == (3, None)
    assert (run["prompt_tokens"], run["completion_tokens"], run["reasoning_tokens"]) == (600, 15, 3)
    calls = [(c["call_id"], c["is_error"], c["step"]) for c in rows["tool_calls"]]
    assert calls == [("c1", False, 3), ("c2", True, 3), ("c3", False, 4)]
    assert [s["source"] for s in rows["steps"]] == ["system", "user", "agent", "agent", "agent"]


def test_a_session_of_the_first_form_is_read(tmp_path: Path) -> None:
    meta = {"id": "c-0", "timestamp": "2025-06-01T10:00:00Z", "instructions": None}
    lines: list[Line] = [meta, {"record_type": "state"}]
    lines += [
        line["payload"] for line in make_codex_session().lines if line["type"] == "response_item"
    ]
    rows = read(write_lines(tmp_path / "rollout.jsonl", lines))
    assert rows["trajectories"][0]["n_steps"] == 3
    assert [c["is_error"] for c in rows["tool_calls"]] == [False, True, False]


@pytest.mark.parametrize("session", [make_claude_session(), make_codex_session()])
def test_a_session_that_is_being_written_is_read_and_grows(
    session: ClaudeSession | CodexSession, tmp_path: Path
) -> None:
    """A cut in the last line, as of a session that goes on."""
    path = write_lines(tmp_path / "sessions" / "a.jsonl", session.lines)
    whole = path.read_bytes()
    last = len(whole) - len(json.dumps(session.lines[-1])) - 1
    path.write_bytes(whole[: last + 9])
    [cut] = import_folder(path.parent, tmp_path / "store")
    path.write_bytes(whole)
    [grown] = import_folder(path.parent, tmp_path / "store")
    assert cut["n_steps"] <= grown["n_steps"]
    assert grown["seconds"] > cut["seconds"]


def test_files_that_only_mention_sessions_are_none(tmp_path: Path) -> None:
    for number, start in enumerate(('{"sessionId": "a"}\n', '{"payload": 1}\n', '["uuid"]\n')):
        path = tmp_path / f"{number}.jsonl"
        path.write_text(start, encoding="utf-8")
        assert find_format(path) is None
