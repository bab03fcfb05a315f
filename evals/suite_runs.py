"""Which commands of a session run tests, whether all of them, and how the runs ended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import orjson

from evals.actions import Action
from evals.shell_results import exit_code
from evals.suite_counts import Counts, counts

_START = (r"(?:^|[;&|(\n]\s*|\b(?:then|do)\s+|-\w*c\s+['\"])(?:(?:[A-Z_]\w*=\S*|env|time|sudo|npx|"
          r"(?:poetry|uv|pipenv|hatch|pdm|rye) run|bundle exec|timeout \S+|nice|xvfb-run)\s+)*(?:[\w./~-]*/)?")
"""Where a command begins, behind what may stand in front of its name."""
_RUNNER = re.compile(_START + (
    r"(?:pytest|py\.test|python[\d.]* -m (?:pytest|unittest)|go test|gotestsum|cargo (?:nextest(?: run)?|test)|"
    r"(?:npm|yarn|pnpm|bun)(?: run)? test[\w:-]*|jest|vitest|mocha|playwright test|mvnw? [^|;&]*\b(?:test|verify)|"
    r"gradlew? [^|;&]*\b(?:test|check)|rspec|rake test|phpunit|dotnet test|ctest|tox|nox|(?:make|just|task) "
    r"[\w:-]*tests?[\w:-]*|mise (?:run )?tests?[\w:-]*|deno test|swift test|mix test|bats|node --test|"
    r"(?:python[\d.]*|sh|bash|node) \S*\btests?/(?:run|all|main)\w*\.\w+)(?=$|[\s;&|)'\"])"))
_OPTION_WITH_CHOICE = re.compile(
    r"\s(?:-k|-run|--run|-t|--grep|--filter|--testNamePattern|--tests|-Dtest|-m|-p|--package|--test|-g|--lf|"
    r"--last-failed)(?:[\s=]|$)")
_CHOSEN_FILE = re.compile(r"::|\S+\.(?:py|js|jsx|ts|tsx|go|rb|rs|java|exs?|php|bats|mjs|cjs)\b")
_GO = re.compile(r"\bgo test\b|\bgotestsum\b")
_GO_PACKAGE = re.compile(r"(?:^|\s)(\.\.?/\S*|[\w-]+(?:\.\w+)+/\S+|\./?)(?=\s|$)")
_CARGO_NAME = re.compile(r"\bcargo (?:nextest run|test)\s+(?!-)\w+")
_SUITE = re.compile(r"\btests?(?:[:_-](?!ci\b|all\b)\w+)|\S*\btests?/(?:run|all|main)\w*\.\w+(?:\s+-\S+)*\s+[^-\s;&|>]")
"""A part of the tests that has a name of its own, such as `test:unit`, or a script that is told what to run."""
_FILTER = re.compile(r"\|\s*(?:grep|rg|awk|sed|head|cut)\b")
_CARRIED = re.compile(r"^Command: (?:\S+ -\w*c )?(.+)$", re.MULTILINE)
_GOES_ON = re.compile(r"Process running|running in (?:the )?background|interact with the current process|"
                      r"moved to the background")
_HIDES_EXIT = re.compile(r"\|(?!\|)|\|\||;\s*\S")


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """One run of a test command."""

    action: Action
    message: int
    """Log index of the message with its output."""
    full: bool
    """It chose no tests."""
    counts: Counts | None
    """None where the output holds no summary."""
    exit_code: int | None
    """None where none is known, or it is that of another command in the same line."""
    filtered: bool = False
    """Only lines of the output were kept, so a failure may be missing."""

    @property
    def value(self) -> str:
        """`pass`, `fail`, `partial` (some of each), or `unknown`."""
        if self.counts is not None:
            return "pass" if not self.counts.failed else "partial" if self.counts.passed else "fail"
        return "unknown" if self.exit_code is None else "fail" if self.exit_code else "pass"


def suite_runs(made: Sequence[Action]) -> Iterator[SuiteRun]:
    """The test runs of a session in order; a run that goes on in the background counts where its output came."""
    for action in made:
        command = action.command or _carried(action)
        if action.result is None or not command or not _RUNNER.search(command):
            continue
        found = counts(_printed(action.text))
        code = _code(action, command)
        # Without counts and without an exit code the run has not ended here.
        if found is not None or code is not None:
            yield SuiteRun(action, action.result, not is_selected(command), found, code, bool(_FILTER.search(command)))


def _printed(text: str) -> str:
    """What a command printed, out of the JSON object that some harnesses wrap it in."""
    if not text.startswith("{"):
        return text
    try:
        wrapped = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    parts = (wrapped.get(key) for key in ("text", "output", "stdout", "stderr"))
    return "\n".join(p for p in parts if isinstance(p, str)) or text


def _carried(action: Action) -> str | None:
    """The command that a result says it belongs to, where a call only waits for one that was started before."""
    found = _CARRIED.search(action.text[:1_000]) if "write_stdin" in action.call.name else None
    return found[1].strip("'\"") if found else None


def _code(action: Action, command: str) -> int | None:
    if _HIDES_EXIT.search(_RUNNER.sub(" RUN ", command).partition("RUN")[2]):
        return None
    code = exit_code(action.text)
    # A failure without a code may be a refusal by the person; output without one ended well, unless it goes on.
    silent = code is None and action.command and not action.failed and not _GOES_ON.search(action.text)
    return 0 if silent else code


def is_selected(command: str) -> bool:
    """Whether a test command runs chosen tests instead of all."""
    found = _RUNNER.search(command)
    if found is None:
        return True
    # What belongs to the runner ends where the next command starts.
    arguments = re.split(r"[;&|]|\s2?>", command[found.start():].lstrip(" ;&|("))[0]
    rest = arguments[len(found[0].strip(" ;&|(")):]
    if _SUITE.search(arguments):
        return True
    if _GO.search(arguments):
        packages = _GO_PACKAGE.findall(arguments)
        return bool(re.search(r"\s-run[\s=]", arguments)) or "./..." not in packages
    return bool(_OPTION_WITH_CHOICE.search(rest) or _CHOSEN_FILE.search(rest) or _CARGO_NAME.search(arguments))
