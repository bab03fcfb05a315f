"""Answers on disk, one file each, named by the fingerprint of the full request: asked once, paid once."""

from __future__ import annotations

import os
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from evals.model.asks import Ask, Reply, Spent


@dataclass(frozen=True, slots=True)
class AnswerCache:
    """A folder of answers. It quotes sessions, so only its owner may read it."""

    folder: Path

    def get(self, key: str) -> Reply | None:
        """The kept reply of a request; None where there is none, or its file is damaged."""
        try:
            found = orjson.loads(self._path(key).read_bytes())
            return _reply(found["reply"])
        except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
            return None

    def put(self, key: str, ask: Ask, reply: Reply) -> None:
        """Keep a reply; the file appears whole or not at all."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        plain = asdict(reply)
        del plain["cached"]
        handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=".answer-")
        with os.fdopen(handle, "wb") as file:
            file.write(orjson.dumps({"request": ask.body(), "reply": plain}, option=orjson.OPT_SORT_KEYS))
        Path(scratch).replace(path)

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"


def _reply(plain: dict[str, Any]) -> Reply:
    made = Reply(**(plain | {"spent": Spent(**plain["spent"]), "cached": True}))
    return replace(made, logprobs=tuple((offset, value) for offset, value in made.logprobs),
                   calls=tuple((call, name, arguments) for call, name, arguments in made.calls))
