"""Read a file's sessions, or take them as they were read and counted before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from evals.kept.keys import sessions_key
from evals.kept.store import Kept
from replay.find import Found, read_found
from replay.tokens import Tokenizer, tokenizer
from replay.tokens.counter import texts
from replay.transcript import Transcript


def read_counted(found: Found, reader: str | None, words: Tokenizer, kept: Kept | None) -> tuple[Transcript, ...]:
    """The sessions of a file, whose texts `words` then knows. Raises ReadError.

    `kept` None: read and counted anew, and not kept.
    """
    name = sessions_key(found, reader, words.name) if kept is not None else None
    if kept is None or name is None:
        return read_found(found, reader)
    if (before := kept.get(name)) is not None:
        transcripts, counts = before
        words.trust(counts)
        return tuple(transcripts)
    transcripts = read_found(found, reader)
    words.learn(_counted(transcripts))
    # A session that is being written may have grown since: what was read is then not what the key is of.
    if sessions_key(found, reader, words.name) == name:
        kept.put(name, (transcripts, {text: words.count(text) for text in _counted(transcripts)}))
    return transcripts


def reading(kept: Kept | None, tokenizer_name: str) -> Callable[[Found, str | None], tuple[Transcript, ...]]:
    """Reads a file's sessions as `read_counted` does, for those who do not count."""
    def read(found: Found, reader: str | None) -> tuple[Transcript, ...]:
        words = tokenizer(tokenizer_name)
        transcripts = read_counted(found, reader, words, kept)
        words.forget()
        return transcripts

    return read_found if kept is None else read


def _counted(transcripts: Sequence[Transcript]) -> Iterator[str]:
    """Every text of the main logs that a counter counts, one after the other."""
    for session in transcripts:
        for message in session.messages:
            for block in message.blocks:
                yield from texts(block)
