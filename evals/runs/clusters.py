"""Dask and Ray, each an optional extra, as joblib's backends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from replay.errors import ConfigError

PATIENCE = 60
"""Seconds that a cluster may take until a worker has loaded the work."""

if TYPE_CHECKING:
    from evals.runs.engine import Engine


@contextmanager
def dask_cluster(engine: Engine, work: Any) -> Iterator[None]:
    """joblib works on the Dask cluster at the address, or on one of this machine that ends with the block.

    Raises ConfigError where nobody answers, and where a worker cannot load the work.
    """
    _check("distributed", "dask")
    import distributed
    import joblib

    client, cluster = cast(Any, distributed.Client), cast(Any, distributed.LocalCluster)  # it has no annotations

    if engine.address is not None:
        with (_connected(lambda: client(engine.address, timeout=20), engine) as found,
              joblib.parallel_config(backend="dask")):
            _try_out(found, work)
            yield
        return
    # Processes of one thread each: a trial's time limit and its memory are then its own.
    with (cluster(n_workers=engine.jobs, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as local,
          client(local) as found, joblib.parallel_config(backend="dask")):
        _try_out(found, work)
        yield


def _try_out(client: Any, work: Any) -> None:
    """Have a worker load the work: where it cannot, joblib would wait for ever."""
    try:
        client.submit(_loaded, work, pure=False).result(timeout=PATIENCE)
    except TimeoutError as error:
        raise ConfigError("--backend", "dask", f"no worker took the work within {PATIENCE} s: has the cluster any that "
                          "are free?") from error
    except Exception as error:  # whatever the worker's import of a user's module raises
        told = " ".join(str(error).split())
        raise ConfigError("--backend", "dask", f"a worker cannot load the work ({type(error).__name__}: {told}); "
                          "Rewindow and what the policies import must be installed there") from error


def _loaded(work: Any) -> bool:
    return work is not None


@contextmanager
def ray_cluster(engine: Engine) -> Iterator[None]:
    """joblib works on the Ray cluster at the address, or on one of this machine that ends with the block."""
    _check("ray", "ray")
    import os

    import joblib

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray
    from ray.util.joblib import register_ray

    started = not ray.is_initialized()
    if started:
        local = {} if engine.address else {"num_cpus": engine.jobs, "include_dashboard": False}
        with _connected(lambda: ray.init(address=engine.address, log_to_driver=False, logging_level="error", **local),
                        engine, close=False):
            pass
    register_ray()
    try:
        with joblib.parallel_config(backend="ray"):
            yield
    finally:
        if started:
            ray.shutdown()


@contextmanager
def _connected(connect: Any, engine: Engine, *, close: bool = True) -> Iterator[Any]:
    """Connect, with one clear line where nobody answers."""
    try:
        client = connect()
    except (OSError, ConnectionError, TimeoutError, ValueError) as error:
        raise ConfigError("--address", "", f"no {engine.backend} cluster answers at {engine.address}: "
                          + " ".join(str(error).split())) from error
    try:
        yield client
    finally:
        if close:
            client.close()


def dask_endings() -> tuple[type[BaseException], ...]:
    """What Dask raises when the workers that had a piece of work ended, again and again."""
    if find_spec("distributed") is None:
        return ()
    from distributed.scheduler import KilledWorker

    return (KilledWorker,)


def ray_endings() -> tuple[type[BaseException], ...]:
    """What Ray raises when a worker ended."""
    if find_spec("ray") is None:
        return ()
    from ray.exceptions import RayActorError, WorkerCrashedError

    return (RayActorError, WorkerCrashedError)


def _check(package: str, extra: str) -> None:
    if find_spec(package) is None:
        raise ConfigError("--backend", extra, f"needs the package {package}: pip install 'rewindow[{extra}]'")
