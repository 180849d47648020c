"""Contents of a seal: all inputs of the measurements of a campaign, as plain data.

Files are sealed by their digests: the tapes, and for the commands of agent and world every word
that names a text file, and the program if it is named by a path. A word that names another kind of
file (a database, say) is not sealed, since runs change it; it is listed as `unfixed`.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from stumble.campaigns.spec import Campaign, TraceSource
from stumble.errors import UsageError
from stumble.experiments.seals.analysis_terms import AnalysisTerms
from traces.model import JUDGE_VERSION, Fault
from traces.tape.reader import Tape, read_tape

_TEXT_PROBE_BYTES = 8192
"""First bytes of a file; a zero byte among them marks it as binary."""


def collect_seal_contents(
    campaign: Campaign, terms: AnalysisTerms, folder: Path
) -> dict[str, object]:
    """Collect the sealed values of a campaign. Raises UsageError if a named file is unreadable.

    `beside` is the folder of the campaign's file, to which `terms.files` are relative.
    """
    tapes = {source.name: read_tape(source.tape) for source in campaign.sources if source.tape}
    left_out = {str(Path(name)) for name in terms.left_out}
    runs = [_agent_to_dict(source, tapes.get(source.name)) for source in campaign.sources]
    options = {"options": list(campaign.agent_options)} if campaign.agent_options else {}
    commands = [tuple(map(str, run["command"])) for run in runs]  # type: ignore[call-overload]
    named_files = dict(_hash_named_files(terms.files, folder))
    world_commands = [
        _split_command_words(text)
        for text in (campaign.reset, campaign.verify, campaign.state)
        if text
    ]
    return {
        "campaign": campaign.name,
        "plan": {
            "traces": [
                _trace_to_dict(source, tapes.get(source.name)) for source in campaign.sources
            ],
            "faults": [_sealed_fault_to_dict(fault) for fault in campaign.faults],
            "seeds": list(campaign.seeds),
            "reps": campaign.reps,
            "twins": campaign.twins,
            "shams": campaign.shams,
            "budget": campaign.budget,
            "max_steps": campaign.max_steps,
            "pin": campaign.pin,
            "in_place": campaign.in_place,
            "hosts": {name: list(address) for name, address in campaign.hosts.items()},
            **({"models": list(map(str, campaign.models))} if campaign.models else {}),
            **({"writable": list(map(str, campaign.writable))} if campaign.writable else {}),
        },
        "agent": {
            "name": campaign.agent,
            **options,
            "runs": runs,
            **_hash_command_files(commands, left_out, named_files),
        },
        "world": {
            "reset": campaign.reset,
            "verify": campaign.verify,
            "state": campaign.state,
            **_hash_command_files(world_commands, left_out, {}),
        },
        "judge": {"version": JUDGE_VERSION},
        "analysis": terms.to_dict(),
    }


def _trace_to_dict(source: TraceSource, tape: Tape | None) -> dict[str, object]:
    practice = source.practice
    return {
        "name": source.name,
        "tape": None if tape is None else _recording_to_dict(tape),
        "practice": practice and {"task": practice.task, "tools": practice.tools},
        "scenario": source.scenario,
        "tools": dict(source.tools),
        "rules": list(source.rules),
    }


def _agent_to_dict(source: TraceSource, tape: Tape | None) -> dict[str, object]:
    """Return the agent of a trace; two experiments on one plan differ in this alone."""
    command = source.command or (tape.trajectory.command if tape else ())
    model = source.practice.model if source.practice else tape.trajectory.model if tape else None
    return {"trace": source.name, "model": model, "command": list(command)}


def _recording_to_dict(tape: Tape) -> dict[str, object]:
    """Return id, digest of the exchanges, and workspace snapshot of a recording."""
    digest = hashlib.sha256()
    for exchange in tape.exchanges:
        request, response = exchange.request, exchange.response
        answer = response and (response.status, response.headers, response.body)
        parts = (request.method, request.url, request.headers, request.body, answer, exchange.error)
        digest.update(repr(parts).encode("utf-8", "surrogatepass"))
    run = tape.trajectory
    return {"id": run.id, "sha256": digest.hexdigest(), "snapshot": run.snapshot}


def _sealed_fault_to_dict(fault: Fault) -> dict[str, object]:
    return {
        "name": fault.name,
        "params": dict(fault.params),
        "where": dict(fault.where),
        "at": fault.at,
        "nth": fault.nth,
        "when": dict(fault.when),
        "persist": fault.persist,
        "max_injections": fault.max_injections,
    }


def _split_command_words(text: str) -> tuple[str, ...]:
    """Split a shell command of the world into words, without quotes."""
    return tuple(word.strip("'\"") for word in text.split())


def _hash_command_files(
    commands: Iterable[Sequence[str]], left_out: set[str], more: Mapping[str, str]
) -> dict[str, object]:
    fixed, unfixed = dict(more), set[str]()
    for words in commands:
        for number, word in enumerate(words):
            path = Path(word)
            if not word or str(path) in left_out or not _is_existing_file(path):
                continue
            if number == 0 or _is_text_file(path):
                fixed[word] = _hash_sealed_file(path)
            else:
                unfixed.add(word)
    return {"files": fixed, "unfixed": sorted(unfixed)}


def _is_existing_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a long prompt is a word, not a path
        return False


def _is_text_file(path: Path) -> bool:
    with path.open("rb") as file:
        return b"\0" not in file.read(_TEXT_PROBE_BYTES)


def _hash_named_files(patterns: Iterable[str], folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the files that `terms.files` names, each with its digest."""
    for pattern in patterns:
        paths = sorted(path for path in folder.glob(pattern) if path.is_file())
        if not paths:
            raise UsageError(f"seal.files: {pattern!r} names no file beside {folder}")
        yield from ((str(path.relative_to(folder)), _hash_sealed_file(path)) for path in paths)


def _hash_sealed_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"{path} cannot be sealed: {error.strerror}") from None
