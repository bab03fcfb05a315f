"""Policies by preset name, TOML file or import path, with overrides."""

from __future__ import annotations

import difflib
import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from replay.config import build, load_object, to_spec
from replay.errors import ConfigError, UnknownName
from replay.own.function import PythonFunction, takes_messages
from replay.own.kinds import own_code
from replay.policy.policy import Policy

_OVERRIDES = re.compile(r":(?=\s*[\w.-]+\s*=)")
_NEXT_OVERRIDE = re.compile(r",(?=\s*[\w.-]+\s*=)")
PRESET_FOLDER = Path(__file__).parent / "presets"
RECORDED = Policy(name="recorded", summary="What the recorded harness itself sent.", proof="baseline")
"""The recorded lane under a name, so that it can be compared like any other policy."""


def preset_names() -> list[str]:
    """Names of the presets that ship with Rewindow."""
    return sorted(path.stem for path in PRESET_FOLDER.glob("*.toml"))


def policy(name: str) -> Policy:
    """A policy from a preset's name, a TOML file or `package.module:attribute`, each with overrides or without.

    The attribute may also be a function of messages and state; `replay.own.kinds.own_code` knows other own code.
    Overrides follow a colon: `decode:trigger.at=0.7,tail_tokens=8000`. Raises ConfigError or UnknownName.
    """
    if name == RECORDED.name:
        return RECORDED
    if (own := own_code(name)) is not None:
        return Policy(name=name, own=own)
    base, overrides = _split(name)
    if ":" in base and not overrides:
        return _from_object(base)
    table, where = (to_spec(_from_object(base)), base) if ":" in base else _from_file(_policy_file(base))
    for key, value in overrides:
        _override(table, key, value, name)
    if overrides:
        table["name"] = name
    return policy_from(table, where)


def policy_from(table: Mapping[str, Any], where: str = "policy") -> Policy:
    """A policy from plain data. Raises ConfigError with the key."""
    made: Policy = build(Policy, table, where)
    names = [stage.name for stage in made.stages]
    if len(set(names)) != len(names):
        raise ConfigError(where, "stages", "two stages have the same name")
    for stage in made.stages:
        if (stage.cut is None) == (stage.tool_results is None):
            raise ConfigError(where, f"stages.{stage.name}", "a stage needs either a cut or a tool_results rule")
        if stage.keeps_cache and stage.tool_results is None:
            raise ConfigError(where, f"stages.{stage.name}.keeps_cache",
                              "only a stage with a tool_results rule can edit the provider's cache")
    if made.own is not None and (made.stages or made.ingest or made.layers or made.reinjection):
        raise ConfigError(where, "own", "own code decides alone: leave out stages, ingest, layers and reinjection")
    cutting = [stage.name for stage in made.stages if stage.cut is not None]
    if made.reactive.stage and made.reactive.stage not in cutting:
        raise ConfigError(where, "reactive.stage", f"no stage with a cut is called {made.reactive.stage!r}; "
                                                   f"those are {', '.join(cutting) or 'none'}")
    return made


def spec(made: Policy) -> dict[str, Any]:
    """The policy as plain data; `policy_from(spec(p)) == p`."""
    return to_spec(made)


def spec_hash(made: Policy) -> str:
    """First 16 hex digits of the SHA-256 of the spec; names and prose do not count."""
    table = {k: v for k, v in spec(made).items() if k not in ("name", "summary", "notes", "proof", "explained")}
    return hashlib.sha256(orjson.dumps(table, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def _split(name: str) -> tuple[str, list[tuple[str, Any]]]:
    """The policy's own name and its overrides, which begin at the first colon that a key with `=` follows."""
    found = _OVERRIDES.search(name)
    if found is None:
        head, _, tail = name.rpartition(":")
        if head in preset_names():
            raise ConfigError(name, tail, "expected key=value")
        return name, []
    pieces = (piece.partition("=") for piece in _NEXT_OVERRIDE.split(name[found.end():]))
    return name[:found.start()], [(key.strip(), _literal(value.strip())) for key, _, value in pieces]


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


def _from_file(path: Path) -> tuple[dict[str, Any], str]:
    table = _parse(path)
    table.setdefault("name", path.stem)
    for number, layer in enumerate(_layers(table)):
        if "file" in layer:
            layer["text"] = _text(path.parent / str(layer.pop("file")), f"{path}: layers[{number}].file")
    return table, str(path) if path.parent != PRESET_FOLDER else f"preset {path.stem}"


def _layers(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = table.get("layers")
    return [layer for layer in found if isinstance(layer, dict)] if isinstance(found, list) else []


def _text(path: Path, where: str) -> str:
    """The text of a file that a policy names. Raises ConfigError."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigError(where, "", f"cannot be read: {error.strerror or error}") from error


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), "", f"not valid TOML: {error}") from error


def _from_object(target: str) -> Policy:
    found = load_object(target, target)
    if takes_messages(found):
        return Policy(name=target, own=PythonFunction(target=target))
    found = found() if callable(found) and not isinstance(found, Policy) else found
    if not isinstance(found, Policy):
        raise ConfigError(target, "", "expected a Policy, a function that returns one, or one of messages and state")
    return found


def _override(table: dict[str, Any], key: str, value: Any, where: str) -> None:
    """Set a key that is named by the end of its dotted path; one that stands at its default is set in its table."""
    places = list(_places(table, key.split("."))) or _unset_place(table, key)
    if not places:
        raise ConfigError(where, key, _no_such_setting(table, key))
    first = places[0][0].get(places[0][1])
    for holder, name in places:
        # A setting that stands in several stages with one value (a shared tail) changes in all of them;
        # where the values differ only the first stage's changes.
        if holder.get(name) == first:
            holder[name] = value


def _no_such_setting(table: dict[str, Any], key: str) -> str:
    near = difflib.get_close_matches(key.rpartition(".")[2], set(_keys(table)), n=2)
    hint = f"did you mean {' or '.join(near)}?" if near else "`rewindow policies show NAME --json` lists them"
    return f"no such setting in this policy; {hint}"


def _keys(table: Any) -> Iterator[str]:
    if isinstance(table, dict):
        yield from table
    if isinstance(table, (dict, list)):
        for value in table.values() if isinstance(table, dict) else table:
            yield from _keys(value)


def _unset_place(table: dict[str, Any], key: str) -> list[tuple[dict[str, Any], str]]:
    """The first table of the key's path that could hold it; building the policy refuses what it does not know."""
    *path, name = key.split(".")
    if not path:
        return [(table, name)] if name in Policy.__dataclass_fields__ else []
    holders = (holder[last] for holder, last in _places(table, path))
    return next(([(found, name)] for found in holders if isinstance(found, dict)), [])


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
