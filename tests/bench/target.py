"""One line per target: what was measured, what it may be at most or at least, and whether it is.

Each bench prints its lines as rows of a table, so that `python -m tests.bench` has only to
collect them.
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
    """Print the row of one target; returns whether it is met, None where it was not measured."""
    met = None
    if figure is not None:
        met = (most is None or figure <= most) and (least is None or figure >= least)
    limit = f"at most {most:g}" if most is not None else f"at least {least:g}"
    said = "not measured" if figure is None else f"{figure:.3g}"
    verdict = {True: "ok", False: "**over**" if most is not None else "**under**", None: "unknown"}
    print(f"{ROW}{name} | {said} | {limit} | {unit} | {verdict[met]} |", flush=True)
    return met
