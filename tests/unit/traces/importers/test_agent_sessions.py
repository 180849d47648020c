"""Sessions that coding agents keep on disk are runs with steps, calls, errors and tokens."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from stumble.imports.import_files import import_recordings
from stumble.imports.session_folders import find_session_folders
from traces.store.trace_store import TraceStore

RUNS = """select source, agent, model, n_steps, prompt_tokens, completion_tokens, cost_usd, seconds
    from trajectories order by 1"""
CALLS = "select tool, arguments, result, is_error, duration from tool_calls order by step, position"


class Home:
    """A home folder with sessions, and a store."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder / "home", TraceStore(folder / ".stumble")

    def write(self, name: str, content: object) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def import_one(self, path: Path) -> None:
        for state in ("new", "known"):
            [result] = import_recordings(self.store, [path])
            assert (result.state, result.why) == (state, None)

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        with self.store.connect() as connection:
            return connection.execute(query).fetchall()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.mark.parametrize("form", ["document", "lines"])
def test_gemini_cli(form: str, home: Home) -> None:
    result = [{"functionResponse": {"id": "c", "name": "ls", "response": {"error": "no folder"}}}]
    call = {"id": "c", "name": "ls", "args": {"path": "x"}, "status": "error", "result": result}
    tokens = {"input": 100, "output": 5, "cached": 60, "thoughts": 2, "tool": 0, "total": 107}
    messages: list[dict[str, Any]] = [
        {"id": "1", "timestamp": "2026-01-01T10:00:00Z", "type": "user", "content": "list"},
        {"id": "2", "timestamp": "2026-01-01T10:00:02Z", "type": "gemini", "content": "",
         "toolCalls": [call], "tokens": tokens, "model": "gemini-2.5-pro"},
        {"id": "3", "timestamp": "2026-01-01T10:00:04Z", "type": "gemini", "content": "none",
         "tokens": tokens, "model": "gemini-2.5-pro"},
        {"id": "4", "timestamp": "2026-01-01T10:00:05Z", "type": "info", "content": "bye"},
    ]  # fmt: skip
    session = {"sessionId": "s", "projectHash": "h", "startTime": "2026-01-01T10:00:00Z",
               "lastUpdated": "2026-01-01T10:00:05Z", "messages": messages}  # fmt: skip
    document: object = session
    if form == "lines":
        first = {name: value for name, value in session.items() if name != "messages"}
        older: dict[str, Any] = {**messages[1], "toolCalls": []}
        undone = {"id": "9", "type": "user", "content": "no"}
        lines = [first, messages[0], older, *messages[1:], undone, {"$rewindTo": "9"}]
        document = "\n".join(map(json.dumps, lines))
    home.import_one(home.write(".gemini/tmp/h/chats/session-1.json", document))
    [(source, _, model, steps, prompt, completion, cost, seconds)] = home.ask(RUNS)
    assert (source, model, steps, prompt, completion, seconds) == (
        "gemini-cli", "gemini-2.5-pro", 2, 200, 14, 5.0,
    )  # fmt: skip
    assert cost > 0
    assert home.ask(CALLS) == [("ls", '{"path":"x"}', "no folder", True, None)]


def make_opencode() -> dict[str, Any]:
    tokens = {"input": 10, "output": 4, "reasoning": 1, "cache": {"read": 30, "write": 2}}
    answer = {"id": "msg_2", "role": "assistant", "sessionID": "ses_1", "modelID": "m",
              "cost": 0.25, "tokens": tokens, "finish": "tool-calls",
              "time": {"created": 1_790_000_001_000, "completed": 1_790_000_004_000}}  # fmt: skip
    state = {"status": "error", "input": {"command": "ls"}, "error": "no",
             "time": {"start": 1_790_000_002_000, "end": 1_790_000_002_500}}  # fmt: skip
    asked = {"id": "msg_1", "role": "user", "sessionID": "ses_1",
             "time": {"created": 1_790_000_000_000}}  # fmt: skip
    return {
        "info": {"id": "ses_1", "projectID": "p", "title": "t"},
        "messages": [
            {"info": asked, "parts": [{"id": "prt_1", "type": "text", "text": "list"}]},
            {"info": answer, "parts": [
                {"id": "prt_2", "type": "text", "text": "I look"},
                {"id": "prt_3", "type": "tool", "tool": "bash", "callID": "c", "state": state},
            ]},
        ],
    }  # fmt: skip


def write_opencode_files(home: Home, session: dict[str, Any]) -> Path:
    root = ".local/share/opencode/storage"
    for message in session["messages"]:
        id = message["info"]["id"]
        home.write(f"{root}/message/ses_1/{id}.json", message["info"])
        for part in message["parts"]:
            home.write(f"{root}/part/{id}/{part['id']}.json", part)
    return home.write(f"{root}/session/p/ses_1.json", session["info"])


