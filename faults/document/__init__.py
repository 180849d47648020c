"""Values in a result, with their offsets: JSON, JSON lines, tables, and values in plain text.

A fault changes one value and keeps all other bytes, so a text is never parsed and dumped again: it
is parsed into nodes with offsets, and a change is new text for a range. JSON inside JSON strings is
parsed too, since many tools answer that way.
"""

from faults.document.nodes import DocumentNode, NodeKind
from faults.document.parser import TextDocument, parse_document
from faults.document.text_edits import (
    DocumentEdit,
    apply_document_edits,
    make_json_edit,
    make_name_edit,
    make_removal_edits,
    make_value_edit,
)

__all__ = [
    "DocumentEdit",
    "TextDocument",
    "NodeKind",
    "DocumentNode",
    "apply_document_edits",
    "make_value_edit",
    "parse_document",
    "make_name_edit",
    "make_json_edit",
    "make_removal_edits",
]
