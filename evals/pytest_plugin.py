"""pytest plugin: golden model views as tests. It does nothing, and imports nothing, before a test uses it.

    pytestmark = pytest.mark.rewindow("tests/sessions", policy="my_harness.policy:policy", window=64_000)

    def test_views(rewindow_replay, assert_view_matches):
        assert_view_matches("tests/golden")

    def test_no_regression(assert_no_regression):
        assert_no_regression("decode-adr18", {"edit_safety": 0.02})

Fixtures: `rewindow_replay` (each session of the mark under its policy), `rewindow_views` (the messages of its steps),
`assert_view_matches(golden)`, `assert_no_regression(baseline, margins)`. `--rewindow-accept` writes golden views.
Paths are relative to pytest's root folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from evals.gate.testing import Replay, Setup, Views
    from replay.policy.policy import Policy

_FIXTURES = frozenset({"rewindow_replay", "rewindow_views", "assert_view_matches"})


def pytest_addoption(parser: pytest.Parser) -> None:
    """Two options of their own group."""
    group = parser.getgroup("rewindow", "golden model views")
    group.addoption("--rewindow-accept", action="store_true", help="write golden views instead of comparing with them")
    group.addoption("--rewindow-reason", metavar="TEXT", help="why golden views change; recorded with both hashes")


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, for --strict-markers."""
    config.addinivalue_line("markers", "rewindow(*sessions, policy=…, window=…): sessions to replay, and under what")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each session of the mark."""
    if not _FIXTURES & set(metafunc.fixturenames):
        return
    setup = _setup(metafunc.definition, metafunc.config)
    found = _or_fail(lambda: _places(setup))
    metafunc.parametrize("_rewindow_place", found, ids=_ids(found), indirect=True)


def _places(setup: Setup) -> list[Any]:
    from evals.gate.testing import places

    return list(places(setup))


def _ids(found: list[Any]) -> list[str]:
    names = [str(place) for place in found]
    return [name if names.count(name) == 1 else f"{name}-{n}" for n, name in enumerate(names)]


def _setup(node: Any, config: pytest.Config) -> Setup:
    """The setup of a test's nearest mark, its paths below the root folder."""
    from evals.gate.testing import Setup

    mark = node.get_closest_marker("rewindow")
    if mark is None or not mark.args:
        pytest.fail(f"{node.nodeid}: mark it with @pytest.mark.rewindow('SESSIONS', policy='POLICY')", pytrace=False)
    known = set(Setup.__dataclass_fields__) - {"sessions"}
    unknown = sorted(set(mark.kwargs) - known)
    if unknown:
        pytest.fail(f"{node.nodeid}: mark rewindow: no setting {unknown[0]!r}; known: {', '.join(sorted(known))}",
                    pytrace=False)
    return Setup(sessions=tuple(str(_below(config, path)) for path in mark.args), **mark.kwargs)


def _below(config: pytest.Config, path: str | Path) -> Path:
    return config.rootpath / Path(path).expanduser()


def _or_fail(work: Callable[[], Any]) -> Any:
    """What the work gives; an error of ours fails the test with its one line."""
    from replay.errors import RewindowError

    try:
        return work()
    except RewindowError as error:
        message = str(error)
    return pytest.fail(f"rewindow: {message}", pytrace=False)


@pytest.fixture
def _rewindow_place(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture
def rewindow_replay(request: pytest.FixtureRequest, _rewindow_place: Any) -> Replay:
    """One session under the policy of the mark: `.views`, `.messages(step)`, `.lane`, `.session`."""
    from evals.gate.testing import Replay

    replay = Replay(_setup(request.node, request.config), _rewindow_place)
    _or_fail(lambda: replay.lane)
    return replay


@pytest.fixture
def rewindow_views(rewindow_replay: Replay) -> Views:
    """The messages of every step as OpenAI dictionaries, the first step at 0; rendered when asked for."""
    from evals.gate.testing import Views

    return Views(rewindow_replay.session, rewindow_replay.lane)


@pytest.fixture
def assert_view_matches(request: pytest.FixtureRequest,
                        rewindow_replay: Replay) -> Callable[[str | Path], None]:
    """Compare every view of the session with a golden folder; with --rewindow-accept write it there."""
    config = request.config

    def check(golden: str | Path) -> None:
        __tracebackhide__ = True
        folder = _below(config, golden)
        if config.getoption("--rewindow-accept"):
            _or_fail(lambda: rewindow_replay.accept(folder, config.getoption("--rewindow-reason")))
            return
        failures = _or_fail(lambda: rewindow_replay.differences(folder))
        if failures:
            again = f"  again:  pytest '{request.node.nodeid}'"
            pytest.fail("\n".join([*(line for f in failures for line in f.lines()), again]), pytrace=False)

    return check


@pytest.fixture
def assert_no_regression(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Over all sessions of the mark: no headline metric is worse than a baseline's by more than its margin."""

    def check(baseline: str | Path | Policy, margins: Mapping[str, float] | None = None) -> None:
        __tracebackhide__ = True
        from evals.gate.report import text
        from evals.gate.testing import no_regression

        setup = _setup(request.node, request.config)
        other = _below(request.config, baseline) if isinstance(baseline, Path) else baseline
        verdict = _or_fail(lambda: no_regression(setup, other, margins or {}))
        if not verdict.passed:
            pytest.fail(text(verdict), pytrace=False)

    return check
