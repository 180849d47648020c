"""Which paths a snapshot leaves out, compared with what `pathspec` finds line by line."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given
from hypothesis import strategies as st

from scenarios.workspace.ignore_rules import IGNORE_FILE, IgnoreRules

PARTS = st.sampled_from(
    ["a", "b.py", ".env", ".env.example", "node_modules", "x.pem", "id_rsa.pub", "\n", "é", "[c]"]
)
PATHS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
LINES = st.lists(
    st.builds(
        "{}{}{}{}".format,
        st.sampled_from(["", "!", "#", "/", "**/", "\\"]),
        st.one_of(PATHS, st.sampled_from(["*", "a*", "?", "[a-c]*", "**", ""])),
        st.sampled_from(["", "/", "/*", "/**", "/**/a"]),
        st.sampled_from(["", " "]),
    ).map(lambda line: line.replace("\n", "")),
    max_size=5,
)


@example(lines=["*/"], path="a", folder=True)
@given(lines=LINES, path=PATHS, folder=...)
def test_a_path_is_left_out_by_the_last_line_that_matches(
    lines: list[str], path: str, folder: bool
) -> None:
    with TemporaryDirectory() as root:
        (Path(root) / IGNORE_FILE).write_text("\n".join(lines))
        try:
            rules = IgnoreRules.from_folder(Path(root))
        except ValueError:
            return  # a line that is no pattern
    match = rules.spec.check_file(f"{path}/" if folder else path)
    is_out = match.include and match.index is not None
    assert rules.find_exclusion(path, folder=folder) == (
        rules.origins[match.index or 0] if is_out else None
    )
