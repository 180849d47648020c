"""Traffic that others recorded becomes tapes: shown, replayed and asked by SQL like our own."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from stumble.imports import import_files
from stumble.imports.import_files import ImportedFile
from tests.e2e.store.test_stumble_import import here
from tests.support.stores.in_memory_relations import answers
from traces.store.trace_store import TraceStore
from traces.tape.reader import read_tape

ASK = """
import urllib.request, sys
body = b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
url = "http://api.example.com/v1/chat/completions"
asked = urllib.request.Request(url, body, {"content-type": "application/json"})
print(urllib.request.urlopen(asked, timeout=20).read().decode())
"""
ANSWER = (
    '{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":'
    '{"role":"assistant","content":"hello there"},"finish_reason":"stop"}]}'
)


def cassette(*interactions: object) -> str:
    return yaml.safe_dump({"version": 1, "interactions": list(interactions)})


def asked(key: str = "Bearer none") -> dict[str, object]:
    return {
        "method": "POST",
        "uri": "http://api.example.com/v1/chat/completions",
        "body": '{"model":"m","messages":[{"role":"user","content":"hi"}]}',
        "headers": {"Content-Type": ["application/json"], "Authorization": [key]},
    }


def said(body: str = ANSWER, **headers: list[str]) -> dict[str, object]:
    fields = {"content-type": ["application/json"]} | headers
    return {"status": {"code": 200, "message": "OK"}, "headers": fields, "body": {"string": body}}


def bring(folder: Path, *paths: str | Path) -> list[ImportedFile]:
    store = TraceStore(folder / ".stumble")
    return list(
        import_files.import_recordings(
            store, import_files.list_import_files(folder / path for path in paths)
        )
    )


def ask(folder: Path, sql: str) -> list[dict[str, object]]:
    with TraceStore(folder / ".stumble").connect() as connection:
        return answers(connection, sql)


def tapes(folder: Path) -> list[Path]:
    return sorted((folder / ".stumble" / "tapes").iterdir())


@pytest.fixture(scope="module")
def real(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[ImportedFile]]:
    """A store of all cassettes, and what became of each."""
    folder = tmp_path_factory.mktemp("cassettes")
    return folder, bring(folder, shared / "cassettes")


@pytest.mark.thorough
def test_every_interaction_of_every_cassette_is_accounted_for(
    real: tuple[Path, list[ImportedFile]], shared: Path
) -> None:
    folder, rows = real
    pairs = messages = 0
    contents = set()
    for path in sorted(p for p in (shared / "cassettes").rglob("*") if p.is_file()):
        raw = path.read_bytes()
        if raw in contents:  # the same cassette twice is one run
            continue
        contents.add(raw)
        text = gzip.decompress(raw) if path.suffix == ".gz" else raw
        document = yaml.load(text, yaml.CSafeLoader)
        each = document.get("interactions") or document["requests"]
        messages += sum(one.get("kind") == "message" for one in each)
        pairs += sum(one.get("kind") != "message" for one in each)
    assert len(rows) == 243
    assert [row for row in rows if row.state == "refused" or row.remarks] == []
    assert sum(row.state == "new" for row in rows) == len(contents) == len(tapes(folder))

    counts = """
        select
            count(*) filter (transport = 'http') as pairs,
            count(*) filter (method in ('TEXT', 'BINARY')) as sent,
            sum(n_chunks) filter (transport = 'websocket')::int as heard
        from exchanges
    """
    [found] = ask(folder, counts)
    assert found == {"pairs": pairs, "sent": 226, "heard": messages - 226}
    assert messages == 358


def test_times_that_a_cassette_does_not_know_are_unknown(
    real: tuple[Path, list[ImportedFile]],
) -> None:
    folder, _ = real
    counts = "select distinct source, seconds, ended from trajectories"
    assert ask(folder, counts) == [{"source": "vcr", "seconds": None, "ended": None}]
    times = "select distinct started, duration, ttfb from exchanges"
    assert ask(folder, times) == [{"started": None, "duration": None, "ttfb": None}]


def test_real_cassettes_tell_their_steps(real: tuple[Path, list[ImportedFile]]) -> None:
    folder, _ = real
    [steps] = ask(folder, "select sum(n_steps)::int as n from trajectories")
    [calls] = ask(folder, "select count(*) as calls, count(result) as results from tool_calls")
    assert steps == {"n": 654}, "a request of a program without a model is a step"
    assert calls == {"calls": 406, "results": 367}


def test_importing_twice_adds_nothing(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(cassette({"request": asked(), "response": said()}))
    [first] = bring(tmp_path, "one.yaml")
    before = [path.read_bytes() for path in tapes(tmp_path)]
    [second] = bring(tmp_path, "one.yaml")
    assert [first.state, second.state] == ["new", "known"]
    assert [path.read_bytes() for path in tapes(tmp_path)] == before
    counts = "select (select count(*) from trajectories) as runs, count(*) as n from exchanges"
    assert ask(tmp_path, counts) == [{"runs": 1, "n": 1}]


def test_a_cassette_is_shown_and_replayed(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(cassette({"request": asked(), "response": said()}))
    bring(tmp_path, "one.yaml")
    [tape] = tapes(tmp_path)
    stumble = here(tmp_path).stumble
    shown = stumble("show", str(tape))
    assert "hello there" in shown.out
    assert "how it ended is not known" in shown.out
    assert "not closed" not in shown.err

    (tmp_path / "ask.py").write_text(ASK)
    result = stumble("replay", str(tape), "--in-place", "--", sys.executable, "ask.py")
    assert result.code == 0, result.err
    assert "hello there" in result.out


def test_secrets_of_a_cassette_do_not_reach_the_tape(tmp_path: Path) -> None:
    key = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
    pair = {"request": asked(f"Bearer {key}"), "response": said(ANSWER.replace("hello", key))}
    (tmp_path / "one.yaml").write_text(cassette(pair))
    bring(tmp_path, "one.yaml")
    [tape] = tapes(tmp_path)
    [found] = read_tape(tape).exchanges
    assert found.response is not None
    assert key not in repr(found.request.headers)
    assert key.encode() not in found.response.body
    assert [path for path in (tmp_path / ".stumble").rglob("one.yaml")] == []


def test_a_bad_file_stops_none_of_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    good = cassette({"request": asked(), "response": said()}, {"request": asked()})
    (folder / "good.yaml").write_text(good)
    (folder / "cut.yaml").write_text(good[:90])
    (folder / "cut.yaml.gz").write_bytes(gzip.compress(good.encode())[:-20])
    (folder / "deep.yaml").write_text("interactions: " + "[" * 100_000)
    (folder / "none.yaml").write_text("interactions: []")
    (folder / "runs.yaml").write_text("interactions: !!python/object/apply:os.abort []")
    (folder / "huge.yaml.gz").write_bytes(gzip.compress(b"interactions: " + b" " * (70 << 20)))
    (folder / "notes.md").write_text("some notes")
    (folder / ".hidden").write_text("not looked at")

    result = here(tmp_path).stumble("import", "mixed")
    assert result.code == 1
    assert "vcrpy cassettes: 1 file; 1 trajectories, 2 exchanges" in result.out
    lines = dict(line.split(": ", 1) for line in result.err.splitlines())
    why = {name.removeprefix("refused mixed/"): said for name, said in lines.items()}
    assert why.pop("partly mixed/good.yaml") == "interaction 2: it has no response"
    assert sorted(why) == [
        "1 other file (notes.md)", "cut.yaml", "cut.yaml.gz", "deep.yaml", "huge.yaml.gz",
        "none.yaml", "runs.yaml",
    ]  # fmt: skip
    assert why["deep.yaml"] == "nested more than 200 levels deep"
    assert "an object that is not made here" in why["runs.yaml"]
    assert why["none.yaml"] == "it holds no exchange"
    assert "unpacks to more than 200 times its size" in why["huge.yaml.gz"]
    assert "gzip cannot be unpacked" in why["cut.yaml.gz"]
    others = why["1 other file (notes.md)"]
    assert others.startswith("none of the formats known here: flow files")
    assert "Traceback" not in result.err


@pytest.mark.thorough
def test_ten_thousand_exchanges_in_one_cassette(tmp_path: Path) -> None:
    pair = {"request": asked(), "response": said()}
    document = {"version": 1, "interactions": [pair] * 10_000}
    (tmp_path / "many.json").write_text(json.dumps(document))
    [found] = bring(tmp_path, "many.json")
    assert (found.state, found.counts["exchanges"]) == ("new", 10_000)


MEASURE = """
import sys
from pathlib import Path
import recorder.flow_files
from stumble.imports import import_files
from tests.support.peak_memory import read_peak_memory
from traces.store.trace_store import TraceStore

