"""A recording with values of its run is followed by one control replay, which nobody asked for.

The agent counts its runs in a file outside its folder, which no copy replaces.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.practice_shop import Said, Shop, shop
from traces.tape.reader import read_tape

AGENT = """
import json, os, random, sys, time, urllib.request, uuid
with open("{RUNS}", "a") as file:
    file.write("run ")
for step in range(2):
    said = {SAID}
    asked = {"order_id": "ord-7100", "step": step, "said": said}
    url = "http://shop.practice/tools/get_order"
    request = urllib.request.Request(url, json.dumps(asked).encode())
    try:
        urllib.request.urlopen(request, timeout=30).read()
    except urllib.error.HTTPError as error:
        if error.code == 422:
            sys.exit(1)
"""
OF_THE_RUN = {
    "a random id": 'f"run {uuid.uuid4()} begins"',
    "a time": "f\"it is {time.strftime('%H:%M:%S')}.{time.time_ns() % 10**9:09}\"",
    "how long something took": 'f"3 tests passed in {0.01 + time.time() % 1:.4f}s"',
    "a process": 'f"process {os.getpid()} is mine"',
}
GIVEN = {
    "a task's id": '"refund 3f2b8f0e-7c1d-4a53-9a64-1f0c2d3e4b5a"',
    "an older time": '"it was 2019-03-04 05:06:07"',
    "counts": '"3 of 17 files, 4.25 kB each"',
    "a file of the folder": 'os.path.abspath("agent.py")',
}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Shop]:
    folder = tmp_path / "work"
    folder.mkdir()
    with shop(folder) as opened:
        yield opened


def record(place: Shop, text: str, *options: str) -> Said:
    (place.folder / "agent.py").write_text(
        AGENT.replace("{SAID}", text).replace("{RUNS}", str(counter(place)))
    )
    agent = (sys.executable, "agent.py", "refund 3f2b8f0e-7c1d-4a53-9a64-1f0c2d3e4b5a")
    named = {"COUNTED": str(counter(place).parent)}  # so that it is the real one in a replay
    words = ("record", "-o", "a.tape", *place.host_options(), *options, "--", *agent)
    done = place.stumble(*words, env=named)
    assert done.code == 0, done.err
    return done


def counter(place: Shop) -> Path:
    return place.folder.with_name("runs")


def runs(place: Shop) -> int:
    return len(counter(place).read_text().split())


def test_a_value_of_the_run_is_learnt_by_a_replay_of_records_own(place: Shop) -> None:
    """All of them at once: each is learnt by itself."""
    done = record(place, " + '; ' + ".join(OF_THE_RUN.values()))
    assert done.err.count("control replay: accepted ") >= len(OF_THE_RUN)
    assert "control replay: followed the recording" in done.err
    assert runs(place) > 1
    assert read_tape(place.folder / "a.tape").trajectory.rules
    assert len(list((place.folder / ".stumble" / "tapes").iterdir())) == 1, "controls leave no tape"
    assert place.stumble("replay", "a.tape").code == 0


def test_an_agent_without_such_values_runs_once(place: Shop) -> None:
    done = record(place, " + '; ' + ".join(GIVEN.values()))
    assert "control" not in done.err
    assert runs(place) == 1


def test_the_control_can_be_declined_and_needs_a_copy(place: Shop) -> None:
    said = OF_THE_RUN["a random id"]
    assert "control" not in record(place, said, "--times", "1").err
    (place.folder / "a.tape").unlink()
    done = record(place, said, "--no-snapshot")
    assert "may be another in the next run; `stumble record --times 2` learns" in done.err
    assert runs(place) == 2, "one for each recording"


def test_a_word_that_is_another_in_one_replay_alone_is_no_end_of_learning(place: Shop) -> None:
    """As of an agent that races with itself."""
    odd = f"open({str(counter(place))!r}).read().count('run') == 2"
    done = record(place, f"{OF_THE_RUN['a random id']} + ('; odd' if {odd} else '; even')")
    assert "control replay: accepted uuid:" in done.err
    assert "control replay: followed the recording" in done.err
    assert place.stumble("replay", "a.tape").code == 0


def test_a_changed_word_is_named_and_not_learnt(place: Shop) -> None:
    letters = "[chr(random.randrange(97, 123)) * 3 for _ in range(4)]"
    done = record(place, f'" ".join([str(uuid.uuid4()), *{letters}])')
    assert "control replay: diverged; `stumble replay " in done.err
    assert read_tape(place.folder / "a.tape").trajectory.rules == ()


REPORTER = """
import json, random, sys, urllib.error, urllib.request, uuid

