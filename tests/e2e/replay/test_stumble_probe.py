"""One recorded request, asked of a model as it was and with the tool's result struck."""

import json
from collections.abc import Iterator
from random import Random

import numpy
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from stumble.runs import next_step_probe
from tests.support.practice_shop import (
    Said,
    Shop,
    shop,
)
from tests.support.tiers import examples

ACTIONS = st.lists(st.sampled_from("abc"), min_size=2, max_size=4)
type Codes = numpy.typing.NDArray[numpy.int_]


@pytest.fixture(scope="module")
def open_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with shop(tmp_path_factory.mktemp("shop")) as found:
        assert found.record().code == 0
        yield found


def ask(open_shop: Shop, *words: str) -> Said:
    [port] = [host.rpartition(":")[2] for host in open_shop.hosts if host.startswith("model")]
    base = {"OPENAI_API_BASE": f"http://127.0.0.1:{port}/v1"}
    return open_shop.stumble("probe", "a.tape", *words, env=base)


def test_a_model_that_retries_makes_the_call_again_when_its_result_was_cut(
    open_shop: Shop,
) -> None:
    before = len(open_shop.asked())
    probes = open_shop.folder / ".stumble" / "probes"
    earlier = {*probes.glob("*.json")}
    said = ask(open_shop, "--fault", "truncate:keep=0.3", "--model", "openai/practice/retries",
               "--k", "4", "--json")  # fmt: skip
    assert said.code == 0, said.err
    found = said.json
    assert len(open_shop.asked()) == before + 8
    assert found["repeats"] == {"clean": 0, "faulted": 4}
    assert found["actions"][found["recorded_action"]] == {"clean": 4}
    assert found["distance"] == 1.0
    assert found["p_value"] == pytest.approx(2 / 70)
    assert found["mutated"] == found["original"][: len(found["mutated"])]
    [kept] = {*probes.glob("*.json")} - earlier
    assert json.loads(kept.read_text()) == found


def test_a_model_that_looks_at_nothing_does_the_same_with_a_sham(open_shop: Shop) -> None:
    said = ask(open_shop, "--fault", "sham", "--model", "openai/practice/naive", "--k", "2")
    assert said.code == 0, said.err
    assert "distance 0.00 of 1, permutation p = 1.000" in said.out


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("--fault", "digit", "--model", "nobody/x", "--k", "1"), 6, "LLM Provider NOT provided"),
        (("--fault", "digit", "--model", "openai/gpt-4o", "--max-cost", "0.01"), 2, "--k 1 fits"),
        (("--fault", "digit", "--model", "openai/x", "--max-cost", "1"), 2, "no price is known"),
        (("--fault", "digit:field=nope", "--model", "openai/x"), 2, "digit cannot bend it"),
        (("--fault", "digit", "--where", "tool=nope", "--model", "x"), 2, "no call of tool 'nope'"),
        (("--fault", "digit", "--at", "http", "--model", "x"), 2, "model requests only"),
    ],
)
def test_what_cannot_be_asked_is_one_clear_line(
    open_shop: Shop, words: tuple[str, ...], code: int, why: str
) -> None:
    said = ask(open_shop, *words)
    assert said.code == code
    assert why in said.err
    assert "Traceback" not in said.err


@settings(max_examples=examples(25), deadline=None)
@given(ACTIONS, ACTIONS)
def test_the_p_value_is_that_of_scipy(clean: list[str], faulted: list[str]) -> None:
    def statistic(x: Codes, y: Codes) -> float:
        return next_step_probe.measure_action_distance([str(v) for v in x], [str(v) for v in y])

    data = [numpy.array(["abc".index(action) for action in group]) for group in (clean, faulted)]
    oracle = scipy.stats.permutation_test(
        data, statistic, vectorized=False, alternative="greater", n_resamples=numpy.inf
    )
    assert next_step_probe.compute_permutation_p_value(clean, faulted) == pytest.approx(
        oracle.pvalue
    )


def test_many_answers_are_tested_by_a_draw_that_the_seed_decides() -> None:
    rng = Random(1)
    clean, faulted = rng.choices("ab", [9, 1], k=20), rng.choices("ab", [1, 9], k=20)
    first = next_step_probe.compute_permutation_p_value(clean, faulted, seed=3)
    assert first == next_step_probe.compute_permutation_p_value(clean, faulted, seed=3)
    assert first is not None
    assert 0 < first < 0.001


def test_no_answer_is_no_p_value() -> None:
    assert next_step_probe.compute_permutation_p_value([], ["a"]) is None
