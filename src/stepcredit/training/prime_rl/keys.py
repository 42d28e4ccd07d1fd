"""Which keys prime-rl's configurations have: every dotted key with its type, from the JSON schemas of its classes.

`keys.json` holds them in the form {"sft": {"max_steps": "integer|null", ...}, "rl": {...}}, at the pinned commit. A
list of tables is written `source[]`; a table that takes any key has the type "open".
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from stepcredit.provenance.errors import UserError

Kind = Literal["sft", "rl"]
OPEN = "open"
_OURS = {
    "orchestrator.algo.scorer": OPEN,
    "orchestrator.algo.shaping": OPEN,
    "orchestrator.train.source[].env.agent": OPEN,
    "orchestrator.train.source[].env.taskset.path": "string",
    "orchestrator.train.source[].env.taskset.seed": "integer",
}
"""What `register` and `taskset` add to prime-rl's own keys, and what verifiers adds for a single-agent environment."""


class UnknownKeyError(UserError):
    """prime-rl has no such key, or not of that type; the message names the nearest right one."""


@cache
def stored_keys(kind: Kind) -> Mapping[str, str]:
    """Dotted key to type, as prime-rl has them."""
    keys: dict[str, str] = json.loads(files(__package__).joinpath("keys.json").read_text(encoding="utf-8"))[kind]
    return keys


def known_keys(kind: Kind) -> Mapping[str, str]:
    """The same, with what we register."""
    return {**stored_keys(kind), **(_OURS if kind == "rl" else {})}


def check_keys(kind: Kind, configuration: Mapping[str, Any]) -> None:
    """Check every key of a configuration, and the type of its value.

    Raises:
        UnknownKeyError: for the first that prime-rl would refuse.
    """
    known = known_keys(kind)
    for key, value in _leaves(configuration, known):
        types = known.get(key)
        if types is None:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
            hint = f' (did you mean "{near[0]}"?)' if near else ""
            raise UnknownKeyError(f"prime-rl's {kind} configuration has no key {key}{hint}")
        if not _fits(value, types):
            raise UnknownKeyError(f"prime-rl's {kind} configuration: {key} is {value!r}, not {types}")


def flatten(schema: Mapping[str, Any]) -> dict[str, str]:
    """Dotted key to type, of a JSON schema as pydantic writes it."""
    found: dict[str, set[str]] = {}
    _collect(schema, schema.get("$defs", {}), "", found)
    return {key: "|".join(sorted(types)) for key, types in sorted(found.items())}


def _collect(node: Mapping[str, Any], defs: Mapping[str, Any], path: str, found: dict[str, set[str]]) -> None:
    if "$ref" in node:
        node = defs[node["$ref"].rsplit("/", 1)[-1]]
    for member in (*node.get("anyOf", ()), *node.get("oneOf", ()), *node.get("allOf", ())):
        _collect(member, defs, path, found)
    kind = _kind(node)
    if path and kind:
        found.setdefault(path, set()).add(kind)
    if kind == "array" and "items" in node:
        _collect(node["items"], defs, f"{path}[]", found)
    for name, member in node.get("properties", {}).items():
        _collect(member, defs, f"{path}.{name}" if path else name, found)


def _kind(node: Mapping[str, Any]) -> str | None:
    if node.get("type") == "object":
        return "table" if node.get("additionalProperties") is False else OPEN
    if "type" in node:
        return str(node["type"])
    values = [node["const"]] if "const" in node else node.get("enum", [])
    return "string" if values and all(isinstance(value, str) for value in values) else None


def _leaves(table: Mapping[str, Any], known: Mapping[str, str], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every key with its value, tables before what is in them; what is in an open table only where it is known."""
    free = bool(prefix) and OPEN in known.get(prefix, "").split("|")
    for name, value in table.items():
        key = f"{prefix}.{name}" if prefix else name
        if free and key not in known:
            continue
        yield key, value
        if isinstance(value, Mapping):
            yield from _leaves(value, known, key)
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            for entry in value:
                yield from _leaves(entry, known, f"{key}[]")


def _fits(value: Any, types: str) -> bool:
    allowed = types.split("|")
    if value == "None" and "null" in allowed:  # TOML has no null: prime-rl reads this word as one
        return True
    if isinstance(value, Mapping):
        return bool({"table", OPEN} & set(allowed))
    names: tuple[str, ...]
    match value:
        case bool():
            names = ("boolean",)
        case int():
            names = ("integer", "number")
        case float():
            names = ("number",)
        case str():
            names = ("string",)
        case _:
            names = ("array",)
    return any(name in allowed for name in names)
