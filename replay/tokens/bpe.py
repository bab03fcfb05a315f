"""Token counts by the vocabularies that splintr ships inside its wheel, so nothing is downloaded."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from replay.errors import UnknownName

DEFAULT_TOKENIZER = "o200k_base"
TOKENIZERS = ("o200k_base", "cl100k_base", "llama3", "deepseek_v3", "mistral_v3", "phi4", "olmo2", "codellama",
              "llama2", "mistral_v1", "mistral_v2", "modernbert", "qwen3", "kimi_k2", "glm4", "gemma3")
"""Names that `--tokenizer` offers; those that the installed splintr lacks are refused when asked for."""

_SPECIAL_OPENERS = ("<|", "[INST", "<s>", "</s>", "[TOOL")
_BATCH_CHARS = 4_000_000


class Tokenizer:
    """Counts tokens of text; each distinct text is counted once and remembered."""

    def __init__(self, name: str) -> None:
        """Load a vocabulary by name. Raises UnknownName where it is not bundled."""
        self.name = name
        self._encoder = _load(name)
        self._offset = len(self._encoder.encode_ordinary(""))
        self._known: dict[str, int] = {"": 0}

    def count(self, text: str) -> int:
        """Tokens of one text; special tokens spelled in it count as ordinary text."""
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._count_one(text)
        return known

    def learn(self, texts: Iterable[str]) -> None:
        """Count many texts at once (in parallel inside the library), so that `count` only looks them up."""
        fresh = [t for t in dict.fromkeys(texts) if t not in self._known]
        batch: list[str] = []
        size = 0
        for text in fresh:
            if _unusual(text):
                self._known[text] = self._count_one(text)
                continue
            batch.append(text)
            size += len(text)
            if size > _BATCH_CHARS:
                self._count_batch(batch)
                batch, size = [], 0
        self._count_batch(batch)

    def trust(self, counts: Mapping[str, int]) -> None:
        """Take over counts of texts that a tokenizer of this name made earlier."""
        self._known.update(counts)

    def forget(self) -> None:
        """Drop what was remembered, e.g. between sessions, to keep memory bounded."""
        self._known = {"": 0}

    def _count_batch(self, texts: Sequence[str]) -> None:
        if not texts:
            return
        try:
            _, raw = self._encoder.encode_batch_flat(list(texts))
        except BaseException as error:  # noqa: BLE001 - a native panic is no Exception; all else is re-raised
            _reraise_unless_panic(error)
            for text in texts:
                self._known[text] = self._count_one(text)
            return
        ends = struct.unpack(f"<{len(texts) + 1}Q", raw)
        for i, text in enumerate(texts):
            self._known[text] = ends[i + 1] - ends[i] - self._offset

    def _count_one(self, text: str) -> int:
        clean = text.encode("utf-8", "replace").decode("utf-8")
        try:
            return len(self._encoder.encode_ordinary(clean)) - self._offset
        except BaseException as error:  # noqa: BLE001 - a native panic is no Exception; all else is re-raised
            _reraise_unless_panic(error)
            return _in_pieces(self._encoder, clean, self._offset)


def _unusual(text: str) -> bool:
    """Texts that the batch call would not count as ordinary text, or would refuse."""
    if any(opener in text for opener in _SPECIAL_OPENERS):
        return True
    return not text.isascii() and _has_surrogate(text)


def _has_surrogate(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _reraise_unless_panic(error: BaseException) -> None:
    """A native panic is a BaseException that no `except Exception` sees; anything else is not ours."""
    if type(error).__name__ != "PanicException":
        raise error


def _in_pieces(encoder: Any, text: str, offset: int) -> int:
    """Count a text that made the library panic in pieces of 4,096 characters, 4 characters a token at worst."""
    total = 0
    for start in range(0, len(text), 4096):
        piece = text[start:start + 4096]
        try:
            total += len(encoder.encode_ordinary(piece)) - offset
        except BaseException as error:  # noqa: BLE001 - a native panic is no Exception; all else is re-raised
            _reraise_unless_panic(error)
            total += -(-len(piece) // 4)
    return total


def _load(name: str) -> Any:
    import splintr

    try:
        return splintr.Tokenizer.from_pretrained(name)
    except ValueError as error:
        raise UnknownName("tokenizer", name, TOKENIZERS) from error


def tokenizer(name: str = DEFAULT_TOKENIZER) -> Tokenizer:
    """The shared tokenizer of a name. Raises UnknownName."""
    return _shared(name)


@cache
def _shared(name: str) -> Tokenizer:
    return Tokenizer(name)