def write_opencode_database(home: Home, session: dict[str, Any]) -> Path:
    path = home.folder / ".local/share/opencode/opencode.db"
    path.parent.mkdir(parents=True)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("create table session (id text, data text)")
        connection.execute(
            "create table message (id text, session_id text, time_created int, data text)"
        )
        connection.execute("create table part (id text, message_id text, data text)")
        connection.execute("insert into session values ('ses_1', '{}')")
        for number, message in enumerate(session["messages"]):
            id = message["info"]["id"]
            row = (id, "ses_1", number, json.dumps(message["info"]))
            connection.execute("insert into message values (?, ?, ?, ?)", row)
            for part in message["parts"]:
                row3 = (part["id"], id, json.dumps(part))
                connection.execute("insert into part values (?, ?, ?)", row3)
    return path


@pytest.mark.parametrize("form", ["export", "files", "database"])
def test_opencode(form: str, home: Home) -> None:
    session = make_opencode()
    if form == "export":
        path = home.write("export.json", session)
    else:
        write = write_opencode_files if form == "files" else write_opencode_database
        path = write(home, session)
    home.import_one(path)
    assert home.ask(RUNS) == [("opencode", "opencode", "m", 1, 42, 4, 0.25, 4.0)]
    assert home.ask(CALLS) == [("bash", '{"command":"ls"}', "no", True, 0.5)]
    assert home.ask("select finish_reason from steps where source = 'agent'") == [("tool-calls",)]


def test_a_database_of_another_program_is_refused(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("create table x (y)")
    [result] = import_recordings(home.store, [path])
    assert "no database of opencode" in str(result.why)


def test_continue(home: Home) -> None:
    function = {"name": "read_file", "arguments": '{"filepath":"a"}'}
    call = {"id": "c", "type": "function", "function": function}
    state = {"toolCallId": "c", "toolCall": call, "status": "errored",
             "output": [{"name": "a", "content": "no file"}]}  # fmt: skip
    history = [
        {"message": {"role": "user", "content": [{"type": "text", "text": "read"}]}},
        {"message": {"role": "assistant", "content": "", "toolCalls": [call]},
         "toolCallStates": [state], "promptLogs": [{"modelTitle": "m"}]},
        {"message": {"role": "assistant", "content": "none"}, "promptLogs": []},
    ]  # fmt: skip
    session = {"sessionId": "s", "title": "t", "workspaceDirectory": "/x", "history": history}
    home.import_one(home.write(".continue/sessions/s.json", session))
    [row] = home.ask(RUNS)
    assert row[:4] == ("continue", "continue", "m", 2)
    assert home.ask(CALLS) == [("read_file", '{"filepath":"a"}', "no file", True, None)]


def test_cline_with_blocks_and_with_calls_in_its_text(home: Home) -> None:
    task = {
        "role": "user",
        "content": [{"type": "text", "text": "<task>\nread\n</task>"}],
        "ts": 1000,
    }
    use = {"type": "tool_use", "id": "t", "name": "read_file", "input": {"path": "a"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "text"}
    written = "<thinking>so</thinking><execute_command>\n<command>ls</command>\n</execute_command>"
    messages = [
        task,
        {"role": "assistant", "content": [use], "modelInfo": {"modelId": "m"}, "ts": 3000},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": written},
        {"role": "user", "content": "[execute_command for 'ls'] Result:\na b"},
        {"role": "assistant", "content": "done", "ts": 5000},
    ]
    home.import_one(home.write("tasks/1/api_conversation_history.json", messages))
    [row] = home.ask(RUNS)
    assert (row[0], row[2], row[3], row[-1]) == ("cline", "m", 3, 4.0)
    assert home.ask(CALLS) == [
        ("read_file", '{"path":"a"}', "text", None, None),
        ("execute_command", '{"command":"ls"}', "a b", None, None),
    ]


AIDER = """
# aider chat started at 2026-01-01 10:00:00

> Aider v0.86.0
> Main model: gpt-4o with diff edit format
> Git repo: .git with 3 files

#### add a function
#### and a test

I add it:

a.py
```python
def f(): ...
```

> Tokens: 5.2k sent, 1.1k cache hit, 120 received. Cost: $0.02 message, $0.02 session.
> Applied edit to a.py

#### thanks

You are welcome.

# aider chat started at 2026-01-02 10:00:00

#### hello

Hi.
"""


def test_aider(home: Home) -> None:
    home.import_one(home.write(".aider.chat.history.md", AIDER))
    first, second = home.ask("select model, n_steps, prompt_tokens, completion_tokens, cost_usd"
                             " from trajectories order by recorded_at")  # fmt: skip
    assert first == ("gpt-4o", 2, 5200, 120, 0.02)
    assert second == (None, 1, None, None, None)
    texts = home.ask("select source, message from steps order by trajectory_id, step")
    assert ("user", "add a function\nand a test") in texts
    assert ("agent", "You are welcome.") in texts


def test_sessions_are_found_where_the_agents_keep_them(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home.folder))
    write_opencode_files(home, make_opencode())
    home.write(".gemini/tmp/h/chats/session-1.json", {})
    home.write(".aider.chat.history.md", AIDER)
    cline = ".config/Code/User/globalStorage/saoudrizwan.claude-dev/tasks"
    home.write(f"{cline}/1/api_conversation_history.json", [])
    found = [str(path.relative_to(home.folder)) for path in find_session_folders()]
    assert found[:4] == [
        ".gemini/tmp", ".local/share/opencode/storage/session", cline, ".aider.chat.history.md",
    ]  # fmt: skip
