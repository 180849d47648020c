"""HAR files of browsers, tools and mitmproxy: every entry comes out as it was on the wire."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces.importers import har
from traces.importers.shared.http_traffic import ImportRemark
from traces.importers.shared.json_stream import read_list_objects
from traces.model import Exchange, find_header


def entry(at: str = "2024-01-01T00:00:00.500Z", **other: Any) -> dict[str, Any]:
    fields = [{"name": "Content-Type", "value": "text/plain"}]
    asked = {"method": "POST", "url": "http://a.example/x", "headers": fields}
    said = {"status": 200, "statusText": "OK", "headers": fields, "content": {"text": "hello"}}
    times = {"send": 1, "wait": 1000, "receive": 499}
    known = {"startedDateTime": at, "time": 1500, "request": asked, "response": said}
    return known | {"timings": times} | other


def answered(**content: Any) -> dict[str, Any]:
    fields = [{"name": "Content-Type", "value": "text/plain; charset=latin-1"}]
    return {"status": 200, "headers": fields, "content": content}


def file(folder: Path, *entries: object) -> Path:
    path = folder / "some.har"
    path.write_text(json.dumps({"log": {"version": "1.2", "entries": entries}}))
    return path


def read(path: Path) -> list[Exchange | ImportRemark]:
    return list(har.read_har_traffic(path).pieces)


def only(path: Path) -> Exchange:
    [found] = read(path)
    assert isinstance(found, Exchange)
    return found


def test_an_entry_is_an_exchange_with_its_times(tmp_path: Path) -> None:
    late, early = entry("2024-01-01T00:00:02Z"), entry()
    path = file(tmp_path, late, early)
    assert har.read_har_traffic(path).recorded_at == 1704067200.5
    second, first = read(path)
    assert isinstance(first, Exchange)
    assert isinstance(second, Exchange)
    assert [(x.seq, x.started) for x in (first, second)] == [(0, 0.0), (1, 1.5)]
    assert first.response is not None
    assert first.response.at == pytest.approx(1.001)
    assert first.response.ended == 1.5
    assert first.response.body == b"hello"


def test_a_text_has_the_bytes_of_its_charset(tmp_path: Path) -> None:
    found = only(file(tmp_path, entry(response=answered(text="é"))))
    assert found.response is not None
    assert found.response.body == b"\xe9"


def test_base64_is_bytes(tmp_path: Path) -> None:
    found = only(file(tmp_path, entry(response=answered(text="/wA=", encoding="base64"))))
    assert found.response is not None
    assert found.response.body == b"\xff\0"


def test_what_was_inflated_is_not_said_to_be_packed(tmp_path: Path) -> None:
    fields = [{"name": "content-encoding", "value": "br"}, {"name": "content-length", "value": "3"}]
    said = {"status": 200, "headers": fields, "content": {"text": "hello"}}
    found = only(file(tmp_path, entry(response=said)))
    assert found.response is not None
    assert found.response.headers == (("content-length", "5"),)


def test_a_form_is_what_was_sent(tmp_path: Path) -> None:
    posted = {"mimeType": "application/x-www-form-urlencoded", "params": [{"name": "a b"}]}
    asked = {"method": "POST", "url": "http://a/", "headers": [], "postData": posted}
    assert only(file(tmp_path, entry(request=asked))).request.body == b"a+b="


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("net::ERR_INTERNET_DISCONNECTED", "dns"),
        ("net::ERR_CONNECTION_REFUSED", "refused"),
        ("Connection timed out", "timeout"),
        ("something odd", "eof"),
        ("reset: by peer", "reset"),
    ],
)
def test_why_no_answer_came(tmp_path: Path, said: str, code: str) -> None:
    found = only(file(tmp_path, entry(response={"status": 0, "_error": said})))
    assert found.response is None
    assert (found.error or "").partition(":")[0] == code


def test_what_is_no_entry_is_named_and_the_rest_comes_in(tmp_path: Path) -> None:
    posted = {"method": "POST", "url": "https://a.example", "postData": {"_raw": "!"}}
    found = read(file(tmp_path, {"startedDateTime": 5}, entry() | {"request": posted}, entry()))
    why = [each.where for each in found if isinstance(each, ImportRemark)]
    assert why == ["entry 1", "entry 2"]
    assert sum(isinstance(each, Exchange) for each in found) == 1


@pytest.mark.parametrize("gone", [3, 40, 300])
def test_a_file_that_was_cut_gives_what_is_whole(tmp_path: Path, gone: int) -> None:
    path = file(tmp_path, entry(), entry())
    path.write_bytes(path.read_bytes()[:-gone])
    found = read(path)
    assert isinstance(found[0], Exchange)
    assert isinstance(found[-1], ImportRemark)
    assert found[-1].why == "it ends in the middle"


def test_gzip_that_does_not_inflate_gives_what_is_whole(tmp_path: Path) -> None:
    path = file(tmp_path, *[entry(response=answered(text=str(n))) for n in range(9)])
    path.write_bytes(gzip.compress(path.read_bytes(), 0)[:-900])
    found = read(path)
    assert isinstance(found[0], Exchange)
    assert isinstance(found[-1], ImportRemark)
    assert "gzip" in found[-1].why


@pytest.mark.gate
def test_an_entry_that_is_too_large_is_left_out_by_name(tmp_path: Path) -> None:
    large = entry(response=answered(text="x" * (har.LIMIT + 1)))
    first, remark, last = read(file(tmp_path, entry(), large, entry()))
    assert isinstance(first, Exchange)
    assert isinstance(last, Exchange)
    assert remark == ImportRemark(where="entry 2", why="it has 32 MB; at most 32 are read")


def test_files_of_others_come_in_with_all_their_entries(shared: Path) -> None:
    found = {}
    for path in sorted((shared / "har").glob("*.har*")):
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).removeprefix(
            b"\xef\xbb\xbf"
        )
        try:
            entries = json.loads(text)["log"]["entries"]
        except (ValueError, KeyError):
            continue
        exchanges = [x for x in har.read_har_traffic(path).pieces if isinstance(x, Exchange)]
        sent = [x for x in exchanges if x.request.method == "TEXT"]
        found[path.name] = (len(exchanges) - len(sent), len(sent))
        assert found[path.name][0] == len(entries)
        for each in exchanges:
            length = find_header(each.response.headers, "content-length") if each.response else None
            bodiless = (
                each.request.method == "HEAD" or each.response and each.response.status == 304
            )
            if each.response and length and not bodiless:
                assert int(length) == len(each.response.body)
    assert len(found) == 14
    assert sum(entries for entries, _ in found.values()) == 41
    assert found["flows__websocket.har"] == (3, 2)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('a"\\[]{}:é,', max_size=6),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text('ab"', max_size=3), each),
    max_leaves=8,
)


class Pieces(io.BytesIO):
    """A file that gives no more than a few bytes at once."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__(data)
        self.size = size

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(self.size)


@given(
    st.lists(st.dictionaries(st.text(max_size=3), JSON, max_size=3), max_size=4),
    st.dictionaries(st.text("xy", max_size=2), JSON, max_size=2),
    st.integers(1, 9),
    st.booleans(),
)
def test_a_list_is_read_element_by_element(
    said: list[dict[str, Any]], before: dict[str, Any], size: int, spaced: bool
) -> None:
    text = json.dumps(
        {"log": before | {"entries": said, "z": 1}}, indent=1 if spaced else None
    ).encode()
    found = list(read_list_objects(Pieces(text, size), "entries", 3, 1 << 20))
    assert [json.loads(each) for each in found if isinstance(each, bytes)] == said


def test_a_list_that_is_nested_too_deeply_is_refused_without_reading_on() -> None:
    text = b'{"log": {"entries": [{"x":' + b"[" * 10_000
    with pytest.raises(ValueError, match="nested too deeply"):
        list(read_list_objects(Pieces(text + b"]" * 9_000, 100), "entries", 3, 1 << 20))
    with pytest.raises(EOFError, match="ends in the middle"):
        list(read_list_objects(Pieces(text[:-9_000], 100), "entries", 3, 1 << 20))
