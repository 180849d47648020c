"""The provider of `stumble selftest --provider`: its model, its key, and its price."""

import os

from stumble.errors import UsageError
from stumble.llm.model_choice import ModelChoice
from stumble.llm.prices import compute_token_cost
from traces.dialects.types import TokenUsage
from traces.did_you_mean import suggest_nearest_name

CHEAP_MODELS = {
    "openai": "gpt-4.1-nano",
    "anthropic": "claude-haiku-4-5",
    "gemini": "gemini-2.5-flash-lite",
}
"""The model of a provider that is named alone."""
_MILLION = TokenUsage(prompt_tokens=1_000_000, completion_tokens=1_000_000)


def choose_provider(name: str) -> ModelChoice:
    """Return the model of `PROVIDER` or `PROVIDER:MODEL`, if its key is in the environment.

    Raises UsageError for an unknown provider, without its key, and for a model without a price.
    """
    choice = ModelChoice.parse(f"{name}:{CHEAP_MODELS[name]}" if name in CHEAP_MODELS else name)
    if choice.provider is None:
        hint = suggest_nearest_name(name, tuple(CHEAP_MODELS))
        raise UsageError(f"--provider {name}: give PROVIDER or PROVIDER:MODEL{hint}")
    import litellm

    missing = litellm.validate_environment(f"{choice.provider}/{choice.name}")["missing_keys"]
    if missing:
        raise UsageError(
            f"--provider {choice.provider}: this asks a real model, at your cost, with your key: "
            f"set {' and '.join(missing)}"
        )
    if compute_token_cost(choice.name, _MILLION) is None:
        raise UsageError(f"{choice}: no price is known, so --dollars could not be kept")
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    return choice
