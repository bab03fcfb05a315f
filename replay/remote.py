"""Sessions that lie elsewhere (`s3://`, `gs://`, … by fsspec): copied into the user's cache, then read as files."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

from replay.errors import ConfigError, ReadError

_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_NOTE = ".brought.json"
"""Which version of each file is here."""


def is_remote(place: str) -> bool:
    """Whether a path names a file system that is not this machine's."""
    return _URL.match(place) is not None


def cache_folder(*parts: str) -> Path:
    """A folder below the user's cache: `$XDG_CACHE_HOME/rewindow`, else `~/.cache/rewindow`."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache").joinpath("rewindow", *parts)


def file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL and the path in it. Raises ConfigError where a package for it is missing."""
    if find_spec("fsspec") is None:
        raise ConfigError(url, "", "needs the package fsspec: pip install 'rewindow[remote]'")
    from fsspec.core import url_to_fs

    try:
        system, path = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise ConfigError(url, "", f"cannot be reached: {error}") from error
    return system, str(path)


def brought(url: str) -> str:
    """The path of a local copy of what a URL names: a file, a folder, or a pattern. Only what has changed is fetched.

    The copy keeps the names below the URL's own. Raises ReadError where there is nothing or it cannot be read.
    """
    system, path = file_system(url)
    try:
        root, names = _found(system, path)
        folder = cache_folder("remote", hashlib.sha256(f"{url.partition('://')[0]}://{root}".encode()).hexdigest()[:16])
        if not names:
            raise ReadError(url, "no such file or folder, and no file matches it as a pattern")
        kept = folder / root.rstrip("/").rpartition("/")[2]
        _bring(system, root, names, kept)
    except (OSError, PermissionError) as error:
        raise ReadError(url, f"cannot be read: {error}") from error
    return str(kept / path[len(root):].lstrip("/"))


def _found(system: Any, path: str) -> tuple[str, list[str]]:
    """The folder that is copied, and the files in it that are wanted: a session's companions stand beside it."""
    if system.isdir(path):
        return path.rstrip("/"), list(system.find(path))
    matched = list(system.glob(path)) if any(c in path for c in "*?[") else [path] if system.exists(path) else []
    fixed = re.split(r"[*?\[]", path)[0]
    root = fixed.rpartition("/")[0]
    return root, [name for match in matched for name in _kin(system, match)]


def _kin(system: Any, path: str) -> Iterator[str]:
    """What is in a folder; or a file and what lies in folders that bear its name, as a session's sub-agents do."""
    if system.isdir(path):
        yield from system.find(path)
        return
    yield path
    stem = path.rpartition("/")[2].partition(".")[0]
    folder = f"{path.rpartition('/')[0]}/{stem}"
    if system.isdir(folder):
        yield from system.find(folder)


def _bring(system: Any, root: str, names: list[str], kept: Path) -> None:
    kept.mkdir(parents=True, exist_ok=True, mode=0o700)
    note = kept / _NOTE
    versions: dict[str, str] = orjson.loads(note.read_bytes()) if note.is_file() else {}
    for name in names:
        inner = name[len(root):].lstrip("/")
        target = kept / inner
        if not target.resolve().is_relative_to(kept.resolve()):
            continue
        version = str(system.ukey(name))
        if versions.get(inner) != version or not target.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            part = target.with_name(f".{target.name}.part")
            system.get_file(name, str(part))
            part.replace(target)
            versions[inner] = version
    for gone in set(versions) - {name[len(root):].lstrip("/") for name in names if system.isdir(root)}:
        _forget(system, f"{root}/{gone}", kept / gone)
    note.write_bytes(orjson.dumps(versions))


def _forget(system: Any, name: str, target: Path) -> None:
    """Remove the copy of a file that is gone."""
    if not system.exists(name):
        target.unlink(missing_ok=True)
