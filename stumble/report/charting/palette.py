"""Colours: six hues for outcomes, distinct for colour-blind people, in light and in dark.

After Okabe and Ito. Every use of a colour also has a text label.
"""

from collections.abc import Mapping
from types import MappingProxyType

type Palette = Mapping[str, str]

LIGHT_PALETTE: Palette = MappingProxyType(
    {
        "paper": "#ffffff",
        "ink": "#1c2430",
        "soft": "#5b6675",
        "line": "#d9dee5",
        "absorbed": "#8fb3c9",
        "recovered": "#0072b2",
        "masked": "#56b4e9",
        "honest_fail": "#009e73",
        "noticed_wrong": "#e69f00",
        "silent_wrong": "#d55e00",
        "crashed": "#7a3e9d",
        "unsettled": "#b5bcc6",
        "observed": "#0072b2",
        "constant": "#d55e00",
        "naive": "#5b6675",
        "clean": "#0072b2",
        "faulted": "#d55e00",
    }
)
DARK_PALETTE: Palette = MappingProxyType(
    {
        "paper": "#12161c",
        "ink": "#e6eaf0",
        "soft": "#a3adba",
        "line": "#333c48",
        "absorbed": "#6d8ea3",
        "recovered": "#3b9fe0",
        "masked": "#8fd0f5",
        "honest_fail": "#2bc49a",
        "noticed_wrong": "#f2b632",
        "silent_wrong": "#f07a2b",
        "crashed": "#b883d6",
        "unsettled": "#5d6773",
        "observed": "#3b9fe0",
        "constant": "#f07a2b",
        "naive": "#a3adba",
        "clean": "#3b9fe0",
        "faulted": "#f07a2b",
    }
)
PAGE_PALETTE: Palette = MappingProxyType({name: f"var(--{name})" for name in LIGHT_PALETTE})
"""CSS variables for a page, so that one chart is right in light and in dark."""
