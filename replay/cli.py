"""The command group: a table of names to `module:command`, each imported only when it is called."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from typing import Any

import click

from replay.errors import Interrupted, ReadError, RewindowError

COMMANDS: Mapping[str, tuple[str, str]] = {
    "demo": ("evals.commands.demo:demo", "Compare several policies on the bundled sessions."),
    "detect": ("replay.commands.detect:detect", "Say what each file is and what was odd about it."),
    "show": ("replay.commands.show:show", "Show the steps of a session, or the exact view of one."),
    "compare": ("evals.commands.compare:compare", "Replay sessions under several policies and rank them."),
    "agree": ("evals.commands.agree:agree", "Would a model act as recorded? Asked from each policy's views."),
    "probe": ("evals.commands.probe:probe", "Does a model still know what was dropped? Asked from each view."),
    "judge": ("evals.commands.judge:judge", "A model judges summaries, and people's labels judge the model."),
    "sweep": ("evals.commands.sweep:sweep", "Try a policy's settings on many sessions and choose with care."),
    "report": ("evals.commands.report:report", "Tables and charts of a stored run."),
    "run": ("evals.commands.run:run", "Carry out tasks live under several policies, with a model."),
    "runs": ("evals.commands.runs:runs", "List stored runs, go on with one that was stopped, delete one."),
    "stats": ("evals.commands.stats:stats", "Paired statistics on anybody's results table."),
    "gate": ("evals.commands.gate:gate", "Compare model views with golden ones: a regression test for harnesses."),
    "serve": ("replay.commands.serve:serve", "Answer a real harness from a recording, and record what it sends."),
    "cohort": ("evals.commands.cohort:cohort", "Freeze a list of sessions, so that like is compared with like."),
    "validate": ("evals.commands.validate:validate", "Check the measurements against what really happened."),
    "convert": ("replay.commands.convert:convert", "Write a session in another format."),
    "planted": ("evals.commands.planted:planted", "What policies keep of facts that a person states once."),
    "policies": ("replay.commands.policies:policies", "List the presets, or show one."),
    "opik": ("evals.commands.opik:opik", "Read sessions from Opik, and write comparisons to it."),
    "dashboard": ("dashboard.launch:dashboard", "Open the dashboard on 127.0.0.1."),
}
"""Command name to where it lives and what it does."""


INTERRUPTED = 130
"""Exit code of what a person stopped, as shells have it."""


class LazyGroup(click.Group):
    """Imports a command when it runs, so that `rewindow --help` costs next to nothing."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name; None where there is none."""
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="rewindow")
def group() -> None:
    """Replay recorded coding-agent sessions under other context policies, and measure what changes.

    Example: rewindow compare ~/.claude/projects -p full-history -p decode-adr18 --window 200000

    With --debug an error shows its traceback.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line. Exit codes: 0 done, 1 a check does not hold, 2 wrong call or config, 3 unreadable input."""
    given = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in given
    try:
        code: Any = group.main(args=[a for a in given if a != "--debug"], prog_name="rewindow", standalone_mode=False)
    except click.exceptions.Abort:
        _stop("interrupted; nothing was written", INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except RewindowError as error:
        if isinstance(error, Interrupted):
            _stop(str(error), INTERRUPTED)
        if debug:
            raise
        _stop(str(error), _code(error))
    except BrokenPipeError:
        sys.exit(0)
    except Exception as error:
        if debug:
            raise
        _stop(f"{type(error).__name__}: {error} (--debug shows where)", 2)
    sys.exit(code if isinstance(code, int) else 0)


def _code(error: RewindowError) -> int:
    return 3 if isinstance(error, ReadError) else 2


def _stop(message: str, code: int) -> None:
    click.echo(f"rewindow: {message}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
