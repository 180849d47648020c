"""What published harnesses got wrong about injection, each as a test of ours (metrics C4).

Real servers, a real agent, real sockets; the engine is not asked what it did, but what the agent
and the model got is looked at. Mutants break it on purpose, and each of these tests sees that.
"""

import re
from collections.abc import Iterator
from copy import replace

import pytest

from faults.judging.judge import judge_injection
from stumble.runs.fork import find_fork_point
from stumble.store import index
from tests.support.agents.fork_matrix import (
    Open,
    Ran,
    opened,
    results,
)
from tests.support.stores.scripted_runs import (
    BENT,
    FAILED,
    ORDER,
    Telling,
    clean,
    struck,
)
from traces.conversation.derived_steps import derive_tape_steps
from traces.model import Fault, Place

TASK = "refund-1"
PLACES: dict[str, Place] = {"http": "http", "local": "model-boundary"}
RATES = ("recovery_rate", "recovery_given_notice", "silent_rate", "lo", "hi")


@pytest.fixture(scope="module")
def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Open]:
    with opened(tmp_path_factory.mktemp(request.param), request.param) as found:
        yield found


def fault(name: str, place: Place) -> Fault:
    return Fault(name=name, where={"tool": "get_order"}, at=place)


@pytest.mark.parametrize("stage", PLACES, indirect=True)
@pytest.mark.parametrize("name", ["digit", "truncate", "http_status"])
def test_c4_1_every_fired_fault_is_in_the_next_model_request_byte_for_byte(
    stage: Open, name: str
) -> None:
    place = PLACES[stage.stage.tools]
    ran = stage.run(stage.stage.forked(fault(name, place), TASK))
    true = results(stage.run(stage.stage.recorded(TASK)).heard[-1])
    assert len(ran.tape.injections) == ran.played.fired == 1
    injection, read = ran.injection, [results(body) for body in ran.heard]
    assert injection.mutated is not None
    assert len(read) > 1
    for each in read:
        told = each[injection.call_id or ""]
        assert told.endswith(injection.mutated)
        assert told != true[injection.call_id or ""]


GOT_UP = Telling().calls(FAILED).calls(ORDER).says("DONE: refunded").over()
DID_NOT = Telling().calls(FAILED).says("DONE: refunded").over(passed=False)


@pytest.mark.parametrize(("run", "recovered"), [(GOT_UP, "recovered"), (DID_NOT, "silent_wrong")])
def test_c4_1_recovery_is_computed_from_what_the_agent_did_and_from_nothing_of_ours(
    run, recovered: str
) -> None:
    """No draw, no seed and no parameter of the strike decides what became of it."""
    injection, twins = struck("E", FAILED), (clean(), clean(), clean())
    verdicts = [
        judge_injection(
            replace(injection, address=f"{n:032x}", params={"code": 500 + n}), run, twins
        )
        for n in range(20)
    ]
    assert {verdict.outcome for verdict in verdicts} == {recovered}
    assert all(verdict == verdicts[0] for verdict in verdicts)


@pytest.mark.parametrize("stage", ["http"], indirect=True)
def test_c4_2_a_plan_that_never_fires_has_no_rates(stage: Open) -> None:
    """And one that a client's own retry absorbed says nothing of the agent."""
    never = Fault(name="sign", where={"tool": "no_such_tool"})
    ran = stage.run(stage.stage.live(TASK, never))
    assert (ran.played.fired, ran.played.unfired, ran.tape.injections) == (0, ("sign",), ())
    assert ran.tape.trajectory.condition == "fault"
    with pytest.raises(LookupError, match="no call of tool 'no_such_tool'"):
        stage.run(stage.stage.forked(never, TASK))

    silent = Fault(name="hang", params={"cap_ms": 300}, at="model", nth=3)
    away = stage.run(stage.stage.forked(silent, TASK))
    assert away.played.fired == 1
    index.refresh_index(stage.stage.store)
    with stage.stage.store.connect() as sql:
        (injections,) = sql.execute(
            "select count(*) from injections where trajectory_id = ?", [ran.played.id]
        ).fetchone() or (None,)
        rates = sql.execute(
            f"select fired, consumed, {', '.join(RATES)} from recovery where op = 'hang'"
        ).fetchall()
        ops = sql.execute("select op from recovery where op = 'sign'").fetchall()
    assert injections == 0
    assert ops == []
    assert rates == [(1, 0, *(None for _ in RATES))]


SEED = 904716358
"""Of nine digits, which stand nowhere else."""
VOCABULARY = rb"(?i)stumbl|inject|(?<![a-z])fault|chaos|nemesis|\bsham\b|mutat|tamper|corrupt"


@pytest.mark.parametrize("stage", PLACES, indirect=True)
@pytest.mark.parametrize("name", ["digit", "http_status", "error_in_ok", "cut", "sham"])
def test_c4_5_no_canary_and_no_word_of_ours_is_in_any_byte_that_the_agent_can_see(
    stage: Open, name: str
) -> None:
    """Answers with their headers, the environment, and what stands in its folder."""
    place = PLACES[stage.stage.tools]
    was = stage.run(stage.stage.recorded(TASK))
    ran = stage.run(stage.stage.forked(fault(name, place), TASK, seed=SEED))
    injection = ran.injection
    assert re.search(VOCABULARY, ran.got) is None
    told = {str(SEED), injection.address, injection.id, ran.played.id, "http_status", "error_in_ok"}
    given = {k: v for k, v in ran.environment.items() if k != "PYTEST_CURRENT_TEST"}
    seen = ran.got + repr(given).encode() + b"".join(ran.heard)
    assert [word for word in told if word.encode() in seen] == []
    # Where we are installed, the proxy and its certificate are no secret: a clean run has them.
    assert ran.started_with == was.started_with
    assert headers(ran) <= headers(was) | {b"retry-after", b"www-authenticate"}


def headers(ran: Ran) -> set[bytes]:
    """The names of all fields that the agent got."""
    return {name.lower() for name in re.findall(rb"\r\n([\w-]+): ", ran.got)}


@pytest.mark.parametrize("stage", ["http"], indirect=True)
def test_c4_6_a_fault_lands_only_where_the_agent_takes_a_step_after_it(stage: Open) -> None:
    """The agent is stopped when it has made its last call, and never tells its model of it."""
    short = stage.run(stage.stage.live(TASK, most=8))
    assert short.played.exit.code == 3
    last = derive_tape_steps(short.tape).tool_uses[-1]
    aimed = Fault(name="digit", where={"tool": last.tool}, at="http")
    with pytest.raises(LookupError, match="no step after call 1 of"):
        find_fork_point(short.tape, aimed)
    for number in range(2):
        early = replace(aimed, where={}, when={"position": "late"})
        site = find_fork_point(short.tape, early, seed=number).site
        assert site.call_id != last.call_id

    ran = stage.run(stage.stage.forked(fault("digit", "http"), TASK))
    use = derive_tape_steps(ran.tape).find_use(ran.injection.call_id or "")
    assert use is not None
    assert use.result_seq is not None
    assert any(step.seqs[0] >= use.result_seq for step in derive_tape_steps(ran.tape).agent_steps)


def test_c4_6_a_wrong_value_that_nobody_was_told_is_no_verdict_on_the_agent() -> None:
    """It ended before its model was told."""
    gone = Telling().calls(BENT).over(passed=False, ended="crash")
    verdict = judge_injection(struck("V", BENT), gone, (clean(), clean(), clean()))
    assert (verdict.outcome, verdict.unreached_reason) == ("unreached", "ended_before")
    assert (verdict.noticed, verdict.recovered) == (None, None)
