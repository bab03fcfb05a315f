"""`rewindow demo`: the main job on the bundled sessions."""

from __future__ import annotations

from pathlib import Path

import click

from evals.commands.compare import run
from evals.commands.leaderboard import print_summary
from replay.commands.output import print_json

POLICIES = ("full-history", "mycodeagent:rounds=1", "decode", "decode-adr18",
            "decode-adr18:scope=before-step,tail_tokens=8000")
WINDOW = 64_000


@click.command(epilog="Example: rewindow demo --out runs/demo")
@click.option("--out", type=click.Path(path_type=Path),
              help="Where to store the run; default: runs/demo, runs/demo-2, …")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def demo(out: Path | None, as_json: bool) -> int:
    """Compare several policies on the bundled sessions; no key, no server, no network."""
    from evals.bundled import sample_paths

    summary = run(sample_paths(), out or free_folder(Path("runs") / "demo"), policies=POLICIES, baseline="full-history",
                  window=WINDOW, output_reserve=0, tokenizer="o200k_base", prices=None, cache_model="auto", losses=True,
                  summariser="extractive", jobs=1)
    print_json(summary) if as_json else print_summary(summary)
    return 0


def free_folder(wanted: Path) -> Path:
    """The wanted folder, or with the next free number behind it."""
    number = 1
    folder = wanted
    while folder.exists():
        number += 1
        folder = wanted.with_name(f"{wanted.name}-{number}")
    return folder
