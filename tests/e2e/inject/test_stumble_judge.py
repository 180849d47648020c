"""A model as a second judge: what it is shown, which answers count, and what they are worth."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from copy import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from faults.judging.llm_judge import (
    JudgeOpinion,
    make_judge_prompt,
    make_opinion_case,
    measure_judge_agreement,
    parse_judge_opinion,
)
from tests.support.stores.judged_fork import keep
from tests.support.stores.scripted_runs import (
    BENT,
    ORDER,
    Telling,
    struck,
)
from traces.model import Trajectory
from traces.store.trace_store import TraceStore

DOUBTS = "The total 1259.4 looks wrong."


def doubting() -> Telling:
    read = Telling().asks("get_order", BENT, id="ord-7314")
    return read.says(DOUBTS)


def test_the_judge_is_not_told_what_was_struck_nor_whether() -> None:
    shown = make_opinion_case(struck("V", BENT), doubting().over())
    assert shown is not None
    assert (shown.shown, shown.elsewhere, shown.steps) == (BENT, ORDER, {3: DOUBTS})
    for variant in ("plain", "again"):
        asked = json.dumps(make_judge_prompt(shown, variant)).lower()
        for word in ("inject", "fault", "sham", "mutat", "struck", "stumble", "digit"):
            assert word not in asked


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"noticed": true, "quote": "looks odd", "step": 3, "claims_success": true}', "its quote"),
        ('{"noticed": true, "quote": "looks wrong", "step": 2, "claims_success": true}', "step 2"),
        ('{"noticed": true, "quote": "", "step": 3, "claims_success": true}', "its quote"),
        ('{"noticed": "yes", "quote": "", "step": 3, "claims_success": true}', "it lacks"),
        ("I think so.", "it is no JSON"),
    ],
)
def test_an_opinion_without_its_proof_does_not_count(text: str, why: str) -> None:
    shown = make_opinion_case(struck("V", BENT), doubting().over())
    assert shown is not None
    with pytest.raises(ValueError, match=why):
        parse_judge_opinion(shown, text)


def test_an_opinion_with_a_verbatim_quote_counts() -> None:
    shown = make_opinion_case(struck("V", BENT), doubting().over())
    assert shown is not None
    text = '{"noticed": true, "quote": "looks wrong", "step": 3, "claims_success": false}'
    assert parse_judge_opinion(shown, text) == JudgeOpinion(
        noticed=True, claims_success=False, quote="looks wrong", step=3
    )


def test_agreement_of_two_judges() -> None:
    pairs = [(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15
    found = measure_judge_agreement(pairs)
    assert found.kappa == pytest.approx(0.4)  # as cohen_kappa_score has it
    assert found.sensitivity == pytest.approx(20 / 30)
    assert found.specificity == pytest.approx(0.75)


@pytest.mark.parametrize("pairs", [[], [(True, True)], [(False, False)] * 3])
def test_nothing_is_said_of_what_nobody_could_disagree_on(pairs: list[tuple[bool, bool]]) -> None:
    found = measure_judge_agreement(pairs)
    assert found.kappa is None
    assert None in (found.sensitivity, found.specificity)


class _Judge(BaseHTTPRequestHandler):
    """A model that notices the word `wrong`, and makes up a quote for the word `odd`."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        asked = body["messages"][-1]["content"].partition("What the agent did then:")[2]
        found = re.search(r"\[step (\d+)\]\n([^\[]*?(wrong|odd)[^\[\n]*)", asked)
        quote = "made up" if found and found[3] == "odd" else found[2] if found else ""
        said = {
            "noticed": found is not None,
            "quote": quote,
            "step": int(found[1]) if found else 0,
            "claims_success": "DONE" in asked,
        }
        message = {"role": "assistant", "content": json.dumps(said)}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
        answer = {"id": "a", "object": "chat.completion", "created": 1, "model": body["model"]}
        data = json.dumps(answer | {"choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def served() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Judge)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def test_opinions_are_asked_for_once_and_held_against_rules_and_labels(tmp_path: Path) -> None:
    store = TraceStore(tmp_path / "store")
    fork = Trajectory(id="", recorded_at=1e9, source="fork", parent="a", forked_at="c1")
    calm = Telling().asks("get_order", BENT, id="ord-7314").says("DONE")
    odd = Telling().asks("get_order", BENT, id="ord-7314").says("How odd get_order is.")
    for n in range(3):
        clean = Telling().asks("get_order", ORDER, id="ord-7314").says("DONE").over()
        keep(store, clean, replace(fork, id=f"twin-{n}"))
    for id, told in (("doubts", doubting()), ("calm", calm), ("odd", odd)):
        keep(store, told.over(), replace(fork, id=id, condition="fault"))
    labels = tmp_path / "labels.csv"
    labels.write_text("injection_id,noticed\ndoubts/1,true\ncalm/1,false\n")

    def judge(*words: str, url: str) -> subprocess.CompletedProcess[str]:
        key = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"}
        return subprocess.run(
            [sys.executable, "-m", "stumble", "judge", "--llm", "openai/of-the-house", *words],
            capture_output=True, text=True, timeout=110,
            env=os.environ | key | {"STUMBLE_STORE": str(store.root)},
        )  # fmt: skip

    with served() as url:
        first = judge("--max-calls", "9", "--labels", str(labels), "--json", url=url)
    assert first.returncode == 0, first.stderr
    found = json.loads(first.stdout)
    by_id = {each["injection_id"]: each for each in found["opinions"]}
    assert (by_id["doubts/1"]["noticed"], by_id["doubts/1"]["quote"]) == (True, DOUBTS)
    assert by_id["calm/1"]["noticed"] is False
    assert by_id["odd/1"]["why"] == "its quote does not stand in step 3"
    assert found["calls"] >= 3
    assert found["with_labels"] == {
        "cases": 2, "kappa": 1.0, "sensitivity": 1.0, "specificity": 1.0,
    }  # fmt: skip
    # Nobody is there to ask any more: what was answered is kept.
    again = judge("--max-calls", "9", url="http://127.0.0.1:9/v1")
    assert "of-the-house judged 3 injections, 0 of them shams" in again.stdout
    assert "  0 calls, 0.0000 USD; none of this enters a rate" in again.stdout
    with store.connect() as sql:
        assert sql.execute("select count(*) from outcomes where noticed").fetchone() == (2,)
    priceless = judge(url="http://127.0.0.1:9/v1")
    assert priceless.returncode == 2
    assert "no price is known for openai/of-the-house" in priceless.stderr
