"""The two tools of the built-in agent: a shell and an editor, in one folder.

Every failure is a result in words, which the model gets. The editor is confined to the folder; the
shell is not: confining it takes a sandbox.
"""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import BinaryIO

MAX_RESULT_CHARS = 30_000
"""Characters of a result that the model gets; of a longer one, the beginning and the end."""

type JsonMapping = Mapping[str, object]


def _define_builtin_tool(
    name: str, description: str, required: tuple[str, ...], **properties: str
) -> JsonMapping:
    kinds = {key: {"type": "string", "description": text} for key, text in properties.items()}
    schema = {"type": "object", "properties": kinds, "required": list(required)}
    function = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": function}


BUILTIN_TOOLS: tuple[JsonMapping, ...] = (
    _define_builtin_tool(
        "bash",
        "Run a command in a shell, in the working folder. What it leaves running is ended.",
        ("command",),
        command="the command",
    ),
    _define_builtin_tool(
        "edit",
        "View a file, create it (whatever was there before), or replace one piece of its text.",
        ("command", "path"),
        command="view, create or replace",
        path="relative to the working folder",
        text="create: the whole file",
        old="replace: the piece, which must occur exactly once",
        new="replace: what stands there instead",
    ),
)


class AgentTools:
    """Run the tool calls of a model in a folder."""

    def __init__(self, folder: Path, *, patience: float) -> None:
        """`patience`: seconds that a command may take."""
        self._folder, self._patience = folder.resolve(strict=True), patience
        self._tools: Mapping[str, Callable[[JsonMapping], str]] = {
            "bash": self._run_bash,
            "edit": self._edit_file,
        }

    def run_tool(self, name: str, arguments: str) -> str:
        """Return the result of a call."""
        tool = self._tools.get(name)
        if tool is None:
            return f"error: there is no tool {name}; there are {', '.join(self._tools)}"
        try:
            parsed = json.loads(arguments)
        except ValueError as error:
            return f"error: the arguments of {name} are no JSON: {error}"
        if not isinstance(parsed, dict):
            return f"error: the arguments of {name} are no object"
        try:
            return tool(parsed)
        except (LookupError, ValueError) as error:
            return f"error: {error.args[0]}"
        except OSError as error:
            return f"error: {error.filename or name}: {error.strerror}"

    def _run_bash(self, given: JsonMapping) -> str:
        """Return exit code and output as JSON; the code is null for a command that timed out."""
        process = subprocess.Popen(
            ["/bin/sh", "-c", _get_text_argument(given, "command")],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert process.stdout is not None
        output = _CommandOutput()
        reader = Thread(target=output.read_pipe, args=(process.stdout,), daemon=True)
        reader.start()
        code: int | None = None
        try:
            code = process.wait(self._patience)
        except subprocess.TimeoutExpired:
            output.note = f"\nended after {self._patience:g} s"
        finally:
            with suppress(ProcessLookupError, PermissionError):  # the process group is empty
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            reader.join(5)  # a process outside the group may keep the pipe open
        return json.dumps({"returncode": code, "output": output.to_text()}, ensure_ascii=False)

    def _edit_file(self, given: JsonMapping) -> str:
        path = self._resolve_inside(_get_text_argument(given, "path"))
        match _get_text_argument(given, "command"):
            case "view":
                return shorten_result(path.read_bytes().decode(errors="replace"))
            case "create":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(_get_text_argument(given, "text"))
                return f"wrote {given['path']}"
            case "replace":
                return self._replace_text(
                    path, _get_text_argument(given, "old"), _get_text_argument(given, "new")
                )
            case other:
                raise ValueError(f"edit cannot {other}; it can view, create and replace")

    def _replace_text(self, path: Path, old: str, new: str) -> str:
        text = path.read_text()
        if (count := text.count(old) if old else 0) != 1:
            raise ValueError(f"the old text occurs {count} times in {path.name}, not once")
        path.write_text(text.replace(old, new))
        return f"replaced in {path.name}"

    def _resolve_inside(self, name: str) -> Path:
        path = (self._folder / name).resolve()
        if not path.is_relative_to(self._folder):
            raise ValueError(f"{name} is outside the working folder")
        return path


class _CommandOutput:
    """The beginning and the end of a command's output, in bounded memory."""

    def __init__(self) -> None:
        self._head, self._tail, self._size = b"", b"", 0
        self.note = ""

    def read_pipe(self, pipe: BinaryIO) -> None:
        with pipe:
            while data := os.read(pipe.fileno(), 1 << 16):
                self._size += len(data)
                room = MAX_RESULT_CHARS - len(self._head)
                self._head += data[:room]
                self._tail = (
                    (self._tail + data[room:])[-MAX_RESULT_CHARS:]
                    if len(data) > room
                    else self._tail
                )

    def to_text(self) -> str:
        cut = self._size - len(self._head) - len(self._tail)
        between = f"\n... {cut} bytes left out ...\n".encode() if cut else b""
        text = (self._head + between + self._tail).decode(errors="replace")
        return shorten_result(text) + self.note


def shorten_result(text: str) -> str:
    """Cut a text to MAX_RESULT_CHARS, keeping its beginning and end."""
    if len(text) <= MAX_RESULT_CHARS:
        return text
    half = MAX_RESULT_CHARS // 2
    return (
        f"{text[:half]}\n... {len(text) - MAX_RESULT_CHARS} characters left out ...\n{text[-half:]}"
    )


def _get_text_argument(given: JsonMapping, key: str) -> str:
    if key not in given:
        raise LookupError(f"the parameter {key} is missing")
    value = given[key]
    if not isinstance(value, str):
        raise ValueError(f"the parameter {key} is no text")
    return value
