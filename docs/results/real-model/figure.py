"""The figure of the study: dots with intervals, a panel for each temperature."""

from collections.abc import Iterator, Mapping, Sequence

KINDS = {"twin": "nothing", "sham": "sham", "http_status": "503", "digit": "digit"}
POLICIES = ("none", "retries", "read-back")
TEMPERATURES = ("0", "0.4", "0.8")
LEFT, PANEL, GAP, LINE, TOP = 110, 170, 30, 19, 52
STYLE = """<style>
text{font:12px sans-serif;fill:#333}.bold{font-weight:bold}.middle{text-anchor:middle}
.grid{stroke:#ddd}
.mark{stroke:#1769aa;fill:#1769aa;stroke-width:2}.fault{stroke:#c2410c;fill:#c2410c}
@media (prefers-color-scheme: dark){
text{fill:#ccc}.grid{stroke:#444}.mark{stroke:#6cb6ff;fill:#6cb6ff}
.fault{stroke:#ff9a6b;fill:#ff9a6b}}
</style>"""

type Row = Mapping[str, str]


def draw_rates(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of an SVG of rates.csv: the share of runs that end right, with intervals."""
    found = {(row["temperature"], row["policy"], row["kind"]): row for row in rows}
    lines = len(POLICIES) * (len(KINDS) + 1)
    width, height = LEFT + len(TEMPERATURES) * (PANEL + GAP), TOP + lines * LINE + 6
    yield f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">'
    yield STYLE
    yield '<text class="bold" x="0" y="14">Share of runs that end right, 95 % by task</text>'
    for nth, temperature in enumerate(TEMPERATURES):
        left = LEFT + nth * (PANEL + GAP)
        yield from _draw_axis(left, height, f"temperature {temperature}")
    for nth, policy in enumerate(POLICIES):
        top = TOP + nth * (len(KINDS) + 1) * LINE
        yield f'<text class="bold" x="0" y="{top + 13}">policy {policy}</text>'
        for below, (kind, label) in enumerate(KINDS.items(), start=1):
            middle = top + below * LINE + 9
            yield f'<text x="12" y="{middle + 4}">{label}</text>'
            for column, temperature in enumerate(TEMPERATURES):
                row = found.get((temperature, policy, kind))
                left = LEFT + column * (PANEL + GAP)
                yield from _draw_row(left, middle, row) if row else ()
    yield "</svg>"


def _draw_axis(left: int, height: int, title: str) -> Iterator[str]:
    yield f'<text class="middle" x="{left + PANEL / 2:g}" y="32">{title}</text>'
    for part in (0, 0.5, 1):
        x = left + part * PANEL
        yield f'<text class="middle" x="{x:g}" y="48">{part:g}</text>'
        yield f'<line class="grid" x1="{x:g}" x2="{x:g}" y1="{TOP}" y2="{height - 4}"/>'


def _draw_row(left: int, middle: int, row: Row) -> Iterator[str]:
    kind = "mark" if row["kind"] in ("twin", "sham") else "mark fault"
    if row["lo"] and row["hi"]:
        low, high = (left + float(row[end]) * PANEL for end in ("lo", "hi"))
        yield f'<line class="{kind}" x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}"/>'
    x = left + float(row["rate"]) * PANEL
    title = f"<title>{row['ends_right']} of {row['known']}</title>"
    yield f'<circle class="{kind}" cx="{x:.1f}" cy="{middle}" r="3.5">{title}</circle>'
