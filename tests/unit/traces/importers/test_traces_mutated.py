"""Whatever stands in the place of a value, an importer reads the file or refuses it by name."""

import gzip
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.traces.importers.test_traces_benchmarks import ATIF, DOJO, MISTAKE, TAU2
from tests.unit.traces.importers.test_traces_identity import EVENTS, RUNS
from tests.unit.traces.importers.test_traces_observed import lines_of, trace, trial
from traces.importers import ImportFormat, find_format, read_format_tables

SPAN = {
    "trace_id": "t", "span_id": "s", "name": "chat", "start_time": "2026-01-01T00:00:00Z",
    "attributes": {
        "gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 3,
        "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "x"}]}],
        "gen_ai.output.messages": [
            {"role": "assistant",
             "parts": [{"type": "tool_call", "id": "c", "name": "f", "arguments": {"a": 1}}]},
        ],
    },
    "events": [{"name": "gen_ai.choice", "attributes": {"message": {"content": "y"}}}],
}  # fmt: skip
SAMPLES: dict[str, Any] = {
    "tau": RUNS, "openhands": EVENTS, "tau2": TAU2, "atif": ATIF, "agentdojo": DOJO,
    "who-and-when": MISTAKE, "otel": [SPAN], "langfuse": [trace()],
    "langsmith": lines_of("langsmith.jsonl")[:6], "mlflow": lines_of("mlflow.jsonl")[:1],
    "terminal-bench": {"results": [trial()]},
}  # fmt: skip
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1e308, 10**30, float("nan"), "", "x", "\ud800", "12", '{"a":[1]}', [], {},
    [[]], [None], [1, "a", {}], {"a": {"b": [1]}}, {"text": 3, "type": 7, "role": []}, [[[[[]]]]],
)  # fmt: skip
MUTATIONS = 60


def list_places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    parts: Any = ()
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    for key, each in parts:
        yield from list_places(each, (*place, key))


def put(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    copy = value.copy()
    copy[place[0]] = put(value[place[0]], place[1:], new)
    return copy


def find_own_format(path: Path, document: object) -> ImportFormat:
    path.write_text(json.dumps(document))
    format = find_format(path)
    assert format is not None
    return format


def read_or_refuse(format: ImportFormat, path: Path) -> tuple[int, str | None]:
    """How many runs were read, and why not if the file was refused; any other error is raised."""
    try:
        return read_format_tables(format, path).tables["trajectories"].num_rows, None
    except ValueError as refusal:
        return 0, str(refusal)


@pytest.mark.gate
@pytest.mark.parametrize("name", SAMPLES)
def test_a_value_of_another_type_is_read_or_refused_by_name(tmp_path: Path, name: str) -> None:
    path, sample, read = tmp_path / "x.json", SAMPLES[name], 0
    format, places = find_own_format(path, sample), list(list_places(sample))
    rng = random.Random(name)
    for _ in range(MUTATIONS):
        path.write_text(json.dumps(put(sample, rng.choice(places), rng.choice(ODD))))
        runs, why = read_or_refuse(format, path)
        assert why != ""
        read += runs > 0
    assert read > MUTATIONS / 4


@pytest.mark.parametrize("name", SAMPLES)
def test_depth_without_end_is_read_or_refused_by_name(tmp_path: Path, name: str) -> None:
    path, sample = tmp_path / "x.json", SAMPLES[name]
    format, places = find_own_format(path, sample), list(list_places(sample))
    deepest = max(places, key=len)
    text = json.dumps(put(sample, deepest, "HERE"))
    for inner in ("[" * 9000 + "]" * 9000, json.dumps("[" * 9000), "1" * 9000):
        path.write_text(text.replace('"HERE"', inner))
        assert read_or_refuse(format, path)[1] != ""


@pytest.mark.gate
@pytest.mark.parametrize("name", SAMPLES)
def test_a_gzip_that_unpacks_without_end_is_not_read_to_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.json"
    format = find_own_format(path, SAMPLES[name])
    start = path.read_bytes()[:-1]
    path.write_bytes(gzip.compress(start + b" " * (72 << 20), compresslevel=1))
    runs, why = read_or_refuse(format, path)  # a list of runs may end before the rest
    assert runs or re.search("200 times|more than 64 MB|ends in the middle|no JSON", why or "")
