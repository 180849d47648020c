"""The two tools of the built-in agent: a shell and an editor, in one folder.

Whatever goes wrong is a result in words, as the model would get it from any tool. The editor
keeps to the folder; a shell cannot, which is what a sandbox is for.
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

SHOWN = 30_000
"""Characters of a result that the model is shown; of more, the beginning and the end."""

type Given = Mapping[str, object]


def _tool(name: str, description: str, required: tuple[str, ...], **properties: str) -> Given:
    kinds = {key: {"type": "string", "description": text} for key, text in properties.items()}
    schema = {"type": "object", "properties": kinds, "required": list(required)}
    function = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": function}


OFFERED: tuple[Given, ...] = (
    _tool(
        "bash",
        "Run a command in a shell, in the working folder. What it leaves running is ended.",
        ("command",),
        command="the command",
    ),
    _tool(
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


class Hands:
    """What the model can do in a folder."""

    def __init__(self, folder: Path, *, patience: float) -> None:
        """`patience`: seconds that a command may take."""
        self._folder, self._patience = folder.resolve(strict=True), patience
        self._tools: Mapping[str, Callable[[Given], str]] = {"bash": self._bash, "edit": self._edit}

    def do(self, name: str, arguments: str) -> str:
        """The result of a call."""
        tool = self._tools.get(name)
        if tool is None:
            return f"error: there is no tool {name}; there are {', '.join(self._tools)}"
        try:
            given = json.loads(arguments)
        except ValueError as error:
            return f"error: the arguments of {name} are no JSON: {error}"
        if not isinstance(given, dict):
            return f"error: the arguments of {name} are no object"
        try:
            return tool(given)
        except (LookupError, ValueError) as error:
            return f"error: {error.args[0]}"
        except OSError as error:
            return f"error: {error.filename or name}: {error.strerror}"

    def _bash(self, given: Given) -> str:
        """Return code and output as JSON; the code is None for what took too long."""
        process = subprocess.Popen(
            ["/bin/sh", "-c", _text(given, "command")],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert process.stdout is not None
        heard = _Heard()
        reader = Thread(target=heard.read, args=(process.stdout,), daemon=True)
        reader.start()
        code: int | None = None
        try:
            code = process.wait(self._patience)
        except subprocess.TimeoutExpired:
            heard.note = f"\nended after {self._patience:g} s"
        finally:
            with suppress(ProcessLookupError, PermissionError):  # nobody is left in the group
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            reader.join(5)  # what has left the group may hold the pipe for ever
        return json.dumps({"returncode": code, "output": heard.text()}, ensure_ascii=False)

    def _edit(self, given: Given) -> str:
        path = self._inside(_text(given, "path"))
        match _text(given, "command"):
            case "view":
                return short(path.read_bytes().decode(errors="replace"))
            case "create":
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(_text(given, "text"))
                return f"wrote {given['path']}"
            case "replace":
                return self._replace(path, _text(given, "old"), _text(given, "new"))
            case other:
                raise ValueError(f"edit cannot {other}; it can view, create and replace")

    def _replace(self, path: Path, old: str, new: str) -> str:
        text = path.read_text()
        if (found := text.count(old) if old else 0) != 1:
            raise ValueError(f"the old text occurs {found} times in {path.name}, not once")
        path.write_text(text.replace(old, new))
        return f"replaced in {path.name}"

    def _inside(self, name: str) -> Path:
        path = (self._folder / name).resolve()
        if not path.is_relative_to(self._folder):
            raise ValueError(f"{name} is outside the working folder")
        return path


class _Heard:
    """The beginning and the end of what a command printed, however much it is."""

    def __init__(self) -> None:
        self._head, self._tail, self._size = b"", b"", 0
        self.note = ""

    def read(self, pipe: BinaryIO) -> None:
        with pipe:
            while data := os.read(pipe.fileno(), 1 << 16):
                self._size += len(data)
                room = SHOWN - len(self._head)
                self._head += data[:room]
                self._tail = (self._tail + data[room:])[-SHOWN:] if len(data) > room else self._tail

    def text(self) -> str:
        cut = self._size - len(self._head) - len(self._tail)
        between = f"\n... {cut} bytes left out ...\n".encode() if cut else b""
        whole = (self._head + between + self._tail).decode(errors="replace")
        return short(whole) + self.note


def short(text: str) -> str:
    """A text as the model is shown it."""
    if len(text) <= SHOWN:
        return text
    half = SHOWN // 2
    return f"{text[:half]}\n... {len(text) - SHOWN} characters left out ...\n{text[-half:]}"


def _text(given: Given, key: str) -> str:
    if key not in given:
        raise LookupError(f"the parameter {key} is missing")
    value = given[key]
    if not isinstance(value, str):
        raise ValueError(f"the parameter {key} is no text")
    return value
