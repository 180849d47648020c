"""Keep pyarrow from importing pandas.

`pyarrow.array` asks once in a process whether pandas is there, and imports it if it is installed
(`pandas-shim.pxi`: `_check_import`). Nothing here hands a pandas object to pyarrow, and the import
takes 1.5 s of processor time: more than the rest of `stumble record`. `Table.to_pandas` asks again
and still works.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import pyarrow as pa


class _PandasRefusal(MetaPathFinder):
    """Makes `import pandas` fail."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError(name=name)
        return None


def skip_pandas_import() -> None:
    """Have pyarrow ask for pandas now, without an answer. Nothing if pandas is loaded already."""
    if "pandas" in sys.modules:
        return
    refusal = _PandasRefusal()
    sys.meta_path.insert(0, refusal)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(refusal)
