"""Templates of the pages: every value is escaped, and shown without characters that act."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from stumble.report.charting.palette import DARK_PALETTE, LIGHT_PALETTE, Palette
from stumble.ui.shown_text import show_value

if TYPE_CHECKING:
    import jinja2

FOLDER = Path(__file__).parent
STATIC = FOLDER / "static"


@cache
def load_templates() -> "jinja2.Environment":
    """Return the environment of the templates."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=show_value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["count"] = "{:,}".format
    return environment


def render_page(template: str, values: Mapping[str, object]) -> str:
    """Render a template of `templates/`."""
    return load_templates().get_template(template).render(**values)


def build_palette_css() -> str:
    """Return the colours of the report as variables, for light and dark."""
    return (
        f":root {{ {_list_variables(LIGHT_PALETTE)} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {_list_variables(DARK_PALETTE)} }} }}\n"
    )


def _list_variables(palette: Palette) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in palette.items())
