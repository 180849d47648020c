"""Seeded changes to requests, and an independent test of whether two are equivalent.

`same` shares nothing with the matcher: it splits JSON into tokens and compares their spelling,
ignoring white space and the order of keys.
"""

import gzip
import re
import unicodedata
import zlib
from collections.abc import Callable, Sequence
from copy import replace
from random import Random
from typing import Literal
from urllib.parse import unquote

from traces.model import Request

_TOKEN = re.compile(
    rb'[ \t\r\n]*("(?:[^"\\\x00-\x1f]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+)', re.DOTALL
)
_ESCAPE = re.compile(rb"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_SHORT = {b"b": 8, b"f": 12, b"n": 10, b"r": 13, b"t": 9}

type Tree = bytes | list["Tree"] | tuple["Tree", ...]


def tree(text: bytes) -> Tree | None:
    """Return the tokens of a JSON text, with the members of an object sorted by key."""
    tokens, at = list[bytes](), 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            if text[at:].strip(b" \t\r\n"):
                return None
            break
        tokens.append(found[1])
        at = found.end()
    try:
        found_tree, rest = _value(tokens, 0)
    except (IndexError, ValueError):
        return None
    return found_tree if rest == len(tokens) else None


def _value(tokens: Sequence[bytes], at: int) -> tuple[Tree, int]:
    match tokens[at]:
        case b"{":
            members, at = _listed(tokens, at + 1, b"}", keyed=True)
            return tuple(sorted(members, key=repr)), at
        case b"[":
            items, at = _listed(tokens, at + 1, b"]", keyed=False)
            return items, at
        case b"}" | b"]" | b"," | b":":
            raise ValueError("no value")
        case text:
            return _plain(text), at + 1


def _listed(tokens: Sequence[bytes], at: int, end: bytes, *, keyed: bool) -> tuple[list[Tree], int]:
    found = list[Tree]()
    if tokens[at] == end:
        return found, at + 1
    while True:
        if keyed:
            key, at = _value(tokens, at)
            if tokens[at] != b":":
                raise ValueError("no member")
            item, at = _value(tokens, at + 1)
            found.append((key, item))
        else:
            item, at = _value(tokens, at)
            found.append(item)
        if tokens[at] == end:
            return found, at + 1
        if tokens[at] != b",":
            raise ValueError("no comma")
        at += 1


def _plain(text: bytes) -> bytes:
    """Return a string without its escapes; any other token unchanged."""
    if text[:1] != b'"':
        return text

    def said(found: re.Match[bytes]) -> bytes:
        if found[1]:
            return chr(int(found[1], 16)).encode("utf-16-le", "surrogatepass")
        code = _SHORT.get(found[2])
        return (found[2] if code is None else bytes((code,))) + b"\0"

    pieces, at = list[bytes](), 1
    for found in _ESCAPE.finditer(text, 1, len(text) - 1):
        pieces += [_wide(text[at : found.start()]), said(found)]
        at = found.end()
    return b"".join([b'"', *pieces, _wide(text[at:-1])])


def _wide(text: bytes) -> bytes:
    return text.decode("utf-8", "surrogateescape").encode("utf-16-le", "surrogatepass")


def same(one: Request, two: Request) -> bool:
    """Return True if two requests are equivalent; header fields are compared exactly."""
    if (one.method, one.url, one.headers) != (two.method, two.url, two.headers):
        return False
    if one.body == two.body:
        return True
    was, now = tree(one.body), tree(two.body)
    return was is not None and was == now


type Change = Callable[[Random, Request], Request]

CONFUSING = (
    b"1", b"1.0", b"1e0", b"0", b"-0", b"0.0", b"-0.0", b"null", b"true", b"false", b"NaN",
    b"1e400", b"-1e400",
    b"9007199254740992", b"9007199254740993", b"123456789012345678901", b"0.1",
    b"0.10000000000000000001", b'""', b'"1"', b"[]", b"{}", b"[null]", b'"VOLATILE"',
    b'"REDACTED"', b'"RDk1Z"', b'"REDACTEDk1xxxZ"', b'"REDACTEDo1xxxxxxxxxxxxxZ"',
    b'{"NaN":{}}', b'"\\u0000"', b'"\\ud800"',
)  # fmt: skip
FORMS: tuple[Literal["NFC", "NFD", "NFKC", "NFKD"], ...] = ("NFC", "NFD", "NFKC", "NFKD")
INVISIBLE = (
    b"\xc2\xa0", b"\xe2\x80\x8b", b"\xc2\xad", b"\0", b"\x0b", b"\x0c", b"\r\n", b"\\ud83d",
    b"\xff", b"\xed\xa0\x80", b"\xc0\xaf", b"\xef\xbf\xbd",
)  # fmt: skip
LOOKALIKES = (b"RDa1Z", b"RDk1xxZ", b"REDACTEDk1xxxxxZ", b"REDACTEDo1xZ", b"VOLATILE", b"REDACTED")
_LEAF = re.compile(rb'"(?:[^"\\]|\\.)*"(?!\s*:)|-?\d+(?:\.\d+)?|true|false|null')
_MEMBER = re.compile(rb'"(?:[^"\\]|\\.)*"\s*:\s*(?:"(?:[^"\\]|\\.)*"|-?\d[\d.]*|true|false|null)')


def byte(chance: Random, request: Request) -> Request:
    """Change, delete or duplicate one byte of the body."""
    if not request.body:
        return letter(chance, request)
    at, body = chance.randrange(len(request.body)), request.body
    new = chance.choice((bytes((chance.randrange(256),)), b"", body[at : at + 1] * 2))
    return replace(request, body=body[:at] + new + body[at + 1 :])


def letter(chance: Random, request: Request) -> Request:
    """Change, delete or duplicate one character of path or query."""
    start = len(request.url) - len(re.sub(r"\A\w+://[^/?#]*/?", "", request.url))
    at = chance.randrange(start, len(request.url) + 1)
    old = request.url[at : at + 1]
    new = chance.choice((chance.choice("aZ09-._~/?&=%+;"), "", old * 2))
    return replace(request, url=request.url[:at] + new + request.url[at + 1 :])


def swapped(chance: Random, request: Request) -> Request:
    """Swap two values of the body."""
    leaves = list(_LEAF.finditer(request.body))
    if len(leaves) < 2:
        return byte(chance, request)
    one, two = sorted(chance.sample(leaves, 2), key=re.Match.start)
    return replace(request, body=_put(request.body, (one, two[0]), (two, one[0])))


def confused(chance: Random, request: Request) -> Request:
    """Replace a value by one that readers confuse with it."""
    leaves = list(_LEAF.finditer(request.body))
    if not leaves:
        return letter(chance, request)
    return replace(
        request, body=_put(request.body, (chance.choice(leaves), chance.choice(CONFUSING)))
    )


def doubled(chance: Random, request: Request) -> Request:
    """Duplicate a member, with the same or another value."""
    members = list(_MEMBER.finditer(request.body))
    if not members:
        return byte(chance, request)
    member = chance.choice(members)
    other = re.sub(rb":\s*.*\Z", lambda _: b":" + chance.choice(CONFUSING), member[0], flags=re.S)
    pair = chance.choice(
        (member[0] + b"," + member[0], other + b"," + member[0], member[0] + b"," + other)
    )
    return replace(request, body=_put(request.body, (member, pair)))


def lookalike(chance: Random, request: Request) -> Request:
    """Insert text that looks like a placeholder."""
    said = chance.choice(LOOKALIKES)
    leaves = [leaf for leaf in _LEAF.finditer(request.body) if leaf[0][:1] == b'"']
    if not leaves:
        return replace(request, url=request.url + said.decode())
    leaf = chance.choice(leaves)
    text = chance.choice(
        (b'"' + said + b'"', leaf[0][:-1] + said + b'"', b'"' + said + leaf[0][1:])
    )
    return replace(request, body=_put(request.body, (leaf, text)))


def field(chance: Random, request: Request) -> Request:
    """Delete, change or add a header field."""
    headers = list(request.headers)
    at = chance.randrange(len(headers) + 1)
    if at == len(headers):
        name = chance.choice(("range", "x-amz-target", "if-match", "x-tenant", "prefer"))
        return replace(request, headers=(*headers, (name, str(chance.randrange(99)))))
    name, value = headers[at]
    kept = chance.choice(
        ((), ((name, value + "x"),), ((name, value[:-1]),), ((name, value.upper()),))
    )
    return replace(request, headers=(*headers[:at], *kept, *headers[at + 1 :]))


def method(chance: Random, request: Request) -> Request:
    """Change the method."""
    return replace(
        request, method=chance.choice(("GET", "POST", "PUT", "DELETE", "MESSAGE", "TEXT"))
    )


def spelled(chance: Random, request: Request) -> Request:
    """Write text in another normal form, with a byte order mark, or with invisible characters."""
    text, at = request.body.decode("utf-8", "replace"), chance.randrange(len(request.body) + 1)
    form = chance.choice(FORMS)
    return replace(
        request,
        body=chance.choice(
            (
                unicodedata.normalize(form, text).encode(),
                b"\xef\xbb\xbf" + request.body,
                text.encode("utf-16"),
                text.encode("utf-16-le"),
                request.body[:at] + chance.choice(INVISIBLE) + request.body[at:],
                request.body + chance.choice((*INVISIBLE, b"{}", b",", b"]")),
                b"",
                b"{}",
            )
        ),
    )


def addressed(chance: Random, request: Request) -> Request:
    """Write the URL otherwise: the order of its query, percent-encoding, dots, a port."""
    head, _, query = request.url.partition("?")
    origin, path = head[: head.find("/", 8)], head[head.find("/", 8) :]
    pairs = query.split("&")
    mark = "?" if query else ""
    coded = re.sub("[a-z]", lambda found: f"%{ord(found[0]):02X}", path, count=1)
    return replace(
        request,
        url=chance.choice(
            (
                f"{head}{mark}{'&'.join(chance.sample(pairs, len(pairs)))}",
                f"{head}?{query}&",
                f"{head}?{query}&{pairs[0]}",
                f"{head}{mark}{query.replace('+', '%20')}",
                f"{head}{mark}{re.sub('%..', lambda m: m[0].lower(), query)}",
                f"{origin}{unquote(path)}{mark}{query}",
                f"{origin}/.{path}{mark}{query}",
                f"{origin}{path.replace('/', '//', 1)}{mark}{query}",
                f"{origin}{coded}{mark}{query}",
                f"{origin}.{path}{mark}{query}",
            )
        ),
    )


def packed(chance: Random, request: Request) -> Request:
    """Compress the body, say that it is, cut it, or add to its end."""
    body = chance.choice((gzip.compress(request.body, mtime=0), zlib.compress(request.body)))
    body = chance.choice((body, body[:-1], body + b"\0", request.body))
    name = chance.choice((("content-encoding", "gzip"), ("content-encoding", "deflate"), ()))
    return replace(request, body=body, headers=(*request.headers, *((name,) if name else ())))


def _put(body: bytes, *edits: tuple[re.Match[bytes], bytes]) -> bytes:
    for found, text in sorted(edits, key=lambda edit: -edit[0].start()):
        body = body[: found.start()] + text + body[found.end() :]
    return body


CHANGES: tuple[Change, ...] = (
    byte, byte, byte, letter, swapped, swapped, confused, confused, doubled, lookalike, field,
    method, spelled, addressed, packed,
)  # fmt: skip


def changed(chance: Random, request: Request) -> Request:
    """Return the request with one change or two."""
    for _ in range(1 if chance.random() < 0.8 else 2):
        request = chance.choice(CHANGES)(chance, request)
    return request
