"""Replacing secrets by placeholders of the same length: keys, tokens, e-mail and IP addresses, user names.

The same secret always gets the same placeholder, so that what a session compares stays comparable; lengths stay, so
that sizes do. What no pattern knows is not found: look over a result before publishing it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

_KEYS = re.compile(
    r"\b(?:sk-ant-[\w-]{16,}|sk-[\w-]{20,}|(?:AKIA|ASIA)[A-Z0-9]{16}|gh[opusr]_\w{30,}|github_pat_\w{30,}|glpat-[\w-]{16,}"
    r"|xox[abeoprs]-[\w-]{10,}|AIza[\w-]{35}|ya29\.[\w-]{20,}|npm_\w{30,}|pypi-[\w-]{40,}|hf_[A-Za-z]{30,}"
    r"|[rs]k_(?:live|test)_\w{16,}|SG\.[\w-]{16,}\.[\w-]{16,}|dop_v1_\w{40,}|lin_api_\w{30,}|\d{8,10}:AA[\w-]{33})")
_JWT = re.compile(r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}")
_PRIVATE_KEY = re.compile(r"(?<=PRIVATE KEY-----)[^-]+(?=-----END)")
_BEARER = re.compile(r"(?i)\b(?:bearer|basic|authorization:\s*token)\s+([\w.~+/=-]{16,})")
_ASSIGNED = re.compile(
    r"(?:[kK][eE][yY]|[sS][eE][cC][rR][eE][tT]|[pP][aA][sS][sS](?:[wW](?:[oO][rR])?[dD]|[pP][hH][rR][aA][sS][eE])|"
    r"[tT][oO][kK][eE][nN])(?:_?[a-zA-Z]{1,12})?\\*[\"']?\s{0,3}[:=]\s{0,3}\\*[\"']?([\w+/=.~-]{12,})")
"""Spelled out in both cases: a pattern that ignores case is tried at every character."""
_IN_URL = re.compile(r"(?<=://)([^/\s:@\"'<>]{1,64}):([^/\s@\"'<>]{1,128})(?=@)")
_EMAIL = re.compile(r"[\w.+-](?<![\w.+/-].)[\w.+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b")
_IPV4 = re.compile(r"\d(?<![\w.-].)\d{0,2}(?:\.\d{1,3}){3}(?![\w-]|\.\d)")
_IPV6 = re.compile(r"[0-9A-Fa-f:](?<![\w:.].)[0-9A-Fa-f]{0,3}(?::[0-9A-Fa-f]{0,4}){3,7}(?![\w:])")
_HOME = re.compile(r"(?:/home/|/Users/|:\\+Users\\+)([\w.-]+)")
_FOLDED_HOME = re.compile(r"(?:-Users-|-home-)([A-Za-z0-9]+)(?=-)")
_PLACEHOLDER = re.compile(r"X+[A-Z]{1,3}|us?e?r?x*[a-z]{0,2}|x*[a-z]{0,3}@[x.-]*")
_NO_ONE = frozenset({
    "root", "user", "users", "ubuntu", "runner", "node", "vscode", "dev", "app", "admin", "home", "shared", "public",
    "guest", "default", "git", "codespace", "jovyan", "postgres", "username", "name", "you", "me", "test", "agent"})
"""Names of home folders that belong to no person."""
_RESERVED = ("@example.com", "@example.org", "@example.net")
"""Ends of addresses that are nobody's."""
_LEAST_NAME = 4
"""Characters of a user name from which on it is replaced outside of paths too."""
KINDS: Mapping[str, str] = {
    "key": "keys and tokens", "password": "passwords and assigned secrets", "email": "e-mail addresses",
    "user": "user names of home folders", "ip": "IP addresses"}