store, before = TraceStore(Path("store")), read_peak_memory()
for path in sys.argv[1:]:
    for each in import_files.import_recordings(store, [Path(path)]):
        why = [x.why for x in each.remarks]
        print(path, each.state, each.counts.get("exchanges"), *why, each.why)
print((read_peak_memory() - before) >> 20)
"""


def test_a_body_of_200_mb_costs_no_more_than_300_mb_of_memory(tmp_path: Path) -> None:
    entry = {
        "startedDateTime": "2024-01-01T00:00:00Z",
        "request": {"method": "GET", "url": "http://a.example/", "headers": []},
        "response": {"status": 200, "headers": [], "content": {"text": "BODY"}},
    }
    for name, size in (("large.har", 200), ("fits.har", 31)):
        small = json.dumps(entry)
        before, _, after = small.partition("BODY")
        with (tmp_path / name).open("w") as file:
            file.write(f'{{"log": {{"entries": [{small}, {before}')
            for _ in range(size):
                file.write("x" * (1 << 20))
            file.write(f"{after}, {small}]}}}}")
    with (tmp_path / "large.mitm").open("wb") as flows:
        flows.write(b"209715200:")
        for _ in range(200):
            flows.write(b"x" * (1 << 20))
        flows.write(b"}")
    with (tmp_path / "large.yaml").open("w") as cassette_:
        cassette_.write("interactions: '")
        for _ in range(200):
            cassette_.write("x" * (1 << 20))
    (tmp_path / "measure.py").write_text(MEASURE)
    names = ("large.har", "fits.har", "large.mitm", "large.yaml")
    root = str(Path(__file__).resolve().parents[3])
    result = subprocess.run(
        [sys.executable, "measure.py", *names],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": root},
        check=True, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    *said, more = result.stdout.splitlines()
    assert said == [
        "large.har new 2 it has 200 MB; at most 32 are read None",
        "fits.har new 3 None",
        "large.mitm refused None it has 200 MB; at most 24 are read",
        "large.yaml refused None it has more than 32 MB, which is too much to read at once",
    ]
    assert int(more) < 300


def har(*entries: object) -> str:
    return json.dumps({"log": {"version": "1.2", "entries": entries}})


def entry(**request: object) -> dict[str, object]:
    return {
        "startedDateTime": "2026-01-01T00:00:00Z",
        "time": 3,
        "request": {"method": "POST", "url": "http://a.example/v1", "headers": []} | request,
        "response": {"status": 200, "headers": [], "content": {"text": "ok"}},
    }


@pytest.mark.parametrize(
    ("name", "text", "state"),
    [
        ("nameless.har", har(entry(headers=[{"value": "x"}]), entry()), "new"),
        ("listed.har", har([1], entry()), "new"),
        ("spoken.har", har(entry() | {"_webSocketMessages": 5}, entry()), "new"),
        ("named.har", har(entry() | {"_exchange": "x"}, entry()), "new"),
        ("twice.har", har(*[entry() | {"_exchange": {"seq": 0}}] * 2), "refused"),
        (
            "tau.json",
            json.dumps([{"task_id": 0, "reward": 1, "traj": ["x"], "trial": 0}]),
            "refused",
        ),
        (
            "inspect.json",
            json.dumps(
                {
                    "version": 2,
                    "status": "success",
                    "eval": {"task": "t"},
                    "samples": [{"id": 1, "messages": ["x"]}],
                }
            ),
            "refused",
        ),
    ],
)
def test_a_value_of_another_shape_stops_no_other_file(
    tmp_path: Path, name: str, text: str, state: str
) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "z.yaml").write_text(cassette({"request": asked(), "response": said()}))
    odd, whole = bring(tmp_path, name, "z.yaml")
    assert odd.state == state
    assert odd.why or odd.remarks
    assert whole.state == "new"


def test_an_address_that_is_none_does_not_spoil_the_store(tmp_path: Path) -> None:
    odd = asked() | {"uri": "http://[x/"}
    (tmp_path / "a.yaml").write_text(cassette({"request": odd, "response": said()}))
    (row,) = bring(tmp_path, "a.yaml")
    assert [(each.lost, each.why) for each in row.remarks] == [
        (False, "its address is none: Invalid IPv6 URL")
    ]
    assert ask(tmp_path, "select url from exchanges") == [{"url": "https://unknown.invalid/"}]


def test_a_pipe_in_a_folder_is_not_waited_on_and_any_name_will_do(tmp_path: Path) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    os.mkfifo(folder / "a-pipe")
    (folder / "b-loop").symlink_to("b-loop")
    (folder / "c-gone").symlink_to("nowhere")
    (folder / "d-up").symlink_to("..")
    odd = Path(os.fsdecode(b"e \xff.har"))
    (folder / odd).write_text(har(entry()))
    rows = bring(tmp_path, "many")
    assert [(each.path.name, each.why) for each in rows] == [
        ("a-pipe", "it is no regular file but a pipe, a socket or a device"),
        ("b-loop", "Too many levels of symbolic links"),
        ("c-gone", "No such file or directory"),
        (odd.name, None),
    ]
    assert ask(tmp_path, "select task from trajectories") == [{"task": "e \ufffd.har"}]


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", None])
def test_the_fields_of_a_form_are_secrets_like_a_form(tmp_path: Path, kind: str | None) -> None:
    posted = {"mimeType": "m", "params": [{"name": "password", "value": "hunter2hunter2"}]}
    headers = [{"name": "Content-Type", "value": kind}] if kind else []
    (tmp_path / "a.har").write_text(har(entry(headers=headers, postData=posted)))
    bring(tmp_path, "a.har")
    (exchange,) = read_tape(tapes(tmp_path)[0]).exchanges
    assert exchange.request.body.startswith(b"password=REDACTED")
