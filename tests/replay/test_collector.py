"""The search for cyclic garbage while a lane is replayed."""

from __future__ import annotations

import gc

import pytest

from replay.collector import paused


@pytest.mark.parametrize("enabled", [True, False])
def test_it_is_afterwards_as_it_was_before(enabled: bool) -> None:
    """Off meanwhile, also in one pause within another, and put back after an error."""
    before = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(KeyError):
            _fail_inside()
        assert enabled == gc.isenabled()
    finally:
        (gc.enable if before else gc.disable)()


def _fail_inside() -> None:
    with paused():
        with paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
        raise KeyError
