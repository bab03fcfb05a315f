"""Policies by preset name, TOML file or import path, with overrides."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from replay.config import build, load_object, to_spec
from replay.errors import ConfigError, UnknownName
from replay.policy.policy import Policy

PRESET_FOLDER = Path(__file__).parent / "presets"
RECORDED = Policy(name="recorded", summary="What the recorded harness itself sent.", proof="baseline")
"""The recorded lane under a name, so that it can be compared like any other policy."""


def preset_names() -> list[str]:
    """Names of the presets that ship with Rewindow."""
    return sorted(path.stem for path in PRESET_FOLDER.glob("*.toml"))


def policy(name: str) -> Policy:
    """A policy from a preset's name, a TOML file or `package.module:attribute`, each with overrides or without.

    Overrides follow a colon: `decode:trigger.at=0.7,tail_tokens=8000`. Raises ConfigError or UnknownName.
    """
    if name == RECORDED.name:
        return RECORDED
    base, overrides = _split(name)
    if ":" in base:
        return _from_object(base)
    path = _policy_file(base)
    table = _parse(path)
    table.setdefault("name", path.stem)
    for key, value in overrides:
        _override(table, key, value, name)
    if overrides:
        table["name"] = name
    return policy_from(table, str(path) if path.parent != PRESET_FOLDER else f"preset {path.stem}")


def policy_from(table: Mapping[str, Any], where: str = "policy") -> Policy:
    """A policy from plain data. Raises ConfigError with the key."""
    made: Policy = build(Policy, table, where)
    names = [stage.name for stage in made.stages]
    if len(set(names)) != len(names):
        raise ConfigError(where, "stages", "two stages have the same name")
    for stage in made.stages:
        if (stage.cut is None) == (stage.tool_results is None):
            raise ConfigError(where, f"stages.{stage.name}", "a stage needs either a cut or a tool_results rule")
    return made


def spec(made: Policy) -> dict[str, Any]:
    """The policy as plain data; `policy_from(spec(p)) == p`."""
    return to_spec(made)


def spec_hash(made: Policy) -> str:
    """First 16 hex digits of the SHA-256 of the spec; names and prose do not count."""
    table = {k: v for k, v in spec(made).items() if k not in ("name", "summary", "notes", "proof")}
    return hashlib.sha256(orjson.dumps(table, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def _split(name: str) -> tuple[str, list[tuple[str, Any]]]:
    head, colon, tail = name.rpartition(":")
    if not colon or "=" not in tail:
        return name, []
    pairs = []
    for piece in tail.split(","):
        key, equals, value = piece.partition("=")
        if not equals or not key:
            raise ConfigError(name, piece, "expected key=value")
        pairs.append((key.strip(), _literal(value.strip())))
    return head, pairs


def _literal(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _policy_file(name: str) -> Path:
    preset = PRESET_FOLDER / f"{name}.toml"
    if preset.is_file():
        return preset
    path = Path(name)
    if path.suffix == ".toml":
        if not path.is_file():
            raise ConfigError(name, "", "no such policy file")
        return path
    raise UnknownName("policy", name, [*preset_names(), RECORDED.name])


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), "", f"not valid TOML: {error}") from error


def _from_object(target: str) -> Policy:
    found = load_object(target, target)
    found = found() if callable(found) and not isinstance(found, Policy) else found
    if not isinstance(found, Policy):
        raise ConfigError(target, "", "expected a Policy or a function that returns one")
    return found


def _override(table: dict[str, Any], key: str, value: Any, where: str) -> None:
    """Set a key that is named by the end of its dotted path; with several places see `_targets`."""
    places = list(_places(table, key.split(".")))
    if not places:
        if "." not in key:
            table[key] = value
            return
        raise ConfigError(where, key, "no such setting in this policy; `rewindow policies show` lists them")
    first = places[0][0].get(places[0][1])
    for holder, name in places:
        # A setting that stands in several stages with one value (a shared tail) changes in all of them;
        # where the values differ only the first stage's changes.
        if holder.get(name) == first:
            holder[name] = value


def _places(table: Any, path: list[str]) -> Iterator[tuple[dict[str, Any], str]]:
    if isinstance(table, list):
        for entry in table:
            named = isinstance(entry, dict) and path[0] == entry.get("name") and len(path) > 1
            yield from _places(entry, path[1:] if named else path)
        return
    if not isinstance(table, dict):
        return
    if path[0] in table:
        if len(path) == 1:
            yield table, path[0]
        else:
            yield from _places(table[path[0]], path[1:])
        return
    for value in table.values():
        yield from _places(value, path)
