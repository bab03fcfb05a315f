"""Constraints between swept parameters: `tail_tokens < trigger.tokens`. Nothing of them is run as Python."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from replay.errors import ConfigError

_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne}
_REACHES: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


@dataclass(frozen=True, slots=True)
class Constraint:
    """A comparison that a setting must meet."""

    text: str

    def __post_init__(self) -> None:
        """Raises ConfigError for what is no comparison of parameters and numbers."""
        tree = self._tree()
        if not isinstance(tree, ast.Compare) or not all(type(op) in _COMPARE for op in tree.ops):
            raise ConfigError("--where", self.text, "expected a comparison, such as tail_tokens < trigger.tokens")

    def holds(self, setting: Mapping[str, Any]) -> bool:
        """Whether a setting meets it. Raises ConfigError for a name that is no swept parameter."""
        tree = self._tree()
        assert isinstance(tree, ast.Compare)  # noqa: S101 - __post_init__ has seen to it
        sides = [self._value(side, setting) for side in (tree.left, *tree.comparators)]
        try:
            return all(_COMPARE[type(op)](a, b) for op, a, b in zip(tree.ops, sides, sides[1:], strict=False))
        except TypeError as error:
            raise ConfigError("--where", self.text, str(error)) from error

    def _tree(self) -> ast.expr:
        try:
            return ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError):
            raise ConfigError("--where", self.text, "is no comparison") from None

    def _value(self, node: ast.expr, setting: Mapping[str, Any]) -> Any:
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str)):
            return node.value
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._named(ast.unparse(node), setting)
        if isinstance(node, ast.BinOp) and type(node.op) in _REACHES:
            return self._reached(node, setting)
        raise ConfigError("--where", self.text, f"{ast.unparse(node)} is neither a parameter nor a number")

    def _reached(self, node: ast.BinOp, setting: Mapping[str, Any]) -> Any:
        try:
            return _REACHES[type(node.op)](self._value(node.left, setting), self._value(node.right, setting))
        except (TypeError, ArithmeticError) as error:
            raise ConfigError("--where", self.text, str(error)) from error

    def _named(self, name: str, setting: Mapping[str, Any]) -> Any:
        if name not in setting:
            raise ConfigError("--where", self.text, f"{name} is not swept; swept are {', '.join(setting)}")
        return setting[name]
