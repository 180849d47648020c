"""A bound for files whose spans must be read together, as a trace may be anywhere in them."""

from pathlib import Path

from traces.importers.shared.file_reader import MAX_WHOLE_FILE, open_unpacked_file

_BLOCK = 1 << 20


def check_span_file_size(path: Path, limit: int = MAX_WHOLE_FILE) -> None:
    """Raise ValueError if a file has more decompressed bytes than can be held in memory."""
    size = 0
    with open_unpacked_file(path) as file:
        while data := file.read1(_BLOCK):
            size += len(data)
            if size > limit:
                raise ValueError(
                    f"it has more than {limit >> 20} MB of spans, which must be read together: "
                    "split it by trace"
                )
