"""The progress bar, under the name by which the commands of this package know it."""

from replay.commands.progress import progress

__all__ = ["progress"]
