"""What stands in a result, and where: JSON, lines of JSON, tables, and words in plain text.

A fault changes one value and keeps the rest byte for byte, so a text is never parsed and dumped
again: it is read into nodes that know their place, and a change is new text for a place. JSON
inside JSON strings is opened, since many tools answer that way.
"""

from faults.document.changes import Change, changed, instead, renamed, retyped, without
from faults.document.nodes import Kind, Node
from faults.document.reading import Document, read

__all__ = [
    "Change",
    "Document",
    "Kind",
    "Node",
    "changed",
    "instead",
    "read",
    "renamed",
    "retyped",
    "without",
]
