"""`docs/statistics.md`: what every number means, for everything that gives one."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stores.in_memory_relations import (
    Sql,
    empty,
)
from traces.store.sql import VIEWS, bind_question, list_questions

FACTS = {
    "verdicts",
    "cohorts",
    "pipeline_runs",
    "runs",
    "forks",
    "slowest_calls",
    "cost_by_model",
}
"""Those whose numbers are measured on one run, and sums of these."""
PAGE = Path(__file__).parents[4] / "docs" / "statistics.md"
SECTION = re.compile(r"^### (.+?)\n(.*?)(?=^##|\Z)", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def sections() -> dict[str, str]:
    """The text of each name's section."""
    found = SECTION.findall(PAGE.read_text(encoding="utf-8"))
    return {name: text for names, text in found for name in re.findall(r"`(\w+)`", names)}


@pytest.fixture(scope="module")
def estimating() -> set[str]:
    """Views and questions that give a number which is no count."""
    with empty() as sql:
        return set(_estimating(sql))


def _estimating(sql: Sql) -> Iterator[str]:
    questions = {question.name: bind_question(question.name) for question in list_questions()}
    described = {name: (f'"{name}"', None) for name in VIEWS} | questions
    for name, (text, values) in described.items():
        columns = sql.execute(f"DESCRIBE {text}", values).fetchall()
        if any("DOUBLE" in kind for _, kind, *_ in columns):
            yield name


@pytest.mark.gate
def test_every_relation_of_rates_stands_in_the_page(
    sections: dict[str, str], estimating: set[str]
) -> None:
    assert sections.keys() | FACTS == estimating
    assert not sections.keys() & FACTS


def test_every_section_says_all_four(sections: dict[str, str]) -> None:
    for name, text in sections.items():
        said = re.findall(r"^\*\*(Estimand\.|Formula\.|Source\.|Not for)\*\*", text, re.MULTILINE)
        assert said == ["Estimand.", "Formula.", "Source.", "Not for"], name
