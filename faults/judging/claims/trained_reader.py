"""Read a claim by a linear model that was trained on labelled finals of real agents.

Multinomial logistic regression: p(claim) = softmax(b + sum of w over the features). The
weights are data (`trained_weights.json`), made by `python -m faults.judging.claims.training`.
"""

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from math import exp

from msgspec import Struct

from faults.judging.claims.end_features import extract_end_features
from faults.judging.claims.final_turns import FinalTurns
from faults.judging.claims.types import CLAIMS, Claim

WEIGHTS_FILE = "trained_weights.json"
TRAINED_CLAIMS: tuple[Claim, ...] = CLAIMS[:-1]
"""The claims that are told apart."""


class TrainedWeights(Struct, frozen=True):
    """The parameters: one number a claim, in the order of TRAINED_CLAIMS."""

    bias: tuple[float, ...]
    features: Mapping[str, tuple[float, ...]]

    def read_features(self, features: Iterable[str]) -> dict[Claim, float]:
        """Return the probability of each claim. Features without a weight are left out."""
        found = [self.bias, *(self.features[each] for each in features if each in self.features)]
        sums = [sum(column) for column in zip(*found, strict=True)]
        powers = [exp(each - max(sums)) for each in sums]
        return {
            claim: power / sum(powers) for claim, power in zip(TRAINED_CLAIMS, powers, strict=True)
        }


@cache
def load_trained_weights() -> TrainedWeights:
    """Load the weights, once."""
    text = files("faults.judging.claims").joinpath(WEIGHTS_FILE).read_text("utf-8")
    stored = json.loads(text)
    return TrainedWeights(
        tuple(stored["bias"]),
        {name: tuple(row) for name, row in stored["features"].items()},
    )


def read_claim_probabilities(final: FinalTurns) -> dict[Claim, float]:
    """Return how likely each claim is by the end of a run alone."""
    return load_trained_weights().read_features(extract_end_features(final))
