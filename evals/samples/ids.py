"""Identifiers and jitter that are the same every time: digests of a name and a running number."""

from __future__ import annotations

import hashlib
import string
import uuid
from collections import Counter
from dataclasses import dataclass, field

_LETTERS = string.ascii_letters + string.digits


@dataclass
class Ids:
    """Makes identifiers for one session; each kind has a running number of its own."""

    seed: str
    _numbers: Counter[str] = field(default_factory=Counter)

    def digest(self, kind: str) -> bytes:
        """The next 32 bytes of a kind."""
        self._numbers[kind] += 1
        return hashlib.sha256(f"{self.seed}/{kind}/{self._numbers[kind]}".encode()).digest()

    def uuid(self, kind: str = "uuid") -> str:
        """The next identifier of the form that RFC 4122 calls version 4."""
        return str(uuid.UUID(bytes=self.digest(kind)[:16], version=4))

    def hex(self, kind: str, length: int) -> str:
        """The next hexadecimal identifier, at most 64 digits."""
        return self.digest(kind).hex()[:length]

    def word(self, prefix: str, length: int) -> str:
        """The next identifier of letters and digits behind a prefix, at most 32 of them."""
        return prefix + "".join(_LETTERS[byte % len(_LETTERS)] for byte in self.digest(prefix)[:length])

    def fraction(self, kind: str) -> float:
        """The next number in [0, 1) of a kind."""
        return int.from_bytes(self.digest(kind)[:4], "big") / 2**32
