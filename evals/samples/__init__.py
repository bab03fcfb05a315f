"""The bundled sessions: scripted agents, real tools, small repositories of our own, native formats.

No model takes part. A scenario in `datasets/samples/scenarios` says what the agent does and says; the
tools run for real in a temporary copy of a repository; a writer puts the recording into the format of a
harness. The same scenario always gives the same bytes.
"""

from __future__ import annotations

from evals.samples.make import DATASETS, Sample, make, make_all
from evals.samples.manifest import differences, manifest_text

__all__ = ["DATASETS", "Sample", "differences", "make", "make_all", "manifest_text"]
