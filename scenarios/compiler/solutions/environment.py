"""T0: says that all is there that the other stages need. Usage: run INPUT OUTPUT."""

import sys
from pathlib import Path


def main(given: str, to: str) -> None:
    """The interpreter that the other stages are written for is the one that runs this."""
    ready = sys.version_info >= (3, 10) and Path(given).exists()
    Path(to).write_text('{"ready":true}\n' if ready else '{"ready":false}\n')


if __name__ == "__main__":
    main(*sys.argv[1:])
