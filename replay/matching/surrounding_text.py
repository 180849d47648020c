"""The text around a value, which binds a learnt rule to one place in a text."""

import json
import re

from msgspec import Struct

from traces.conversation.volatile_fields import VOLATILE_TEXT


class SurroundingText(Struct, frozen=True):
    """The text before and after a value."""

    before: str = ""
    after: str = ""

    def __str__(self) -> str:
        text = f"{_escape_braces(self.before)}{{}}{_escape_braces(self.after)}"
        return json.dumps(text, ensure_ascii=False)

    @classmethod
    def parse(cls, quoted: str) -> "SurroundingText":
        """Parse the output of `str`. Raises ValueError unless it is a quoted text with one {}."""
        content = json.loads(quoted)
        before, after, holes = "", "", 0
        for token in re.finditer(r"\{\{|\}\}|\{\}|[^{}]+|.", content, re.DOTALL):
            match token[0]:
                case "{}":
                    holes += 1
                    continue
                case "{{" | "}}":
                    text = token[0][0]
                case text:
                    pass
            before, after = (before + text, after) if not holes else (before, after + text)
        if holes != 1:
            raise ValueError("what stands around the value has {} for it, once")
        return cls(before, after)

    def compile_pattern(self, form: str) -> re.Pattern[str]:
        """Return a pattern that matches only a value of this form between the two texts."""
        return re.compile(f"(?<={re.escape(self.before)})(?:{form})(?={re.escape(self.after)})")


def _escape_braces(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def cut_out_values(text: str, pattern: re.Pattern[str]) -> tuple[str, list[tuple[int, str]]]:
    """Return a text without the values that match, and those values with their offsets.

    The offsets are those in the new text, so they do not depend on the values' lengths.
    """
    parts, values, end, size = list[str](), list[tuple[int, str]](), 0, 0
    for match in pattern.finditer(text):
        parts += [text[end : match.start()], VOLATILE_TEXT]
        size += match.start() - end
        values.append((size, match[0]))
        size, end = size + len(VOLATILE_TEXT), match.end()
    return "".join([*parts, text[end:]]), values
