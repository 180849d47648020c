"""What an agent is told of its budget."""

from stumble.pipeline.budget_text import describe_attempts, describe_budget
from stumble.runs.budgets import OF_RUN


def test_without_limits_nothing_is_said() -> None:
    assert describe_budget({}, [], [], of_run=OF_RUN) == ""


def test_a_stage_has_its_whole_budget() -> None:
    said = describe_budget({"calls": 40, "seconds": 900}, [], [{"calls": 3}], of_run=OF_RUN)
    assert "Your budget for this stage: 40 model calls, 900 seconds. " in said


def test_a_run_names_what_the_stages_before_left() -> None:
    costs: list[dict[str, object]] = [
        {"calls": 12, "tokens": 1000, "cost_usd": 0.5},
        {"calls": 40, "tokens": 500},
    ]
    limits = {"calls": 50, "tokens": 200_000, "dollars": 2.0, "seconds": 3600}
    said = describe_budget(limits, costs[1:], costs[:1], of_run=frozenset(limits))
    assert "for all stages together: 50 model calls (0 left), 200,000 tokens (198,500 left)" in said
    assert "2 dollars (how much of it is left is unknown), 3,600 seconds. " in said


def test_dollars_are_those_of_the_run_in_every_mode() -> None:
    spent = [{"calls": 30, "cost_usd": 0.5}]
    said = describe_budget({"calls": 40, "dollars": 2.0}, [], spent, of_run=OF_RUN)
    expected = "for this stage: 40 model calls; for all stages together: 2 dollars (1.50 left). "
    assert expected in said


def test_a_stage_that_is_tried_again_has_what_its_attempts_left() -> None:
    said = describe_budget({"calls": 40, "seconds": 900}, [{"calls": 30}], [], of_run=OF_RUN)
    assert "Your budget for this stage: 40 model calls (10 left), 900 seconds. " in said


def test_an_attempt_is_told_its_number_the_score_before_and_what_is_left() -> None:
    assert describe_attempts(1, [], 60.0) == ""
    assert "attempt 1 of 3 at this stage. 2 more are left" in describe_attempts(3, [], 60.0)
    second = describe_attempts(3, [41.25], 60.0)
    assert "attempt 2 of 3 at this stage. The one before scored 41.2 of 100. " in second
    assert "1 more is left" in second
    assert "nothing. It is the last one" in describe_attempts(3, [41.25, 0.0], 60.0)
