"""Reading a configuration, with errors that name the file, the key and the nearest right one."""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import ValidationError

from stepcredit.config import Config
from stepcredit.settings.section import Section


class ConfigError(ValueError):
    """The configuration is wrong; the message names the file, the key and the nearest right value."""


def load_config(*paths: Path, overrides: Mapping[str, Any] | None = None) -> Config:
    """Read YAML files, later ones and then `overrides` replacing keys of earlier ones at any depth; validate.

    Raises:
        ConfigError: a file cannot be read, is no YAML mapping, or the whole does not validate.
    """
    merged: dict[str, Any] = {}
    for path in paths:
        merged = _merge(merged, _read(path))
    return validate_config(_merge(merged, overrides or {}), sources=paths)


def validate_config(raw: Mapping[str, Any], sources: Sequence[Path | str] = ()) -> Config:
    """Validate a mapping that was merged from the files `sources` (searched for the culprit of an error).

    Raises:
        ConfigError: one line for each thing that is wrong, naming the file, the key and the nearest right one.
    """
    try:
        return Config.model_validate(raw)
    except ValidationError as error:
        files = [(str(source), _read(Path(source))) for source in sources]
        lines = [_line(dict(detail), files) for detail in error.errors()]
        raise ConfigError("\n".join(dict.fromkeys(lines))) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror})") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: is not YAML ({' '.join(str(error).split())})") from error
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: must hold a mapping of keys to values")
    return raw


def _origin(location: tuple[int | str, ...], files: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """The last file that sets the key at `location`, or the longest part of it."""
    for length in range(len(location), 0, -1):
        for name, content in reversed(files):
            if _holds(content, location[:length]):
                return name if length == len(location) or len(files) == 1 else f"{name} and --config"
    return files[-1][0] if len(files) == 1 else "the configuration"


def _holds(content: Any, location: Sequence[int | str]) -> bool:
    for part in location:
        if isinstance(content, Mapping) and part in content:
            content = content[part]
        elif isinstance(content, list) and isinstance(part, int) and part < len(content):
            content = content[part]
        else:
            return part == "[key]"
    return True


def _merge(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in overrides.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def _line(detail: dict[str, Any], files: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    location, section = _walk(detail["loc"])
    return f"{_origin(location, files)}: {_explain(detail, location, section)}"


def _explain(detail: dict[str, Any], location: Sequence[int | str], section: type[Section]) -> str:
    """One line for one of pydantic's findings: the key, what is wrong, the nearest right thing."""
    path = [str(part) for part in location if part != "[key]"]
    key = ".".join(path)
    kind = detail["type"]
    if kind == "extra_forbidden":
        known = list(section.model_fields)
        where = ".".join(path[:-1]) or "the top level"
        return f"{key} is not a known key; {where} knows: {', '.join(known)}{_nearest(path[-1], known)}"
    if kind == "missing":
        return f"{key} is missing"
    if kind == "literal_error":
        known = [part.strip("' ") for part in detail["ctx"]["expected"].replace(" or ", ", ").split(",")]
        return f'{key} is "{detail["input"]}"; known values: {", ".join(known)}{_nearest(detail["input"], known)}'
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        known = [tag.strip("' ") for tag in detail["ctx"].get("expected_tags", "").split(",")]
        if kind == "union_tag_not_found":
            return f"{key}.name is missing"
        tag = detail["ctx"]["tag"]
        return f'{key}.name is "{tag}"; known values: {", ".join(known)}{_nearest(tag, known)}'
    if kind == "value_error":
        message = str(detail["ctx"]["error"])
        return f"{key}: {message}" if key else message
    if kind == "string_pattern_mismatch":
        return f'{key} is "{detail["input"]}"; a name is lower-case letters, digits and underscores, a letter first'
    message = detail["msg"][0].lower() + detail["msg"][1:]
    return f"{key} is {detail['input']!r}: {message}"


def _nearest(word: object, known: list[str]) -> str:
    near = difflib.get_close_matches(str(word), known, n=1, cutoff=0.5)
    return f' (did you mean "{near[0]}"?)' if near else ""


def _walk(location: Sequence[int | str]) -> tuple[tuple[int | str, ...], type[Section]]:
    """The keys of a location as a user wrote them, and the section class that holds the last one.

    pydantic puts the name of the chosen class of a union (of the losses) into the location: it is no key.
    """
    annotation: Any = Config
    section: type[Section] = Config
    path: list[int | str] = []
    for part in location:
        annotation = _inner(annotation)
        if isinstance(annotation, dict):
            annotation = annotation.get(part, Section)
            continue
        path.append(part)
        if isinstance(annotation, type) and issubclass(annotation, Section):
            section = annotation
            field = section.model_fields.get(str(part))
            annotation = field.annotation if field else None
        else:  # of a mapping or a list: the type of what it holds
            annotation = next(reversed(typing.get_args(annotation)), None)
    return tuple(path), section


def _inner(annotation: Any) -> Any:
    """An annotation without Annotated and None; a union of sections as a mapping of their names to them."""
    while typing.get_origin(annotation) is Annotated:
        annotation = typing.get_args(annotation)[0]
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return annotation
    members = [member for member in typing.get_args(annotation) if member is not type(None)]
    if len(members) == 1:
        return _inner(members[0])
    return {member.model_fields["name"].default: member for member in members}
