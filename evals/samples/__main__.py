"""`python -m evals.samples [--check]`: make the sample sessions again, or check that they are as made."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from evals.samples.make import DATASETS, make_all
from evals.samples.manifest import differences, store


def main(words: Sequence[str] | None = None) -> int:
    """Make or check the samples; gives the exit code: 0 done, 1 the files differ, 2 no data folder."""
    parser = argparse.ArgumentParser(prog="python -m evals.samples", description=__doc__,
                                     epilog="example: python -m evals.samples --check")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a file differs")
    arguments = parser.parse_args(words)
    if not (DATASETS / "samples").is_dir():
        print(f"no sample scenarios below {DATASETS}; this needs a checkout", file=sys.stderr)
        return 2
    samples = make_all()
    if arguments.check:
        found = list(differences(samples, DATASETS))
        print("\n".join(found) or f"{len(samples)} sessions are as made")
        return 1 if found else 0
    store(samples, DATASETS)
    for sample in samples:
        print(f"{sample.path}: {sample.recording.steps} steps, {len(sample.data)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
