"""`rewindow policies`: the presets, and what each does."""

from __future__ import annotations

from textwrap import fill

import click

from replay.commands.output import console, literal, print_json
from replay.commands.policies_verify import verify
from replay.policy.explain import explain
from replay.policy.load import policy, spec
from replay.policy.toml_text import policy_text


@click.group()
def policies() -> None:
    """List the presets, or show one. Example: rewindow policies show decode-adr18"""


@policies.command("list", epilog="Example: rewindow policies list --json")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def list_presets(as_json: bool) -> None:
    """List the presets with the harness and version they imitate, and how that was proved."""
    from replay.policy.evidence import evidence

    known = evidence()
    if as_json:
        print_json({"policies": [{"name": p.name, "harness": p.harness, "version": p.version, "proof": p.proof,
                                  "summary": p.summary, "evidence": e.to_json()} for e in known for p in (e.preset,)]})
        return
    screen = console()
    for found in known:
        screen.print(literal(found.preset.name))
        for line in (found.preset.summary, found.imitated()):
            screen.print(literal(fill(line, screen.width, initial_indent="    ", subsequent_indent="    ")))


@policies.command(epilog="Example: rewindow policies show mycodeagent")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="The policy's spec as one JSON document.")
@click.option("--toml", "as_toml", is_flag=True, help="A TOML to start one's own from: it loads to the same policy.")
def show(name: str, as_json: bool, as_toml: bool) -> None:
    """Show a policy in words and numbers; NAME may carry overrides."""
    chosen = policy(name)
    if as_toml:
        click.echo(policy_text(chosen), nl=False)
        return
    if as_json:
        print_json(spec(chosen))
        return
    screen = console()
    for line in explain(chosen):
        screen.print(literal(line))


policies.add_command(verify)
