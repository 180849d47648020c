"""The report as one HTML file that needs neither network nor a script for what it shows."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stumble.report.drawing import svg
from stumble.report.examples import Example
from stumble.report.inks import DARK, LIGHT, Inks
from stumble.report.outcomes import DETECT
from stumble.report.values import Chart, Figure, Section

_HERE = Path(__file__).parent
TERMS = (
    ("struck", "the fault was performed: the nemesis bent an exchange"),
    ("reached (consumed)", "what the fault did is in the tool result that the agent's model saw"),
    ("absorbed", "a retry of the client hid the fault before the agent could see it"),
    ("recovered", "noticed, and the end state is right"),
    ("masked", "never noticed, and the end state is right all the same"),
    ("honestly failed", "the end state is wrong, and the agent said that it was not done"),
    ("noticed, yet wrong", "the agent saw it and still delivered something wrong as right"),
    ("silently wrong", "delivered wrong as right, without a sign that anything was noticed"),
    ("crashed", "no final answer: an exception, a loop, no end"),
    ("no verdict", "what decides it is not known: never a pass, never a failure"),
    ("handled", "absorbed, recovered, masked or honestly failed"),
    ("detectability", "what it would have taken to notice, rated for each injection:"),
    *((key, words.partition(", ")[2]) for key, words in DETECT.items()),
    ("sham", "an injection that changes nothing: it shows how often notice is false"),
    ("clean twins", "runs from the same fork point without the fault: the controls"),
    ("trace", "a recording, or a task, with all its repeats: what intervals are clustered by"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """All that the page says."""

    title: str
    about: tuple[str, ...]
    """When, of what store, which part of it."""
    sections: tuple[Section, ...]
    examples: tuple[Example, ...] = ()
    injections: int | None = None
    """How many there are, of which `examples` are some; None where the page is not about them."""
    terms: tuple[tuple[str, str], ...] = TERMS


def html(page: Page) -> str:
    """The page, with its charts drawn in place."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = (_HERE / "page.js").read_text(encoding="utf-8")
    return environment.get_template("page.html.jinja").render(
        page=page,
        style=(_HERE / "page.css").read_text(encoding="utf-8"),
        light=_variables(LIGHT),
        dark=_variables(DARK),
        script=script,
        script_hash=_hash(f"\n{script}"),
        draw=_drawn,
        is_figure=_is_figure,
    )


def _drawn(charts: Sequence[Chart]) -> list[tuple[Chart, str]]:
    return [(chart, svg(chart)) for chart in charts]


def _is_figure(cell: object) -> bool:
    return isinstance(cell, Figure)


def _variables(inks: Inks) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in inks.items())


def _hash(script: str) -> str:
    """What a browser compares a script with before it runs it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
