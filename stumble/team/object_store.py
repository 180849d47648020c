"""Objects of a bucket by name; those that exist are never written again.

The library is `obstore` (extra `s3`). Credentials and endpoint are those of the AWS variables:
`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from stumble.errors import HarnessError, UsageError

SCHEMES = ("s3", "gs", "az", "file")
MISSING_LIBRARY = "s3:// needs the extra s3: uv pip install 'stumble[s3]'"


class ObjectStore:
    """The objects below an address, by their names."""

    def __init__(self, address: str) -> None:
        """Raises UsageError for an address of another kind, or without the extra."""
        if urlsplit(address).scheme not in SCHEMES:
            raise UsageError(f"{address}: not s3://BUCKET/PREFIX")
        try:
            import obstore
            from obstore import exceptions, store
        except ImportError:
            raise UsageError(MISSING_LIBRARY) from None
        self.address = address.rstrip("/")
        self._obstore: Any = obstore
        self._errors: Any = exceptions
        options: dict[str, Any] = {}
        if os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://"):
            options["client_options"] = {"allow_http": True}
        try:
            self._store: Any = store.from_url(self.address, **options)
        except (exceptions.BaseError, ValueError) as error:
            raise UsageError(f"{address}: {_first_line(error)}") from None

    def list_sizes(self, prefix: str) -> dict[str, int]:
        """Return the length of each object whose name begins with a folder's name."""
        found = dict[str, int]()
        try:
            for batch in self._obstore.list(self._store, prefix=prefix):
                found |= {str(each["path"]): int(each["size"]) for each in batch}
        except self._errors.BaseError as error:
            raise self._to_error(prefix, error) from None
        return found

    def has_object(self, name: str) -> bool:
        """Whether there is an object of this name."""
        try:
            self._obstore.head(self._store, name)
        except (FileNotFoundError, self._errors.NotFoundError):
            return False
        except self._errors.BaseError as error:
            raise self._to_error(name, error) from None
        return True

    def list_tags(self, prefix: str) -> dict[str, str]:
        """Return the entity tag of each object below a folder; it changes with the content."""
        found = dict[str, str]()
        try:
            for batch in self._obstore.list(self._store, prefix=prefix):
                found |= {str(each["path"]): str(each["e_tag"]) for each in batch}
        except self._errors.BaseError as error:
            raise self._to_error(prefix, error) from None
        return found

    def read_tagged(self, name: str) -> tuple[bytes, str] | None:
        """Return an object with its entity tag; None if there is none of this name."""
        try:
            answer = self._obstore.get(self._store, name)
            return bytes(answer.bytes()), str(answer.meta["e_tag"])
        except (FileNotFoundError, self._errors.NotFoundError):
            return None
        except self._errors.BaseError as error:
            raise self._to_error(name, error) from None

    def put_over(self, name: str, data: bytes, tag: str | None) -> bool:
        """Write an object over the one with this tag, or none; False if another one is there."""
        mode = "create" if tag is None else {"e_tag": tag}
        try:
            # Only an upload in one request has a condition.
            self._obstore.put(self._store, name, data, mode=mode, use_multipart=False)
        except (self._errors.AlreadyExistsError, self._errors.PreconditionError):
            return False
        except self._errors.BaseError as error:
            raise self._to_error(name, error) from None
        return True

    def put_new(self, name: str, path: Path) -> bool:
        """Write an object, whole or not at all; False if there is one of this name."""
        try:
            self._obstore.put(self._store, name, path, mode="create")
        except self._errors.AlreadyExistsError:
            return False
        except self._errors.BaseError as error:
            raise self._to_error(name, error) from None
        return True

    def read_pieces(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of an object."""
        try:
            for piece in self._obstore.get(self._store, name).stream():
                yield bytes(piece)
        except self._errors.BaseError as error:
            raise self._to_error(name, error) from None

    def _to_error(self, name: str, error: Exception) -> HarnessError:
        return HarnessError(
            f"{self.address}/{name}: {_first_line(error)}; what was done stays, the same command "
            "goes on from there"
        )


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