@dataclass
class Redactor:
    """Replaces secrets in texts; remembers which placeholder stands for which."""

    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    """Occurrences replaced, by kind."""
    _stands_for: dict[str, str] = field(default_factory=dict)
    _kinds: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    _names: set[str] = field(default_factory=set)
    _name_pattern: re.Pattern[str] | None = None

    def learn(self, value: Any) -> None:
        """Take note of the user names in the home folders that plain data name. Do so before replacing."""
        for text in _strings(value):
            if "home" in text or "Users" in text:
                found = {*_HOME.findall(text), *_FOLDED_HOME.findall(text)}
                self._names |= {name for name in found if _is_a_name(name)}
        self._name_pattern = None

    def value(self, value: Any) -> Any:
        """Plain data with every secret in its texts and keys replaced."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(key)): self.value(inner) for key, inner in value.items()}
        return [self.value(inner) for inner in value] if isinstance(value, (list, tuple)) else value

    def text(self, text: str) -> str:
        """A text with every secret replaced; as long as it was."""
        if len(text) < 3:
            return text
        for kind, pattern, group, needles in _RULES:
            if any(needle in text for needle in needles):
                text = pattern.sub(self._replacement(kind, group), text)
        if self._names and (names := self._pattern()) is not None:
            text = names.sub(self._replacement("user", 0), text)
        return text

    def report(self) -> list[str]:
        """What was replaced, by kind, in words."""
        return [f"{self.counts[kind]} {what} ({self._kinds[kind]} different)"
                for kind, what in KINDS.items() if self.counts[kind]]

    def _pattern(self) -> re.Pattern[str] | None:
        if self._name_pattern is None:
            anywhere = sorted((n for n in self._names if len(n) >= _LEAST_NAME), key=len, reverse=True)
            in_paths = sorted(self._names, key=len, reverse=True)
            before = r"(?:(?<=/home/)|(?<=/Users/)|(?<=Users\\)|(?<=Users\\\\)|(?<=-Users-)|(?<=-home-))"
            choices = [rf"(?<![A-Za-z0-9]){re.escape(n)}(?![A-Za-z0-9])" for n in anywhere]
            choices += [rf"{before}{re.escape(n)}(?![A-Za-z0-9])" for n in in_paths]
            self._name_pattern = re.compile("|".join(choices))
        return self._name_pattern

    def _replacement(self, kind: str, group: int) -> Callable[[re.Match[str]], str]:
        def replaced(found: re.Match[str]) -> str:
            secret = found[group]
            if not _is_secret(kind, secret):
                return found[0]
            self.counts[kind] += 1
            start = found.start(group) - found.start()
            return found[0][:start] + self._placeholder(kind, secret) + found[0][start + len(secret):]
        return replaced

    def _placeholder(self, kind: str, secret: str) -> str:
        known = self._stands_for.get(secret)
        if known is None:
            known = self._stands_for[secret] = _placeholder(kind, secret, self._kinds[kind])
            self._kinds[kind] += 1
        return known


_RULES: tuple[tuple[str, re.Pattern[str], int, tuple[str, ...]], ...] = (
    ("key", _PRIVATE_KEY, 0, ("PRIVATE KEY",)), ("key", _JWT, 0, ("eyJ",)),
    ("key", _KEYS, 0, ("sk-", "AKIA", "ASIA", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_", "glpat-", "xox",
                       "AIza", "ya29.", "npm_", "pypi-", "hf_", "k_live_", "k_test_", "SG.", "dop_v1_", "lin_api_",
                       ":AA")),
    ("key", _BEARER, 1, ("earer ", "asic ", "oken ", "EARER ")), ("password", _IN_URL, 2, ("://",)),
    ("password", _ASSIGNED, 1, ("=", ":")), ("email", _EMAIL, 0, ("@",)), ("ip", _IPV4, 0, (".",)),
    ("ip", _IPV6, 0, (":",)))
"""Kind, pattern, the group that is the secret, and texts without one of which the pattern cannot match."""


def _strings(value: Any) -> Iterator[str]:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            stack += [*item.keys(), *item.values()]
        elif isinstance(item, (list, tuple)):
            stack += item


def _is_a_name(name: str) -> bool:
    return name.lower() not in _NO_ONE and not name.startswith(".") and not _PLACEHOLDER.fullmatch(name)


def _is_secret(kind: str, text: str) -> bool:
    """Whether a match is what it looks like, and not a placeholder of an earlier run."""
    if _PLACEHOLDER.fullmatch(text):
        return False
    if kind == "password":
        return any(c.isdigit() for c in text) and any(c.isalpha() for c in text)
    if kind == "key":
        return any(c.isdigit() for c in text) or text.startswith("hf_")
    if kind == "email":
        is_known = text.startswith(("git@", "noreply@")) or text.endswith(_RESERVED)
        return not is_known and not _PLACEHOLDER.fullmatch(text.partition("@")[0])
    return _is_address(text) if kind == "ip" else True


def _is_address(text: str) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified or address.is_multicast or text.startswith("255."))


def _placeholder(kind: str, secret: str, number: int) -> str:
    """A placeholder as long as the secret; its last letters tell it from the others of its kind."""
    if kind == "user":
        return _marked(f"user{'x' * len(secret)}"[:len(secret)], _letters(number))
    if kind == "email":
        local, _, domain = secret.partition("@")
        return f"{_marked('x' * len(local), _letters(number))}@{_masked(domain, 'x')}"
    if kind == "ip":
        return _marked(_masked(secret, "x"), _letters(number), ".:")
    if any(character.isspace() for character in secret):
        return _masked(secret, "X")
    return _marked("X" * len(secret), _letters(number).upper())


def _letters(number: int) -> str:
    text = chr(ord("a") + number % 26)
    return text if number < 26 else _letters(number // 26 - 1) + text


def _masked(text: str, letter: str) -> str:
    return "".join(letter if character.isalnum() else character for character in text)


def _marked(text: str, mark: str, between: Iterable[str] = ()) -> str:
    """The text with its last letters replaced by the mark's, right to left; separators stay."""
    letters, rest = list(text), list(mark)
    for at in range(len(letters) - 1, -1, -1):
        if not rest:
            break
        if letters[at] not in between:
            letters[at] = rest.pop()
    return "".join(letters)
