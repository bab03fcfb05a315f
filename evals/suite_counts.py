"""What a test run printed: passed and failed tests as each runner counts them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_SCANNED_CHARS = 60_000
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of one command's test runs."""

    runner: str
    passed: int
    failed: int
    """Failures and errors."""

    @property
    def total(self) -> int:
        """Tests that ran."""
        return self.passed + self.failed


def counts(text: str) -> Counts | None:
    """The counts in a command's output, summed over its runs; None where no runner's summary is found."""
    # A summary stands at the end; what lies far before it is the output of tests.
    text = _COLOUR.sub("", text[-_SCANNED_CHARS:])
    for name, parse in _PARSERS:
        found = [c for c in parse(text) if c[0] + c[1]]
        if found:
            return Counts(name, sum(p for p, _ in found), sum(f for _, f in found))
    return None


Found = Iterator[tuple[int, int]]
_WORDS = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed|warnings?|deselected|rerun|todo)\b")


def _named(line: str) -> tuple[int, int]:
    numbers = {word: int(n) for n, word in _WORDS.findall(line)}
    return numbers.get("passed", 0), numbers.get("failed", 0) + numbers.get("error", 0) + numbers.get("errors", 0)


def _pytest(text: str) -> Found:
    for line in re.findall(r"^=*\s*((?:\d+ [a-z]+(?:, )?)+ in [\d.:]+ ?s\b)", text, re.MULTILINE):
        yield _named(line)


def _go(text: str) -> Found:
    """Packages, as `go test` counts them; test by test where `-v` lists them."""
    done = re.findall(r"^DONE (\d+) tests?(?:, (\d+) skipped)?(?:, (\d+) failures?)?(?:, (\d+) errors?)? in", text,
                      re.MULTILINE)
    if done:
        yield from ((int(n) - int(s or 0) - int(f or 0), int(f or 0) + int(e or 0)) for n, s, f, e in done)
        return
    good = len(re.findall(r"^ok\s+\S+\s+(?:[\d.]+s|\(cached\))(?!.*\[no tests to run\])", text, re.MULTILINE))
    bad = len(re.findall(r"^FAIL\s+\S+\s+(?:[\d.]+s|\[(?:build|setup) failed\])", text, re.MULTILINE))
    # Where the head of the output was cut off, the last line still says that something failed.
    bad = max(bad, int(bool(re.search(r"^FAIL\s*$", text, re.MULTILINE)) and bool(good)))
    tests = [len(re.findall(rf"^--- {word}: Test", text, re.MULTILINE)) for word in ("PASS", "FAIL")]
    yield (tests[0], tests[1]) if tests[0] and not good + bad else (good, max(bad, min(1, tests[1])))


def _each(pattern: str, passed: str = "passed", failed: str = "failed", total: str = "total") -> Callable[[str], Found]:
    """A parser for a summary with named numbers; passed may be left out where the total is there."""
    compiled = re.compile(pattern, re.MULTILINE)

    def parse(text: str) -> Found:
        for found in compiled.finditer(text):
            groups = {k: int(v) for k, v in found.groupdict().items() if v}
            bad = groups.get(failed, 0) + groups.get("errors", 0)
            yield groups.get(passed, max(0, groups.get(total, 0) - bad - groups.get("skipped", 0))), bad

    return parse


def _unittest(text: str) -> Found:
    for found in re.finditer(r"^Ran (\d+) tests? in [\d.]+s\s+(OK|FAILED)(?: \(([^)]*)\))?", text, re.MULTILINE):
        numbers = {k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", found[3] or "")}
        bad = numbers.get("failures", 0) + numbers.get("errors", 0)
        yield int(found[1]) - bad - numbers.get("skipped", 0), bad


def _maven(text: str) -> Found:
    """The last line without a time is the sum of the classes."""
    lines = re.findall(r"Tests run: (\d+), Failures: (\d+), Errors: (\d+), Skipped: (\d+)(?!.*Time elapsed)", text)
    for run, failures, errors, skipped in lines[-1:]:
        bad = int(failures) + int(errors)
        yield int(run) - bad - int(skipped), bad


def _jest(text: str) -> Found:
    for line in re.findall(r"^\s*Tests:?\s+(\d+ .*)$", text, re.MULTILINE):
        yield _named(line.replace("|", ","))


def _mocha(text: str) -> Found:
    for found in re.finditer(r"^\s+(\d+) passing\b.*(?:\n\s+\d+ pending)?(?:\n\s+(\d+) failing)?", text, re.MULTILINE):
        yield int(found[1]), int(found[2] or 0)


_PARSERS: tuple[tuple[str, Callable[[str], Found]], ...] = (
    ("pytest", _pytest),
    ("unittest", _unittest),
    ("cargo", _each(r"^test result: \w+\. (?P<passed>\d+) passed; (?P<failed>\d+) failed;")),
    ("nextest", _each(r"Summary \[.*?\]\s+(?P<total>\d+) tests? run: (?P<passed>\d+) passed"
                      r"(?:.*?, (?P<failed>\d+) failed)?")),
    ("go test", _go),
    ("jest or vitest", _jest),
    ("mocha", _mocha),
    ("maven", _maven),
    ("gradle", _each(r"^(?P<total>\d+) tests? completed, (?P<failed>\d+) failed(?:, (?P<skipped>\d+) skipped)?")),
    ("rspec", _each(r"^(?P<total>\d+) examples?, (?P<failed>\d+) failures?(?:, (?P<skipped>\d+) pending)?")),
    ("minitest", _each(r"^(?P<total>\d+) (?:runs|tests), \d+ assertions, (?P<failed>\d+) failures, "
                       r"(?P<errors>\d+) errors, (?P<skipped>\d+) (?:skips|pendings)")),
    ("exunit or bats", _each(r"^(?:\d+ doctests?, )?(?P<total>\d+) tests?, (?P<failed>\d+) failures?"
                             r"(?:, (?P<skipped>\d+) skipped)?")),
    ("phpunit", _each(r"^(?:OK \(|Tests: )(?P<total>\d+)(?: tests?)?, (?:Assertions: )?\d+(?: assertions?\))?"
                      r"(?:, Errors: (?P<errors>\d+))?(?:, Failures: (?P<failed>\d+))?")),
    ("dotnet", _each(r"(?:Passed|Failed)!\s+-\s+Failed:\s+(?P<failed>\d+), Passed:\s+(?P<passed>\d+)")),
    ("ctest", _each(r"tests passed, (?P<failed>\d+) tests? failed out of (?P<total>\d+)")),
    ("xctest", _each(r"^\s*Executed (?P<total>\d+) tests?, with (?P<failed>\d+) failures?")),
    ("node", _each(r"^[#ℹ] pass (?P<passed>\d+)\s*\n[#ℹ] fail (?P<failed>\d+)")),
    ("bun", _each(r"^\s*(?P<passed>\d+) pass\s*\n(?:\s*\d+ skip\s*\n)?\s*(?P<failed>\d+) fail\b")),
    ("counts", _each(r"\b(?P<passed>\d+) passed(?:[,;|]| and)\s*(?P<failed>\d+) failed\b")),
)
"""Runners by the shape of their summary, the more particular first."""
