"""`rewindow dashboard`: what it starts, and what it refuses in one line."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from dashboard import launch
from replay.errors import ConfigError, ReadError


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ports that would have been served; nothing is started."""
    ports: list[int] = []
    monkeypatch.setattr(launch, "serve", ports.append)
    monkeypatch.delenv(launch.RUNS_VARIABLE, raising=False)
    return ports


def test_the_url_is_printed_and_the_runs_are_handed_over(run: Path, served: list[int]) -> None:
    """The first free port is taken, its address printed, and each run named by its absolute path."""
    done = CliRunner().invoke(launch.dashboard, [str(run)], standalone_mode=False)

    assert f"http://127.0.0.1:{served[0]}" in done.output
    assert [str(run.absolute())] == json.loads(os.environ.pop(launch.RUNS_VARIABLE))


@pytest.mark.parametrize("content", [None, "summary.json"])
def test_what_is_no_run_is_refused(tmp_path: Path, served: list[int], content: str | None) -> None:
    """A missing folder and one that lacks a run's files are errors of one line."""
    folder = tmp_path / "thing"
    if content:
        folder.mkdir()
        (folder / content).write_text("{}")
    done = CliRunner().invoke(launch.dashboard, [str(folder)], standalone_mode=False)

    assert isinstance(done.exception, ReadError)
    assert "\n" not in str(done.exception)
    assert [] == served


def test_a_taken_port_is_refused(served: list[int]) -> None:
    """A port that something listens on is named in the error; without --port it is passed over."""
    with socket.socket() as taken:
        taken.bind((launch.ADDRESS, 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = CliRunner().invoke(launch.dashboard, ["--port", str(port)], standalone_mode=False)

        assert isinstance(done.exception, ConfigError)
        assert str(port) in str(done.exception)
        assert not launch.is_free(port)
    assert [] == served


def test_streamlit_is_told_to_stay_at_home() -> None:
    """This machine only, no browser, no statistics, no file watcher, no stack traces on the page."""
    wanted = {"--server.address=127.0.0.1", "--server.headless=true", "--browser.gatherUsageStats=false",
              "--server.fileWatcherType=none", "--client.showErrorDetails=none"}

    assert wanted <= set(launch.FLAGS)
