"""Whatever a configuration holds, it is read or refused with a message: never another error."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stepcredit.config import Config
from stepcredit.config_files import ConfigError, load_config, validate_config

DEFAULT: dict[str, Any] = yaml.safe_load((Path(__file__).parents[1] / "config/config.yaml").read_text())


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every key and element."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, inner in items for found in ((*path, key), *places(inner, (*path, key)))]


PLACES = places(DEFAULT)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
keys = st.text(max_size=8) | st.integers()
values = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3))


def refusal(read: Callable[[], Config]) -> str | None:
    """What a reader says of a configuration that it refuses; None for one that it takes."""
    try:
        assert isinstance(read(), Config)
    except ConfigError as error:
        return str(error)
    return None


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(PLACES), values)
def test_any_value_in_any_place(place: tuple[Any, ...], value: Any) -> None:
    changed = copy.deepcopy(DEFAULT)
    inside = changed
    for key in place[:-1]:
        inside = inside[key]
    inside[place[-1]] = value
    assert refusal(lambda: validate_config(changed)) != ""


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([place for place in PLACES if isinstance(place[-1], str)]), st.text(max_size=12), values)
def test_any_further_key_anywhere(place: tuple[Any, ...], key: str, value: Any) -> None:
    changed = copy.deepcopy(DEFAULT)
    inside = changed
    for part in place[:-1]:
        inside = inside[part]
    inside[key] = value
    assert refusal(lambda: validate_config(changed)) != ""


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode) | values.map(lambda v: yaml.safe_dump(v).encode()))
def test_any_bytes_as_a_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "any.yaml"
    path.write_bytes(content)
    assert refusal(lambda: load_config(path)) != ""
