"""The pytest plugin as its users have it: real pytest in a process of its own, with the installed entry point."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from evals.bundled import sample_paths

SESSIONS = ("long-refactoring", "parcels-review", "rainlog-crash")
ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).parent
EDITABLE = "ignore:Module already imported so cannot be rewritten"
"""pytest's word on the import hook of an editable install, such as the one that runs these tests."""
TESTS = '''
import pytest

pytestmark = pytest.mark.rewindow("sessions", policy="own_compactors:{policy}", window=64_000)

def test_views(assert_view_matches):
    assert_view_matches("golden")

def test_every_view_holds_the_task(rewindow_views):
    assert all(any(m["role"] == "user" for m in view) for view in rewindow_views)

def test_the_replay(rewindow_replay):
    assert len(rewindow_replay.views) == len(rewindow_replay.session.transcript.steps)
    assert rewindow_replay.messages(1, "anthropic")

def test_no_regression(assert_no_regression):
    assert_no_regression("own_compactors:good", {{"edit_safety": 0.02}})
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with three sessions, its own policies, and Rewindow's entry point as an installer writes it."""
    (tmp_path / "sessions").mkdir()
    for path in (p for p in sample_paths() if Path(p).stem in SESSIONS):
        shutil.copy(path, tmp_path / "sessions")
    shutil.copy(HERE / "own_compactors.py", tmp_path)
    info = tmp_path / "site" / "rewindow_entry-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rewindow-entry\nVersion: 1\n")
    (info / "entry_points.txt").write_text(_entry_point())
    write(tmp_path, "good")
    return tmp_path


def _entry_point() -> str:
    """The plugin's section of pyproject.toml, in the form of installed metadata."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    name, target = re.search(r'entry-points\.pytest11\]\n(\w+) = "([\w.]+)"', text).groups()  # type: ignore[union-attr]
    return f"[pytest11]\n{name} = {target}\n"


def write(project: Path, policy: str) -> None:
    """The project's tests, under a policy."""
    (project / "test_mine.py").write_text(TESTS.format(policy=policy))


def run(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """pytest in the project, warnings as errors."""
    path = os.pathsep.join([str(ROOT), str(project), str(project / "site")])
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")} | {"PYTHONPATH": path}
    return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:opik", "-p", "no:cacheprovider", "-W", "error",
                           "-W", EDITABLE,
                           "--strict-markers", "--rootdir", str(project), str(project), *words], cwd=project,
                          capture_output=True, text=True, check=False, env=environment, timeout=300)


def test_accept_compare_and_a_readable_failure(project: Path) -> None:
    """Written once, compared after that; a broken compactor fails with session, step and difference, without a traceback."""
    assert 0 == run(project, "--rewindow-accept", "-k", "test_views").returncode
    done = run(project)
    assert 0 == done.returncode, done.stdout
    write(project, "forgets")
    broken = run(project, "-k", "test_views")

    assert 1 == broken.returncode
    assert "48bb9423-8c4c-429f-841f-f2718f58f6a2, step 88: the view differs: 1 changed; 66 more steps differ" in broken.stdout
    assert "changed  – summary: summary#" in broken.stdout
    assert "Traceback" not in broken.stdout
    assert re.search(r"again:  pytest 'test_mine.py::test_views\[long-refactoring", broken.stdout)


def test_workers_agree(project: Path) -> None:
    """With xdist golden views are written by two workers at once, and compare as they do without."""
    assert 0 == run(project, "--rewindow-accept", "-n", "2", "-k", "test_views").returncode
    lines = [orjson.loads(line) for line in (project / "golden" / "accepted.jsonl").read_bytes().splitlines()]
    alone, together = run(project), run(project, "-n", "2")

    assert len(SESSIONS) == len({entry["session"] for entry in lines})
    assert (0, 0) == (alone.returncode, together.returncode), alone.stdout + together.stdout
    assert re.findall(r"\d+ passed", alone.stdout) == re.findall(r"\d+ passed", together.stdout)


def test_a_change_needs_a_reason(project: Path) -> None:
    """--rewindow-accept alone changes no golden view that is there; with a reason both hashes are kept."""
    run(project, "--rewindow-accept", "-k", "test_views")
    write(project, "drops_the_task")
    refused = run(project, "--rewindow-accept", "-k", "test_views")
    taken = run(project, "--rewindow-accept", "--rewindow-reason", "the summary names the task", "-k", "test_views")
    last = orjson.loads((project / "golden" / "accepted.jsonl").read_bytes().splitlines()[-1])

    assert "would change: say why with --rewindow-reason TEXT" in refused.stdout
    assert 0 == taken.returncode, taken.stdout
    assert "the summary names the task" == last["reason"]
    assert last["old"] != last["new"]


def test_a_regression_is_named(project: Path) -> None:
    """The metric that may be worse than the baseline's by more than its margin."""
    write(project, "forgets")
    done = run(project, "-k", "test_no_regression or test_views")

    assert 1 == done.returncode
    assert "no golden views there yet; run once with --rewindow-accept" in done.stdout
    assert "repair-adjusted cost may be worse" in done.stdout


@pytest.mark.parametrize(("mark", "line"), [
    ('pytest.mark.rewindow("sessions", policy="decoder")', "no policy called 'decoder'; did you mean"),
    ('pytest.mark.rewindow("nowhere", policy="decode")', "no such file or folder"),
    ('pytest.mark.rewindow("sessions", polcy="decode")', "no setting 'polcy'; known: "),
    ("pytest.mark.skipif(False, reason='')", "mark it with @pytest.mark.rewindow("),
])
def test_a_wrong_mark_is_one_line(project: Path, mark: str, line: str) -> None:
    """What is wrong with the mark, and what would be right."""
    (project / "test_mine.py").write_text(f"import pytest\n@{mark}\ndef test_it(rewindow_replay):\n    pass\n")
    done = run(project)

    assert line in done.stdout
    assert "Traceback" not in done.stdout


def test_it_stays_out_of_the_way(project: Path) -> None:
    """A test run that does not use it loads none of our modules but the plugin."""
    (project / "test_mine.py").write_text(
        "import sys\n\ndef test_it():\n"
        "    ours = {m for m in sys.modules if m.split('.')[0] in ('replay', 'evals', 'dashboard')}\n"
        "    assert {'evals', 'evals.pytest_plugin'} == ours\n"
        "    assert not {'numpy', 'pandas', 'splintr', 'rich'} & set(sys.modules)\n")
    done = run(project)

    assert 0 == done.returncode, done.stdout
