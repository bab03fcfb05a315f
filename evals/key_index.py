"""Finding the phrases that a text may hold by the words in it, while phrases come and go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evals.phrases import WORD, Phrase, Prepared


class KeyIndex:
    """Phrases by their keys. Equal phrases are searched once; only those that were added are searched at all."""

    def __init__(self, phrases: Sequence[Phrase], added: Iterable[int] = ()) -> None:
        """Know all phrases, and search for those whose numbers are added."""
        self._phrases = phrases
        self._numbers: dict[Phrase, list[int]] = {}
        self._by_key: dict[str, dict[Phrase, Phrase]] = {}
        self._keyless: dict[Phrase, Phrase] = {}
        self._vocabulary = {word for phrase in set(phrases) for word in phrase.indexed}
        self.change(added, ())

    def change(self, added: Iterable[int], removed: Iterable[int]) -> None:
        """Search for more phrases, and for others no longer."""
        for number in added:
            phrase = self._phrases[number]
            if phrase not in self._numbers:
                self._enter(phrase)
            self._numbers[phrase].append(number)
        for number in removed:
            phrase = self._phrases[number]
            numbers = self._numbers[phrase]
            numbers.remove(number)
            if not numbers:
                self._leave(phrase)

    def _enter(self, phrase: Phrase) -> None:
        self._numbers[phrase] = []
        for key in phrase.keys:
            self._by_key.setdefault(key, {})[phrase] = phrase
        if not phrase.keys:
            self._keyless[phrase] = phrase

    def _leave(self, phrase: Phrase) -> None:
        del self._numbers[phrase]
        for key in phrase.keys:
            del self._by_key[key][phrase]
        self._keyless.pop(phrase, None)

    def words(self, text: str) -> set[str]:
        """The words of a text that some phrase asks for."""
        return set(filter(self._vocabulary.__contains__, WORD.findall(text.lower())))

    def graded(self, text: str, words: set[str], summary: bool) -> list[tuple[int, int]]:
        """Numbers and grades of the added phrases that a text with these words holds, in order."""
        if not words and not self._keyless:
            return []
        found = {id(p): p for word in words for p in self._by_key.get(word, {}).values()}
        likely = [p for p in found.values() if p.fits(words, summary)]
        if not likely and not self._keyless:
            return []
        prepared = Prepared(text)
        graded = ((p, p.grade(prepared, summary)) for p in (*likely, *self._keyless.values()))
        return sorted((n, grade) for p, grade in graded if grade for n in self._numbers[p])
