"""Tasks for agents without tools, whose model answers with the contents of files.

Wire fact: aider, with an unknown model, expects a file's name followed by a block with its full
text.
"""

from collections.abc import Mapping

STOCK_LINE = "stock 233511"
TEXT_ANSWERS: Mapping[str, str] = {
    "say-stock": f"Here it is.\n\nstock.txt\n```\n{STOCK_LINE}\n```\n"
}
"""The model's answers, by task id."""
