"""T1: split a program of the small C into tokens. Usage: run PROGRAM TOKENS."""

import json
import re
import sys
from pathlib import Path

KEYWORDS = frozenset(
    ["const", "int", "void", "if", "else", "while", "for", "break", "continue", "return"]
)
SIGNS = {
    "(": "l_paren", ")": "r_paren", "[": "l_square", "]": "r_square",
    "{": "l_brace", "}": "r_brace", ";": "semi", ",": "comma",
    "=": "equal", "+=": "plusequal", "-=": "minusequal", "*=": "starequal",
    "/=": "slashequal", "%=": "percentequal", "+": "plus", "-": "minus",
    "*": "star", "/": "slash", "%": "percent", "!": "exclaim",
    "~": "tilde", "&&": "ampamp", "||": "pipepipe", "&": "amp",
    "|": "pipe", "^": "caret", "<<": "lessless", ">>": "greatergreater",
    "<": "less", ">": "greater", "<=": "lessequal", ">=": "greaterequal",
    "==": "equalequal", "!=": "exclaimequal",
}  # fmt: skip
LONGEST_FIRST = sorted(SIGNS, key=len, reverse=True)

WORD = re.compile(
    r"(?P<newline>\n)"
    r"|(?P<blank>[ \t\r\f\v]+)"
    r"|(?P<line_comment>//[^\n]*)"
    r"|(?P<comment>/\*.*?\*/)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<number>0[xX][0-9a-fA-F]+|[0-9]+)"
    r"|(?P<character>'(?:\\.|[^'\\])')"
    rf"|(?P<sign>{'|'.join(re.escape(sign) for sign in LONGEST_FIRST)})",
    re.DOTALL,
)


def classify_word(group: str, text: str) -> str:
    """Return the kind of a word."""
    if group == "name":
        return text if text in KEYWORDS else "identifier"
    if group == "sign":
        return SIGNS[text]
    return "numeric_constant" if group == "number" else "char_constant"


def format_source_tokens(source: str) -> list[str]:
    """Return one line of JSON per token."""
    found: list[str] = []
    start, space, line, begins = True, False, 1, 0
    at = 0
    while at < len(source):
        word = WORD.match(source, at)
        if word is None:
            raise SystemExit(f"{line}:{at - begins + 1}: {source[at]!r} begins no word")
        group, text = str(word.lastgroup), word.group()
        if group in ("name", "number", "character", "sign"):
            token = {
                "kind": classify_word(group, text),
                "text": text,
                "line": line,
                "column": at - begins + 1,
                "start": start,
                "space": space,
            }
            found.append(json.dumps(token, separators=(",", ":")))
            start, space = False, False
        elif group == "newline":
            start, space = True, False
        else:
            space = True
        at = word.end()
        if "\n" in text:
            line += text.count("\n")
            begins = at - len(text) + text.rindex("\n") + 1
    return found


def main(given: str, to: str) -> None:
    """Read the program, write its tokens."""
    source = Path(given).read_text()
    Path(to).write_text("".join(f"{line}\n" for line in format_source_tokens(source)))


if __name__ == "__main__":
    main(*sys.argv[1:])
