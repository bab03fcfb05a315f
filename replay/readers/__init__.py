"""Telling what a file is, and reading it: one reader a format."""

from __future__ import annotations

from replay.readers.registry import READERS, detect, read, read_bytes

__all__ = ["READERS", "detect", "read", "read_bytes"]
