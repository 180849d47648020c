"""Whether a result is what its tool declares to return: JSON Schema, as MCP's `outputSchema`."""

import json
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jsonschema.protocols import Validator


def conforms(schema: str, text: str) -> bool | None:
    """Whether a text is JSON of this schema; None where the schema itself cannot be used."""
    validator = _validator(schema)
    if validator is None:
        return None
    from referencing.exceptions import Unresolvable

    try:
        value = json.loads(text)
    except ValueError:
        return False
    try:
        return bool(validator.is_valid(value))
    except Unresolvable:
        return None


@lru_cache(64)
def _validator(schema: str) -> "Validator | None":
    """Loaded where a server declares anything. It looks nothing up: a reference may name a URL."""
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    value = json.loads(schema)
    kind = validator_for(value, default=Draft202012Validator)
    try:
        kind.check_schema(value)
    except SchemaError:
        return None
    found: Validator = kind(value, registry=Registry())
    return found
