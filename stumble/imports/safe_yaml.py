"""YAML into plain values, without objects, and with limits on nesting and aliases."""

import yaml

DEEPEST_NESTING = 200
"""Most levels; the C loader recurses on its stack, and tens of thousands end the process."""
MOST_UNFOLDING = 20
"""Largest size of a document with its aliases expanded, as a multiple of its text."""


def parse_safe_yaml(data: bytes) -> object:
    """Parse the one document in a YAML or JSON text. Raises ValueError if it is invalid."""
    try:
        _check_yaml_limits(data)
        return yaml.load(data, yaml.CSafeLoader)
    except yaml.reader.ReaderError as error:
        raise ValueError(f"it is no text: {error.reason} at byte {error.position}") from None
    except yaml.constructor.ConstructorError as error:
        raise ValueError(f"it holds an object that is not made here: {error.problem}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise ValueError(f"line {line}: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise ValueError(str(error).splitlines()[0]) from None


def _check_yaml_limits(data: bytes) -> None:
    """Raise ValueError if the nesting is too deep, or the expanded aliases are too large."""
    depth, total = 0, 0
    open_: list[tuple[str | None, int]] = []
    sizes: dict[str, int] = {}
    for event in yaml.parse(data, yaml.CSafeLoader):
        match event:
            case yaml.CollectionStartEvent():
                open_.append((event.anchor, total))
                depth += 1
                if depth > DEEPEST_NESTING:
                    raise ValueError(f"nested more than {DEEPEST_NESTING} levels deep")
            case yaml.CollectionEndEvent():
                anchor, before = open_.pop()
                depth -= 1
                if anchor is not None:
                    sizes[anchor] = total - before
            case yaml.ScalarEvent():
                total += len(event.value) + 1
                if event.anchor is not None:
                    sizes[event.anchor] = len(event.value) + 1
            case yaml.AliasEvent():
                if event.anchor not in sizes:  # also an alias within its own anchor
                    raise ValueError(f"the alias {event.anchor} stands for itself")
                total += sizes[event.anchor]
        if total > MOST_UNFOLDING * (len(data) + 1024):
            raise ValueError("its aliases unfold to more than it can mean")


def dump_yaml(value: object) -> str:
    """Format a value as YAML, keys in their order."""
    text: str = yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
    return text
