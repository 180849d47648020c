"""Check a result against the tool's output schema: JSON Schema, as in MCP's `outputSchema`."""

import json
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jsonschema.protocols import Validator


def is_schema_instance(schema: str, text: str) -> bool | None:
    """Return whether a text is JSON of this schema; None if the schema itself is unusable."""
    validator = _load_validator(schema)
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
def _load_validator(schema: str) -> "Validator | None":
    """Load the validator of a schema. References are never fetched: they may name a URL."""
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    value = json.loads(schema)
    kind = validator_for(value, default=Draft202012Validator)
    try:
        kind.check_schema(value)
    except SchemaError:
        return None
    validator: Validator = kind(value, registry=Registry())
    return validator
