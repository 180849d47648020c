"""What is known before a run: its cost, and that its model answers."""

import re
import sys
from pathlib import Path

import pytest

from stumble.errors import HarnessError
from stumble.pipeline.config import PipelineConfig
from stumble.pipeline.forecast import ask_model, forecast_run
from tests.support.stores.pipeline_runs import stored

NAMES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")


def test_published_runs_and_the_limit_are_told(tmp_path: Path) -> None:
    asked = PipelineConfig(agent="claude", model="a-model", limits={"dollars": 2.0})
    assert list(forecast_run(asked, tmp_path / "none")) == [
        "15 published runs of all stages took 10.1 to 199 minutes (median 61.9), "
        "3.48 to 219 million tokens (median 42.9), 0.0469 to 126 dollars (median 2.03)",
        "at most 2 dollars for all stages together",
    ]
    assert not (tmp_path / "none").exists()


def test_own_runs_of_the_model_are_told(tmp_path: Path) -> None:
    stored(tmp_path)
    asked = PipelineConfig(agent="claude", model="model-a")
    [_, own, limit] = forecast_run(asked, tmp_path)
    assert re.fullmatch(r"\d+ own runs of model-a took .* minutes .*", own)
    assert limit == "no limit of dollars (--dollars)"


@pytest.mark.parametrize("key", [None, "sk-nothing"])
def test_a_model_that_does_not_answer_is_asked_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    if key is not None:
        monkeypatch.setenv("OPENAI_API_KEY", key)
        monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")  # nobody listens
    asked = PipelineConfig(agent="builtin", model="openai/gpt-5")
    with pytest.raises(HarnessError, match="nothing was run, .* openai/gpt-5 gave no answer"):
        ask_model(asked)


def test_a_command_of_the_users_own_is_asked_nothing() -> None:
    ask_model(PipelineConfig(agent=f"{sys.executable} -c pass"))
