"""Practice agents: programs that solve the practice tasks."""

import sys

# httpx offers a command line if rich and click are installed, and loads them for it: that takes as
# long as the rest of it. With None in its place it is imported as if they were not.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
