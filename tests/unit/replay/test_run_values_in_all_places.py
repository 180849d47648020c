"""Values of a run in URLs, headers, XML and forms: found, learnt, written and read again."""

from datetime import UTC, datetime

import pytest

from replay.matching.index import RecordingIndex
from replay.matching.rule_learning import learn_from_twins
from replay.matching.rules import MatchRules, parse_match_rule
from replay.matching.run_values import find_run_values
from traces.model import Chunk, Exchange, Headers, Request, Response, Trajectory

AT = datetime(2026, 11, 22, 20, 40, 30, tzinfo=UTC).timestamp()
UUIDS = tuple(f"{n * 4}-7c1d-4a53-9a64-1f0c2d3e4b5a" for n in ("3f", "a7", "c2"))
EPOCHS = tuple(str(int(AT) * 1000 + n) for n in (1, 22, 333))
S3 = "http://b/k?X-Amz-Credential=REDACTEDk1xxZ&X-Amz-Date=20261122T2040{}Z&X-Amz-Signature={}"
AZURE = "http://b/k?sv=2022-11-02&se=2026-11-22T20%3A40%3A{}Z&sig={}"
MARKS = ("REDACTEDk2xxZ", "REDACTEDk3xxZ", "REDACTEDk4xxZ")
SECONDS = ("31", "47", "59")
type Triple = tuple[Request, ...]


def post(url: str, body: str = "", headers: Headers = ()) -> Request:
    return Request(method="POST", url=url, headers=headers, body=body.encode())


def urls(form: str, *values: str) -> Triple:
    return tuple(post(form.format(each)) for each in values)


def bodies(form: str, *values: str) -> Triple:
    return tuple(post("http://h/x", form.replace("{}", each)) for each in values)


def exchanges(*requests: Request) -> tuple[Exchange, ...]:
    answer = Response(status=200, chunks=(Chunk(at=0.0, data=b"fine"),), at=0.0, ended=0.0)
    return tuple(
        Exchange(seq=n, request=each, response=answer, started=float(n))
        for n, each in enumerate(requests)
    )


SIGNED: dict[str, Triple] = {
    name: tuple(post(form.format(*each)) for each in zip(SECONDS, MARKS, strict=True))
    for name, form in (("S3", S3), ("Azure", AZURE))
}
VERIFIERS = tuple(f"BCSoh_J{n}KdAHrJAA-ihie{n}KPp9J_Q4ru1sXcB93HxYzWv" for n in (4, 5, 6))
NANOIDS = ("V1StGXR8_Z5jdHi6B-myT", "D7hLyzNLoBaArNozmHdgm", "qLUnZQYp8xvB_Kt0-eJwA")
ULIDS = ("01K6S5V4DRWMH78WK2YVYSJ61D", "01K6S5V4DSWMH78WK2YVYSJ99X", "01K6S6V4DRWMH78WK2YVYSJ222")
KEYED = tuple(post("http://h/x", "{}", (("x-order", each),)) for each in ULIDS)
PLACES: dict[str, Triple] = SIGNED | {
    "query": urls("http://h/x?_={}", *EPOCHS),
    "path": urls("http://h/sessions/{}", *UUIDS),
    "header": KEYED,
    "XML": bodies('<E><id r="{1}">urn:uuid:{}</id></E>', *UUIDS),
    "form": bodies("grant=code&verifier={}", *VERIFIERS),
    "JSON": bodies('{"key": "{}"}', *NANOIDS),
    "JSON-RPC": bodies('{"jsonrpc": "2.0", "id": {}}', "84512", "77301", "12009"),
}


@pytest.mark.parametrize("triple", PLACES.values(), ids=PLACES)
def test_a_value_of_the_run_is_found_learnt_and_may_be_a_third_one(triple: Triple) -> None:
    one, two, three = triple
    run = Trajectory(id="a", recorded_at=AT, command=("agent",))
    assert next(find_run_values(exchanges(one), run), None) is not None
    rules = tuple(map(str, learn_from_twins(exchanges(one), exchanges(two))))
    assert rules
    matching = MatchRules(map(parse_match_rule, rules))
    assert tuple(map(str, matching.all)) == rules
    assert RecordingIndex(exchanges(one)).find(three) is None
    assert RecordingIndex(exchanges(one), matching).find(three) is not None


def test_a_hexadecimal_id_without_a_letter_is_one_at_the_place_of_its_rule() -> None:
    one, two, three = bodies('{"sid": "sess-{}"}', "a1b2c3d4", "0f9e8d7c", "54732261")
    for pair in ((one, two), (three, one)):
        rules = learn_from_twins(exchanges(pair[0]), exchanges(pair[1]))
        assert [rule.kind for rule in rules] == ["uuid"]
        assert RecordingIndex(exchanges(one), MatchRules(rules)).find(three) is not None


def test_a_rule_for_all_of_a_body_names_the_text_around_its_value() -> None:
    rule = parse_match_rule('uuid:body "<id>urn:uuid:{}</id>"')
    assert parse_match_rule(str(rule)) == rule
    with pytest.raises(ValueError, match="has the text around it"):
        parse_match_rule("uuid:body")
    one, two, _ = bodies("<id>urn:uuid:{}</id><n>1</n>", *UUIDS)
    other = post("http://h/x", two.body.decode().replace("<n>1", "<n>2"))
    index = RecordingIndex(exchanges(one), MatchRules([rule]))
    assert index.find(other) is None
    assert index.find(two) is not None


def test_only_a_signature_may_be_another_secret() -> None:
    form = "http://b/k?token={}"
    one, two, _ = urls(form, *MARKS)
    assert learn_from_twins(exchanges(one), exchanges(two)) == ()
