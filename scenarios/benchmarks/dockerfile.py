"""The instructions of a Dockerfile that a plain folder can emulate: WORKDIR, COPY and ENV.

Every other instruction that changes the image (RUN above all) needs a container and is refused with
line and reason. Instructions that do not affect a task are ignored: labels, exposed ports, and CMD,
which a harness replaces.
"""

import json
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from copy import replace
from pathlib import Path, PurePosixPath

from msgspec import Struct

from scenarios.toml_reader import ScenarioError

IGNORED_INSTRUCTIONS = ("LABEL", "MAINTAINER", "EXPOSE", "STOPSIGNAL", "CMD")
_SYSTEM_FOLDER_NAMES = """
    bin boot dev etc home lib lib32 lib64 media mnt opt proc root run sbin srv sys tmp usr var
    logs tests solution
"""
NEEDS_CONTAINER = "needs a container, and tasks run in a plain folder here"
WORKAROUND = "have what it installs on this machine, and leave the line out in a copy of the task"
SYSTEM_FOLDERS = frozenset(_SYSTEM_FOLDER_NAMES.split())
"""Folders of / that belong to the machine or are mounted by a harness."""


class CopyInstruction(Struct, frozen=True, kw_only=True):
    """One COPY: source paths in the build context, and the target."""

    sources: tuple[Path, ...]
    target: PurePosixPath
    into: bool
    """Whether the target is a folder in which each source keeps its name."""


class TaskImage(Struct, frozen=True, kw_only=True):
    """The files and environment that a Dockerfile defines."""

    base: str
    workdir: PurePosixPath
    copies: tuple[CopyInstruction, ...] = ()
    env: Mapping[str, str]

    @property
    def top_folders(self) -> tuple[str, ...]:
        """The folders of / that it fills, `/app` and so on."""
        targets = (self.workdir, *(copy.target for copy in self.copies))
        return tuple(dict.fromkeys(f"/{path.parts[1]}" for path in targets))

    def copy_files(self, root: Path) -> None:
        """Copy all files below `root`, which takes the place of /."""
        (root / self.workdir.relative_to("/")).mkdir(parents=True, exist_ok=True)
        for copy in self.copies:
            target = root / copy.target.relative_to("/")
            for source in copy.sources:
                if source.is_dir():
                    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
                else:
                    into = copy.into or target.is_dir()
                    destination = target / source.name if into else target
                    destination.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(source, destination)


def read_dockerfile(path: Path, workdir: str | None = None) -> TaskImage:
    """Parse a Dockerfile; `workdir` overrides its WORKDIR.

    Raises ScenarioError with the line if an instruction needs a container.
    """
    image: TaskImage | None = None
    for number, word, rest in _read_instructions(path):
        here = f"line {number}"
        if word == "FROM":
            if image is not None or " " in rest:
                raise ScenarioError(
                    path, here, f"{_explain_refusal('FROM ' + rest)} (it builds in stages)"
                )
            image = TaskImage(base=rest, workdir=PurePosixPath("/"), env={})
        elif image is None:
            raise ScenarioError(path, here, f"{word} comes before FROM")
        else:
            image = _apply_instruction(path, here, image, word, rest)
    if image is None:
        raise ScenarioError(path, "", "it has no FROM")
    if workdir is not None:
        image = replace(image, workdir=PurePosixPath("/") / workdir)
    if image.workdir == PurePosixPath("/"):
        raise ScenarioError(path, "", "it has no WORKDIR, so that the whole machine would be its")
    for top in image.top_folders:
        if top[1:] in SYSTEM_FOLDERS:
            raise ScenarioError(path, "", f"it fills {top}, which is this machine's own here")
    return image


def _apply_instruction(path: Path, here: str, image: TaskImage, word: str, rest: str) -> TaskImage:
    if word in IGNORED_INSTRUCTIONS:
        return image
    if word not in ("WORKDIR", "COPY", "ENV") or "<<" in rest:
        raise ScenarioError(path, here, _explain_refusal(f"{word} {rest}"))
    if "$" in rest:
        raise ScenarioError(path, here, f"{word} {rest}: variables are not replaced here")
    if word == "WORKDIR":
        return replace(image, workdir=image.workdir / rest.strip('"'))
    try:
        words = _split_instruction_words(rest)
    except ValueError as error:
        raise ScenarioError(path, here, f"{word} {rest}: {error}") from None
    if word == "ENV":
        return replace(image, env={**image.env, **_parse_env_instruction(path, here, words)})
    copy = _parse_copy_instruction(path, here, image.workdir, words)
    return replace(image, copies=(*image.copies, copy))


def _parse_env_instruction(path: Path, here: str, words: list[str]) -> dict[str, str]:
    if words and "=" not in words[0]:  # the legacy form with one variable
        return {words[0]: " ".join(words[1:])}
    pairs = [each.partition("=") for each in words]
    if not all(equals for _, equals, _ in pairs):
        raise ScenarioError(path, here, f"ENV {' '.join(words)}: it is not KEY=VALUE")
    return {key: value for key, _, value in pairs}


def _parse_copy_instruction(
    path: Path, here: str, workdir: PurePosixPath, words: list[str]
) -> CopyInstruction:
    if words and words[0].startswith("--"):
        raise ScenarioError(path, here, _explain_refusal(f"COPY {words[0]}"))
    if len(words) < 2:
        raise ScenarioError(path, here, "COPY needs what to copy, and where to")
    *names, target = words
    context, sources = path.parent.resolve(), list[Path]()
    for name in names:
        matches = sorted(context.glob(name.lstrip("/"))) if name.strip("./") else [context]
        if not matches:
            raise ScenarioError(path, here, f"COPY {name}: there is no such file in {context}")
        if not all(each.resolve().is_relative_to(context) for each in matches):
            raise ScenarioError(path, here, f"COPY {name}: it lies outside of {context}")
        sources += matches
    into = target.endswith(("/", "/.")) or target == "." or len(sources) > 1
    target_path = PurePosixPath(*(part for part in (workdir / target).parts if part != "."))
    if ".." in target_path.parts or target_path == PurePosixPath("/"):
        raise ScenarioError(path, here, f"COPY to {target}: that is this machine's own here")
    return CopyInstruction(sources=tuple(sources), target=target_path, into=into)


def _split_instruction_words(rest: str) -> list[str]:
    if rest.startswith("["):
        words = json.loads(rest)
        if not isinstance(words, list) or not all(isinstance(each, str) for each in words):
            raise ValueError("it is no list of texts")
        return words
    return shlex.split(rest)


def _read_instructions(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line number, instruction and arguments, with continuation lines joined."""
    first_line, text = 0, ""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if re.match(r"#\s*escape\s*=", line):
            raise ScenarioError(path, f"line {number}", "another escape than \\ is not known here")
        if line.lstrip().startswith("#") or not (line.strip() or text):
            continue
        first_line = first_line or number
        text += line.strip()
        if text.endswith("\\"):
            text = text[:-1]
            continue
        word, _, rest = text.partition(" ")
        yield first_line, word.upper(), rest.strip()
        first_line, text = 0, ""
    if text:
        raise ScenarioError(path, f"line {first_line}", f"{text.strip()}: it ends in the middle")


def _explain_refusal(step: str) -> str:
    short = step if len(step) <= 60 else f"{step[:57]}..."
    return f"{short}: {NEEDS_CONTAINER}; {WORKAROUND}"
