"""One line per target: the measured value, its limit, and whether it is met.

Each benchmark prints its lines as rows of a table, which `python -m tests.bench` collects.
"""

ROW = "| "


def target(
    name: str,
    figure: float | None,
    unit: str,
    *,
    most: float | None = None,
    least: float | None = None,
) -> bool | None:
    """Print the row of one target; return whether it is met, None if it was not measured."""
    met = None
    if figure is not None:
        met = (most is None or figure <= most) and (least is None or figure >= least)
    limit = f"at most {most:g}" if most is not None else f"at least {least:g}"
    said = "not measured" if figure is None else f"{figure:.3g}"
    verdict = {True: "ok", False: "**over**" if most is not None else "**under**", None: "unknown"}
    print(f"{ROW}{name} | {said} | {limit} | {unit} | {verdict[met]} |", flush=True)
    return met