def send(url, said):
    request = urllib.request.Request(url, json.dumps(said).encode())
    request.add_header("content-type", "application/json")
    try:
        return urllib.request.urlopen(request, timeout=30).read()
    except urllib.error.HTTPError as error:
        return b"refused " + str(error.code).encode()

session = f"session {uuid.uuid4()}"
asked = [{"role": "user", "content": "task: refund-1 as {session}"}]
words = [random.choice("abcdefgh") * 3 for _ in range(random.randrange(2, 9))]
model = {"model": "practice/naive", "messages": asked}
if not {LAST}:
    send("http://model.practice/v1/chat/completions", model)
told = send("http://shop.practice/tools/get_order", {"order_id": "ord-7100", "words": words})
if {USED}:
    failures = sum(told == f"refused {status}".encode() for status in (422, 503))
    asked.append({"role": "user", "content": f"failures: {failures}"})
if {LAST}:
    send("http://model.practice/v1/chat/completions", model)
"""


def record_reporter(place: Shop, *, used: bool = False, last: bool = True) -> Said:
    """Record an agent that reports, and asks the model before or, if `last`, after that."""
    source = REPORTER.replace("{USED}", str(used)).replace("{LAST}", str(last))
    source = source.replace("as {session}", '" + session + "')
    (place.folder / "agent.py").write_text(source)
    agent = (sys.executable, "agent.py")
    done = place.stumble("record", "-o", "a.tape", *place.host_options(), "--", *agent)
    assert done.code == 0, done.err
    return done


REPORT = "POST http://shop.practice/tools/get_order"


@pytest.mark.many(1)
@pytest.mark.parametrize("last", [False, True], ids=["after the model", "before the model"])
def test_what_an_agent_sends_without_consequence_is_not_compared(place: Shop, last: bool) -> None:
    """Before the model is asked too, as happens to a coding agent that a busy machine slows down.

    Then the model's request, with an id of the run, is never the first that is refused.
    """
    done = record_reporter(place, last=last)
    assert f"control replay: accepted background:{REPORT}" in done.err
    assert "control replay: followed the recording" in done.err
    for _ in range(2):
        again = place.stumble("replay", "a.tape")
        assert again.code == 0, again.err
        assert f"not compared, by a rule of the recording: {REPORT}" in again.err


def test_what_the_model_is_told_the_answer_of_is_compared(place: Shop) -> None:
    done = record_reporter(place, used=True)
    assert "background" not in done.err
    assert "control replay: diverged" in done.err
    assert place.stumble("replay", "a.tape").code == 3


COUNTER = """
import json, urllib.error, urllib.request, uuid
failures = 0

def send(tool, said):
    global failures
    asked = {"order_id": "ord-7100", "said": said}
    url = "http://shop.practice/tools/" + tool
    request = urllib.request.Request(url, json.dumps(asked).encode())
    try:
        urllib.request.urlopen(request, timeout=30).read()
    except urllib.error.HTTPError as error:
        failures += error.code in (422, 503)

send("get_order", f"session {uuid.uuid4()} begins")
send("refund", f"this session has {FAILURES} tries left")
"""


def test_a_count_of_refusals_is_compared(place: Shop) -> None:
    """The control refuses the session's id, so its count is 946; that is no value of the run."""
    (place.folder / "agent.py").write_text(COUNTER.replace("{FAILURES}", "{947 - failures}"))
    agent = (sys.executable, "agent.py")
    done = place.stumble("record", "-o", "a.tape", *place.host_options(), "--", *agent)
    assert "control replay: followed the recording" in done.err, done.err
    rules = read_tape(place.folder / "a.tape").trajectory.rules
    assert [rule.partition(":")[0] for rule in rules] == ["uuid"]
    (place.folder / "agent.py").write_text(COUNTER.replace("{FAILURES}", "{946 - failures}"))
    assert place.stumble("replay", "a.tape").code == 3
