"""Options that several commands share."""

from __future__ import annotations

import click

reader_option = click.option(
    "--reader", metavar="READER",
    help="Read with this reader instead of telling the format: a format's name or package.module:Class.")
