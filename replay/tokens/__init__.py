"""Counting tokens: vocabularies, characters, recorded usage, and a counter fitted to recorded usage."""

from __future__ import annotations

from replay.tokens.bpe import DEFAULT_TOKENIZER, TOKENIZERS, Tokenizer, tokenizer
from replay.tokens.calibrated import Calibration, Figure, Gauge, fit
from replay.tokens.counter import MessageCounter, TokenCounter

__all__ = ["DEFAULT_TOKENIZER", "TOKENIZERS", "Calibration", "Figure", "Gauge", "MessageCounter",
           "TokenCounter", "Tokenizer", "fit", "tokenizer"]
