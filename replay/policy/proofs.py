"""The stored proof of the presets: verdicts on captures that were made once and travel with the package."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

STORED = Path(__file__).parent / "proofs.json"
"""Written by `python -m replay.policy.proofs FOLDER…`."""


def stored_proofs() -> dict[str, Any]:
    """The stored verdicts: `captures` and `oracles`, as `policies verify --json` has them."""
    proofs: dict[str, Any] = orjson.loads(STORED.read_bytes())
    return proofs


def store(paths: Iterable[Path]) -> None:
    """Judge the captures below the paths again and store the verdicts; the oracles' results stay."""
    from replay.policy.verify import verify_captures

    captures = [v.to_json() for v in verify_captures(paths) if v.preset]
    for capture in captures:
        capture["path"] = f"{capture['harness']}-{capture['version']}/{capture['scenario']}"
    oracles = stored_proofs()["oracles"] if STORED.exists() else []
    proofs = {"captures": sorted(captures, key=lambda c: c["path"]), "oracles": oracles}
    STORED.write_bytes(orjson.dumps(proofs, option=orjson.OPT_INDENT_2) + b"\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Judge captures again and store the verdicts.")
    parser.add_argument("folders", nargs="+", type=Path)
    store(parser.parse_args().folders)
