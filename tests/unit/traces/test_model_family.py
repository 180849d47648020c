"""Names of models as gateways, providers and releases write them."""

import pytest

from traces.model_family import find_model_family

SAME = {
    "gpt-4o": ("openai/gpt-4o", "GPT-4o", "gpt-4o-2024-08-06", "azure/gpt-4o", "gpt-4o-latest"),
    "gpt-4": ("gpt-4-0613", "openrouter/openai/gpt-4"),
    "gpt-4-1": ("gpt-4.1-2025-04-14", "openai/gpt-4.1"),
    "claude-3-5-sonnet": (
        "claude-3-5-sonnet-20241022",
        "anthropic/claude-3.5-sonnet",
        "anthropic/claude-3.5-sonnet:beta",
        "us.anthropic.claude-3-5-sonnet-20241022-v2:0",
        "bedrock/anthropic.claude-3-5-sonnet-20240620-v1:0",
        "vertex_ai/claude-3-5-sonnet@20240620",
        "claude-3-5-sonnet-latest",
        "arn:aws:bedrock:us-east-1:1:inference-profile/eu.anthropic.claude-3-5-sonnet-20240620-v1:0",
    ),
    "gemini-2-5-pro-preview": (
        "models/gemini-2.5-pro-preview-05-06",
        "google/gemini-2.5-pro-preview",
    ),
    "command-r": ("command-r-08-2024", "cohere.command-r-v1:0"),
    "mistral-large": ("mistral-large-2407", "mistral/mistral-large-latest"),
    "llama3-1:8b": ("llama3.1:8b", "ollama/llama3.1:8b"),
    "qwen2-5-coder-32b-instruct": (
        "Qwen/Qwen2.5-Coder-32B-Instruct",
        "qwen2.5-coder-32b-instruct:free",
    ),
    "o1": ("o1-2024-12-17", "openai/o1"),
    "practice-retries": ("practice-retries",),
}  # fmt: skip
APART = (
    "gpt-4o",
    "gpt-4o-mini",
    "gpt-4",
    "gpt-4.1",
    "o1",
    "o1-mini",
    "claude-3-opus",
    "claude-4-opus",
)


@pytest.mark.parametrize(("family", "names"), SAME.items(), ids=SAME)
def test_spellings_of_a_model_have_one_family(family: str, names: tuple[str, ...]) -> None:
    assert {name: find_model_family(name) for name in names} == dict.fromkeys(names, family)
    assert find_model_family(family) == family


def test_models_that_differ_and_fine_tuned_ones_have_families_of_their_own() -> None:
    assert len({find_model_family(name) for name in APART}) == len(APART)
    tuned = "ft:gpt-4o-mini-2024-07-18:acme::A1"
    assert find_model_family(tuned) == tuned.lower()
    assert [find_model_family(name) for name in (None, "", "  ", 4)] == [None] * 4
