"""Tasks for agents without tools, whose model says what files are to hold.

Wire fact: aider, with a model that it knows nothing of, takes a file's name, and behind it a block
with all of its text.
"""

from collections.abc import Mapping

STOCK = "stock 233511"
SPOKEN: Mapping[str, str] = {"say-stock": f"Here it is.\n\nstock.txt\n```\n{STOCK}\n```\n"}
"""What the model says, by the id of the task."""
