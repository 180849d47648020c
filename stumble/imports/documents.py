"""YAML into plain values: nothing in it is run, and nothing unfolds beyond what a file can mean."""

import yaml

DEEPEST = 200
"""Levels; the C loader follows nesting with its own stack, and ten thousands end the process."""
UNFOLDED = 20
"""How many times as large as its text a document may be once its aliases stand for themselves."""


def load(data: bytes) -> object:
    """The one document in a YAML or JSON text; ValueError where it is none that can be read."""
    try:
        _check(data)
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


def _check(data: bytes) -> None:
    """ValueError where the nesting is too deep, or aliases make much out of little."""
    depth, total = 0, 0
    open_: list[tuple[str | None, int]] = []
    sizes: dict[str, int] = {}
    for event in yaml.parse(data, yaml.CSafeLoader):
        match event:
            case yaml.CollectionStartEvent():
                open_.append((event.anchor, total))
                depth += 1
                if depth > DEEPEST:
                    raise ValueError(f"nested more than {DEEPEST} levels deep")
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
                if event.anchor not in sizes:  # also where it stands within what it names
                    raise ValueError(f"the alias {event.anchor} stands for itself")
                total += sizes[event.anchor]
        if total > UNFOLDED * (len(data) + 1024):
            raise ValueError("its aliases unfold to more than it can mean")


def dump(value: object) -> str:
    """A value as YAML, keys in their order."""
    said: str = yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)
    return said
