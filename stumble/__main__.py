"""`stumble`, and `python -m stumble`: the front door, with a wicket for what must start at once."""

import sys

OTHERS = ("-h", "--help", "--replay", "--http", "--port", "--speed")
"""What of `stumble mcp` the front door does."""


def main() -> None:
    """Run the command line.

    `stumble mcp` stands in the way of each session of a client, which waits for it; the front
    door itself takes longer to load than that may take.
    """
    if sys.argv[1:2] == ["mcp"] and stands_before(sys.argv[2:]):
        from recorder.tee import main as tee

        tee(sys.argv[2:], recorder=(sys.executable, "-I", "-m", "stumble.alone"))
    from stumble.cli import main as door

    door()


def stands_before(words: list[str]) -> bool:
    """Whether `stumble mcp` is asked to stand before a server, by the first of its options."""
    while words[:1] in (["--name"], ["--run"]):
        words = words[2:]
    return bool(words) and words[0].partition("=")[0] not in OTHERS


if __name__ == "__main__":
    main()
