"""`stumble`, and `python -m stumble`: the front door, with a wicket for what must start at once."""

import sys

HELP = ("-h", "--help")


def main() -> None:
    """Run the command line.

    `stumble mcp` stands in the way of each session of a client, which waits for it; the front
    door itself takes longer to load than that may take.
    """
    if sys.argv[1:2] == ["mcp"] and sys.argv[2:3] and sys.argv[2] not in HELP:
        from recorder.tee import main as tee

        tee(sys.argv[2:], recorder=(sys.executable, "-I", "-m", "stumble.alone"))
    from stumble.cli import main as door

    door()


if __name__ == "__main__":
    main()
