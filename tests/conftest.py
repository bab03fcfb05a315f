"""Fixtures that every test folder shares."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes says how busy the machine is, and nothing else.
settings.register_profile("project", deadline=None)
settings.load_profile("project")


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Nothing that a test keeps goes into the user's cache folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared study material; a test that needs it is skipped where it is absent."""
    folder = Path(os.environ.get("REWINDOW_SHARED", Path(__file__).resolve().parents[2] / "shared"))
    if not (folder / "transcripts").is_dir():
        pytest.skip(f"no shared study material at {folder}")
    return folder


@pytest.fixture(scope="session")
def transcripts(shared: Path) -> Path:
    """Real public sessions of every format."""
    return shared / "transcripts"


@pytest.fixture(scope="session")
def bugcases(shared: Path) -> Path:
    """Small inputs that break other readers."""
    return shared / "bugcases"
