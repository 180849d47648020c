"""Token prices from litellm's local price map, read as data: importing litellm takes 2 s."""

import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from traces.dialects.types import TokenUsage

_NOMINAL_PRICES = {"practice/solver": {"input_cost_per_token": 1e-6, "output_cost_per_token": 4e-6}}
"""Of the pipeline's scripted model, which costs nothing, so that its runs have all figures."""
_PRICE_MAP_FILE = "model_prices_and_context_window_backup.json"


@cache
def _load_price_map() -> dict[str, dict[str, float]]:
    spec = find_spec("litellm")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("litellm is not installed; it brings the price map")
    prices: dict[str, dict[str, float]] = json.loads(
        (Path(spec.origin).parent / _PRICE_MAP_FILE).read_text()
    )
    return prices


def compute_token_cost(model: str, usage: TokenUsage) -> float | None:
    """Return US dollars; None if the model or the counts are unknown.

    Cached tokens are part of the prompt tokens and cost the cache price; reasoning tokens are
    part of the completion tokens.
    """
    entry = (
        _NOMINAL_PRICES.get(model.partition(":")[0])
        or _load_price_map().get(model)
        or _load_price_map().get(model.rpartition("/")[2])
    )
    if entry is None or usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    per_in, per_out = entry.get("input_cost_per_token"), entry.get("output_cost_per_token")
    if per_in is None or per_out is None:
        return None
    cached = usage.cached_tokens or 0
    per_cached = entry.get("cache_read_input_token_cost") or per_in
    fresh = usage.prompt_tokens - cached
    return fresh * per_in + cached * per_cached + usage.completion_tokens * per_out
