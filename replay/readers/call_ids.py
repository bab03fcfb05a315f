"""Tool-call ids that are unique within a log, for formats whose ids can come back in a later run."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class CallIds:
    """Gives every call of a log an id of its own and finds that id again for its result.

    The first call with a native id keeps it. A later one becomes `scope/id`, then `scope/id#2` and so on,
    where the scope is whatever the format keys its calls by (a run, or nothing). An empty id stays empty:
    such a call cannot be paired.
    """

    renamed: dict[str, str] = field(default_factory=dict)
    """Log id to native id, for the calls that had to be renamed."""
    _taken: set[str] = field(default_factory=set)
    _current: dict[tuple[str, str], str] = field(default_factory=dict)
    _latest: dict[str, str] = field(default_factory=dict)

    def call(self, native: str, scope: str = "") -> str:
        """The log id of a new call."""
        if not native:
            return ""
        own = native if native not in self._taken else self._fresh(native, scope)
        self._taken.add(own)
        self._current[scope, native] = self._latest[native] = own
        return own

    def result(self, native: str, scope: str = "") -> str:
        """The log id of the call that a result answers; the native id where no such call was seen."""
        return self._current.get((scope, native)) or self._latest.get(native, native)

    def known(self, native: str) -> bool:
        """Whether a call with this native id was seen."""
        return native in self._latest

    def _fresh(self, native: str, scope: str) -> str:
        base = f"{scope}/{native}" if scope else native
        own, number = base, 1
        while own in self._taken:
            number += 1
            own = f"{base}#{number}"
        self.renamed[own] = native
        return own
