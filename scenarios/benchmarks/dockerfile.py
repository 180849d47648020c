"""What of a Dockerfile can be had in a plain folder: WORKDIR, COPY and ENV.

Whatever else makes an image what it is (RUN above all) needs a container, and is refused by line
and reason instead of being left out. What changes nothing for a task is passed over: labels,
exposed ports, and CMD, which a harness replaces.
"""

import json
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from scenarios.table import ScenarioError

PASSED_OVER = ("LABEL", "MAINTAINER", "EXPOSE", "STOPSIGNAL", "CMD")
_SYSTEM = """
    bin boot dev etc home lib lib32 lib64 media mnt opt proc root run sbin srv sys tmp usr var
    logs tests solution
"""
CONTAINED = "needs a container, and tasks run in a plain folder here"
NEXT = "have what it installs on this machine, and leave the line out in a copy of the task"
SYSTEM = frozenset(_SYSTEM.split())
"""Folders of / that are the machine's own, or that a harness puts there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One COPY: what lies in the context, and where it goes."""

    sources: tuple[Path, ...]
    target: PurePosixPath
    into: bool
    """Whether the target is a folder in which sources get their own names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """What a Dockerfile says of the files of a task."""

    base: str
    workdir: PurePosixPath
    copies: tuple[Copy, ...] = ()
    env: Mapping[str, str]

    @property
    def tops(self) -> tuple[str, ...]:
        """The folders of / that it fills, `/app` and so on."""
        named = (self.workdir, *(copy.target for copy in self.copies))
        return tuple(dict.fromkeys(f"/{path.parts[1]}" for path in named))

    def lay_out(self, root: Path) -> None:
        """Put all files where a folder is /."""
        (root / self.workdir.relative_to("/")).mkdir(parents=True, exist_ok=True)
        for copy in self.copies:
            target = root / copy.target.relative_to("/")
            for source in copy.sources:
                if source.is_dir():
                    shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
                else:
                    into = copy.into or target.is_dir()
                    place = target / source.name if into else target
                    place.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(source, place)


def read(path: Path, workdir: str | None = None) -> Image:
    """The image of a Dockerfile, begun in another folder where one is said.

    ScenarioError, with the line, where it needs what only a container has.
    """
    image: Image | None = None
    for number, word, rest in _steps(path):
        here = f"line {number}"
        if word == "FROM":
            if image is not None or " " in rest:
                raise ScenarioError(path, here, f"{_needs('FROM ' + rest)} (it builds in stages)")
            image = Image(base=rest, workdir=PurePosixPath("/"), env={})
        elif image is None:
            raise ScenarioError(path, here, f"{word} comes before FROM")
        else:
            image = _stepped(path, here, image, word, rest)
    if image is None:
        raise ScenarioError(path, "", "it has no FROM")
    if workdir is not None:
        image = replace(image, workdir=PurePosixPath("/") / workdir)
    if image.workdir == PurePosixPath("/"):
        raise ScenarioError(path, "", "it has no WORKDIR, so that the whole machine would be its")
    for top in image.tops:
        if top[1:] in SYSTEM:
            raise ScenarioError(path, "", f"it fills {top}, which is this machine's own here")
    return image


def _stepped(path: Path, here: str, image: Image, word: str, rest: str) -> Image:
    if word in PASSED_OVER:
        return image
    if word not in ("WORKDIR", "COPY", "ENV") or "<<" in rest:
        raise ScenarioError(path, here, _needs(f"{word} {rest}"))
    if "$" in rest:
        raise ScenarioError(path, here, f"{word} {rest}: variables are not replaced here")
    if word == "WORKDIR":
        return replace(image, workdir=image.workdir / rest.strip('"'))
    try:
        words = _words(rest)
    except ValueError as error:
        raise ScenarioError(path, here, f"{word} {rest}: {error}") from None
    if word == "ENV":
        return replace(image, env={**image.env, **_env(path, here, words)})
    copy = _copy(path, here, image.workdir, words)
    return replace(image, copies=(*image.copies, copy))


def _env(path: Path, here: str, words: list[str]) -> dict[str, str]:
    if words and "=" not in words[0]:  # the old form, of one variable
        return {words[0]: " ".join(words[1:])}
    pairs = [each.partition("=") for each in words]
    if not all(equals for _, equals, _ in pairs):
        raise ScenarioError(path, here, f"ENV {' '.join(words)}: it is not KEY=VALUE")
    return {key: value for key, _, value in pairs}


def _copy(path: Path, here: str, workdir: PurePosixPath, words: list[str]) -> Copy:
    if words and words[0].startswith("--"):
        raise ScenarioError(path, here, _needs(f"COPY {words[0]}"))
    if len(words) < 2:
        raise ScenarioError(path, here, "COPY needs what to copy, and where to")
    *names, target = words
    context, sources = path.parent.resolve(), list[Path]()
    for name in names:
        found = sorted(context.glob(name.lstrip("/"))) if name.strip("./") else [context]
        if not found:
            raise ScenarioError(path, here, f"COPY {name}: there is no such file in {context}")
        if not all(each.resolve().is_relative_to(context) for each in found):
            raise ScenarioError(path, here, f"COPY {name}: it lies outside of {context}")
        sources += found
    into = target.endswith(("/", "/.")) or target == "." or len(sources) > 1
    place = PurePosixPath(*(part for part in (workdir / target).parts if part != "."))
    if ".." in place.parts or place == PurePosixPath("/"):
        raise ScenarioError(path, here, f"COPY to {target}: that is this machine's own here")
    return Copy(sources=tuple(sources), target=place, into=into)


def _words(rest: str) -> list[str]:
    if rest.startswith("["):
        found = json.loads(rest)
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            raise ValueError("it is no list of texts")
        return found
    return shlex.split(rest)


def _steps(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line number, instruction and the rest of it, with lines that go on joined."""
    begun, text = 0, ""
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if re.match(r"#\s*escape\s*=", line):
            raise ScenarioError(path, f"line {number}", "another escape than \\ is not known here")
        if line.lstrip().startswith("#") or not (line.strip() or text):
            continue
        begun = begun or number
        text += line.strip()
        if text.endswith("\\"):
            text = text[:-1]
            continue
        word, _, rest = text.partition(" ")
        yield begun, word.upper(), rest.strip()
        begun, text = 0, ""
    if text:
        raise ScenarioError(path, f"line {begun}", f"{text.strip()}: it ends in the middle")


def _needs(step: str) -> str:
    short = step if len(step) <= 60 else f"{step[:57]}..."
    return f"{short}: {CONTAINED}; {NEXT}"
