"""The same comparison on a cluster: the same tables to the byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from evals.compare import Comparison, compare
from evals.runs.engine import Engine, each
from evals.trial import Settings
from replay.cli import main
from replay.errors import ConfigError
from replay.find import find
from replay.policy.base import Capacity
from replay.policy.load import policy

ROOT = Path(__file__).resolve().parents[3]
SAMPLES = ROOT / "datasets" / "samples"
POLICIES = ("full-history", "decode-adr18")
SETTINGS = Settings(capacity=Capacity(window=20_000), tokenizer="o200k_base", summariser="extractive")


@pytest.fixture(autouse=True, scope="module")
def _workers_find_the_project() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
        yield


def job(**engine: Any) -> Comparison:
    """The bundled sessions under two policies."""
    return Comparison(files=tuple(find([str(SAMPLES)])), policies=tuple(map(policy, POLICIES)), settings=SETTINGS,
                      baseline="full-history", **engine)


def tables(run: Path) -> dict[str, bytes]:
    """The bytes of a run's tables."""
    return {path.name: path.read_bytes() for path in sorted(run.glob("*.parquet"))}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that this process made alone."""
    out = tmp_path_factory.mktemp("here") / "run"
    compare(job(jobs=1), out)
    return out


def _refuse() -> None:
    raise ImportError("no module named 'mine'")


class _Unloadable:
    """Work that raises where it is loaded."""

    def __reduce__(self) -> tuple[Any, tuple[()]]:
        return _refuse, ()

    def __call__(self, item: int) -> int:
        return item


@contextmanager
def dask_cluster() -> Iterator[str]:
    """The address of a cluster of two workers on this machine."""
    distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None,
                                  host="127.0.0.1") as found:
        yield found.scheduler_address


# Dask's own threads and sockets outlive its client for a moment.
@pytest.mark.filterwarnings("ignore")
class TestDask:
    """A Dask cluster of two workers on this machine."""

    @pytest.fixture(scope="class")
    def cluster(self) -> Iterator[str]:
        """Its address."""
        with dask_cluster() as address:
            yield address

    def test_the_same_tables(self, cluster: str, here: Path, tmp_path: Path) -> None:
        """A cluster's run equals this process's."""
        compare(job(backend="dask", address=cluster), tmp_path / "run")

        assert tables(here) == tables(tmp_path / "run")

    def test_work_that_no_worker_can_load(self) -> None:
        """A policy whose module the workers lack is one clear error, not an endless wait."""
        # Such work may end workers: the cluster is for nobody else.
        with dask_cluster() as doomed, pytest.raises(
                ConfigError, match=r"a worker cannot load the work .*must be installed there"):
            next(each(_Unloadable(), [1], Engine(backend="dask", address=doomed)))

    def test_a_cluster_without_workers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A cluster that nobody works for is told after a while, not waited for."""
        distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
        monkeypatch.setattr("evals.runs.clusters.PATIENCE", 1)
        with distributed.LocalCluster(n_workers=0, dashboard_address=None, host="127.0.0.1") as empty, pytest.raises(
                ConfigError, match="no worker took the work within 1 s"):
            next(each(str, [1], Engine(backend="dask", address=empty.scheduler_address)))

    def test_an_endless_trial_ends(self) -> None:
        """A time limit holds in a cluster's worker thread too; here the cluster is one of the command's own."""
        pytest.importorskip("distributed", reason="the extra `dask` is not installed")
        words = ["compare", str(job().files[0].path), "-p", "tests.evals.runs.awkward:ENDLESS", "--backend", "dask", "--jobs",
                 "2", "--time-limit", "0.5", "--window", "20000", "--no-cache", "--json"]
        done = subprocess.run([sys.executable, "-m", "replay.cli", *words], capture_output=True, text=True, timeout=200,
                              cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False)

        assert {"TimeLimit: the trial took longer than its limit of 0.5 s (--time-limit)"} == {
            t["error"] for t in json.loads(done.stdout)["trials"]}, done.stderr


@pytest.mark.skipif(find_spec("ray") is None, reason="the extra `ray` is not installed")
@pytest.mark.filterwarnings("ignore")
def test_ray_gives_the_same_tables(here: Path, tmp_path: Path) -> None:
    """A Ray runtime on this machine gives the run that this process gives."""
    compare(job(backend="ray", jobs=2), tmp_path / "run")

    assert tables(here) == tables(tmp_path / "run")


@pytest.mark.parametrize(("more", "message"), [
    (["--address", "tcp://127.0.0.1:1"], "--backend dask or --backend ray"),
    (["--backend", "dask", "--address", "nonsense://x"], "no dask cluster answers at nonsense://x")])
def test_a_wrong_address_is_one_line(more: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An address without a cluster, or without a backend, is said in one line."""
    with pytest.raises(SystemExit) as stopped:
        main(["compare", str(SAMPLES), "-p", "full-history", *more])
    error = capsys.readouterr().err

    assert (2, 1) == (stopped.value.code, len(error.strip().splitlines()))
    assert message in error
