"""`policies show NAME --toml`: a text to start one's own policy from."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from replay.commands.policies import policies
from replay.policy.load import policy, policy_from, preset_names, spec


def shown(name: str, folder: Path) -> Path:
    """The printed text as a file of one's own."""
    done = CliRunner().invoke(policies, ["show", name, "--toml"])
    assert 0 == done.exit_code, done.output
    path = folder / "mine.toml"
    path.write_text(done.output, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", preset_names())
def test_the_text_of_a_preset_loads_to_the_same_policy(name: str, tmp_path: Path) -> None:
    """Every preset's text, written to a file and loaded, is equal to the preset."""
    assert policy(name) == policy(str(shown(name, tmp_path)))


@pytest.mark.parametrize("name", preset_names())
def test_the_text_of_a_changed_preset_loads_to_the_same_policy(name: str, tmp_path: Path) -> None:
    """With an override the text is made from the spec: it loads to the changed policy, the preset's own file does not."""
    changed = f"{name}:output_reserve=1234"

    assert policy(changed) == policy(str(shown(changed, tmp_path)))
    assert policy(name) != policy(changed)


def test_a_spec_is_whole() -> None:
    """What is printed as JSON loads to the same policy as well."""
    assert all(policy(name) == policy_from(spec(policy(name))) for name in preset_names())
