"""Which endpoint and which models: from the environment, a TOML file's `[model]` section, and the command line."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, cast, get_args
from urllib.parse import urlsplit, urlunsplit

from replay.errors import ConfigError, UnknownName

DEFAULT_URL = "https://api.openai.com/v1"
TooLong = Literal["shorten", "drop-oldest", "fail"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """One endpoint, the models that it serves for each role, and how it is to be treated."""

    base_url: str = DEFAULT_URL
    key_env: str = "OPENAI_API_KEY"
    """Name of the environment variable with the key; a key itself is in no file."""
    api: Literal["chat", "responses"] = "chat"
    stream: bool = False
    """Take answers in pieces: keeps slow ones alive behind proxies."""
    answerer: str | None = None
    summariser: str | None = None
    judge: str | None = None
    concurrency: int = 4
    """Requests at a time."""
    timeout: float = 120.0
    """Seconds for one answer."""
    retries: int = 4
    """Further attempts after 429, 5xx, a broken connection or an answer that cannot be read."""
    backoff: float = 0.5
    """Seconds before the second attempt; doubled each time, at most 30."""
    temperature: float = 0.0
    context: int | None = None
    """The endpoint's input limit in tokens; None: by the price list where it knows the model."""
    too_long: TooLong = "shorten"
    """What a summariser does with an input that does not fit."""
    price_input: float | None = None
    """US dollars a million input tokens; None: by the price list. 0 for a model of your own."""
    price_output: float | None = None
    budget_usd: float | None = None
    offline: bool = False
    """Answer from the cache alone."""
    redact: bool = False
    """Replace keys, addresses and user names before anything is sent."""
    cache: Path = Path()
    """Folder of kept answers."""

    def __post_init__(self) -> None:
        """Raises ConfigError for what cannot be meant."""
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError("model", "base_url", "expected an address such as http://127.0.0.1:11434/v1")
        if parts.username or parts.password:
            raise ConfigError("model", "base_url", "holds a user or password; put the key into the environment instead")
        _choice(self.api, "api", ("chat", "responses"))
        _choice(self.too_long, "too_long", get_args(TooLong))
        for name, least in (("concurrency", 1), ("retries", 0), ("timeout", 0.001), ("backoff", 0), ("temperature", 0)):
            if getattr(self, name) < least:
                raise ConfigError("model", name, f"expected at least {least}, found {getattr(self, name)}")

    @property
    def address(self) -> str:
        """The endpoint without a query, which may hold a secret."""
        parts = urlsplit(self.base_url)
        return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))

    def key(self) -> str:
        """The key from the environment; a stand-in where none is set, since local servers take any."""
        return os.environ.get(self.key_env) or "none"

    def to_json(self) -> dict[str, Any]:
        """What a run folder may keep of it."""
        hidden = ("key_env", "cache", "base_url")
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in hidden}
        return {"endpoint": self.address, **kept}


def models(file: Path | None, given: Mapping[str, Any]) -> Models:
    """The models of a call: the environment, then a file's `[model]`, then what was given (None: not given)."""
    found: dict[str, Any] = {"cache": default_cache()}
    if url := os.environ.get("OPENAI_BASE_URL"):
        found["base_url"] = url
    if file is not None:
        found |= _section(file)
    return Models(**(found | {k: v for k, v in given.items() if v is not None}))


def default_cache() -> Path:
    """The user's cache folder."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "rewindow" / "answers"


def need(models: Models, role: Literal["answerer", "summariser", "judge"], option: str) -> str:
    """The model of a role. Raises ConfigError where none is named."""
    name: str | None = getattr(models, role)
    if not name:
        raise ConfigError(option, "", f"names no model; give {option}, or {role} in a --models file's [model] section")
    return name


def with_role(models: Models, role: Literal["answerer", "judge"], given: str | None, option: str) -> str:
    """The model that an option names, else that of the role. Raises ConfigError where there is neither."""
    return given or need(models, role, option)


def for_summariser(models: Models, name: str) -> Models:
    """With the summariser that `llm:<model>` names; `llm:` alone takes that of the `[model]` section."""
    chosen = name.removeprefix("llm:") or models.summariser
    if not chosen:
        raise ConfigError("--summariser", "", "names no model; expected llm:MODEL")
    return replace(models, summariser=chosen)


def _section(file: Path) -> dict[str, Any]:
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(str(file), "", f"cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(str(file), "", f"not valid TOML: {error}") from error
    section = data.get("model")
    if not isinstance(section, dict):
        raise ConfigError(str(file), "model", "expected a [model] section")
    return {key: _typed(file, key, value) for key, value in section.items()}


def _typed(file: Path, key: str, value: Any) -> Any:
    known = {f.name: str(f.type) for f in fields(Models)}
    if "key" in key and key != "key_env":
        raise ConfigError(str(file), key, "keys belong into the environment; name the variable with key_env")
    if key not in known:
        raise UnknownName("setting", key, known, f"{file}: model")
    kind = known[key]
    if key == "cache":
        return Path(value).expanduser() if isinstance(value, str) else _wrong(file, key, "a folder", value)
    if kind.startswith("bool"):
        return value if isinstance(value, bool) else _wrong(file, key, "true or false", value)
    if kind.startswith("int"):
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        return value if is_whole else _wrong(file, key, "a whole number", value)
    if kind.startswith("float"):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(cast(float, value)) if is_number else _wrong(file, key, "a number", value)
    return value if isinstance(value, str) else _wrong(file, key, "a text", value)


def _wrong(file: Path, key: str, expected: str, value: Any) -> Any:
    raise ConfigError(str(file), f"model.{key}", f"expected {expected}, found {value!r}")


def _choice(value: str, key: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UnknownName(key, value, choices, f"model: {key}")
