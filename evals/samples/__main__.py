"""`python -m evals.samples [--check]`: make the sample sessions again, or check that they are as made."""

from __future__ import annotations

import click

from evals.samples.make import DATASETS, make_all
from evals.samples.manifest import differences, store


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit 1 where a file is not as made.")
def main(check: bool) -> None:
    """Make the sample sessions again from their scenarios. Example: python -m evals.samples --check"""
    if not (DATASETS / "samples").is_dir():
        click.echo(f"no sample scenarios below {DATASETS}; this needs a checkout", err=True)
        raise SystemExit(2)
    samples = make_all()
    if check:
        found = list(differences(samples, DATASETS))
        click.echo("\n".join(found) or f"{len(samples)} sessions are as made")
        raise SystemExit(1 if found else 0)
    store(samples, DATASETS)
    for sample in samples:
        click.echo(f"{sample.path}: {sample.recording.steps} steps, {len(sample.data)} bytes")


if __name__ == "__main__":
    main()
