"""What is made wrong in a good solution to get a lesser one: text that occurs once, and another."""

from collections.abc import Mapping

type Defect = tuple[str, str]

DEFECTS: Mapping[tuple[str, str], tuple[Defect, ...]] = {}
