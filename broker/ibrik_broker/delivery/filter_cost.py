"""What a compiled filter may cost: read off its syntax tree, before anything is evaluated.

The run time of CEL bounds how often loops turn, not what one turn costs: comparing two long lists
ten thousand times takes an hour. So every operation here sees every byte of a message at most once:
the body of a loop may name its own variable only, and a loop goes over a part of the message only.
Regular expressions run in linear time, but with a factor that counted repetition makes large.

`filters` calls this. The tree is a `cel.expr.CheckedExpr` (protocol buffers); the numbers below are
those of its published fields.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_OPERATIONS = 32
"""Comparisons, calls, loops, and parts of lists that are no literals; and, or, not are free."""
MAX_PATTERNS = 2
MAX_PATTERN_CHARACTERS = 128
MAX_REPETITION = 64
"""All counted repetition of a pattern multiplied."""

_FREE = frozenset({"_&&_", "_||_", "!_", "_?_:_", "@not_strictly_false", "-_", "_[_]"})
_LITERAL_ARGUMENT = frozenset({"contains", "matches"})
_COUNTED = re.compile(r"\{[0-9]*,?[0-9]*\}")

_ANY_VALUE, _CHECKED_EXPR = 2, 4
_CONST, _IDENT, _SELECT, _CALL, _LIST, _STRUCT, _LOOP = 3, 4, 5, 6, 7, 8, 9
_IDENT_NAME = _SELECT_OPERAND = _LIST_ELEMENT = 1
_CALL_TARGET, _CALL_FUNCTION, _CALL_ARGUMENT = 1, 2, 3
_STRUCT_ENTRY, _ENTRY_KEY, _ENTRY_VALUE = 2, 3, 4
_LOOP_VARIABLE, _LOOP_RANGE, _LOOP_RESULT, _LOOP_START, _LOOP_SECOND = 1, 2, 3, 4, 8
_LOOP_BODY = (5, 6, 7)
_CONST_STRING = 6


class TooCostly(ValueError):
    """The expression is fine CEL, and could take long; the message says what to change."""


def names_in(serialized: bytes) -> frozenset[str]:
    """The variables that an expression names; raises TooCostly."""
    checked = _part(serialized, _ANY_VALUE)
    tree = _Tree()
    tree.visit(_part(checked, _CHECKED_EXPR), None)
    return frozenset(tree.names)


@dataclass(slots=True)
class _Tree:
    """One walk over a tree."""

    names: set[str] = field(default_factory=set)
    operations: int = 0
    patterns: int = 0

    def visit(self, node: bytes, scope: frozenset[str] | None) -> None:
        """`scope` holds what may be named inside a loop; None outside of loops."""
        for name in _parts(node, _IDENT):
            self._visit_name(_text(name, _IDENT_NAME), scope)
        for select in _parts(node, _SELECT):
            self.visit(_part(select, _SELECT_OPERAND), scope)
        for call in _parts(node, _CALL):
            self._visit_call(call, scope)
        for listed in _parts(node, _LIST):
            for element in _parts(listed, _LIST_ELEMENT):
                self._visit_element(element, scope)
        for built in _parts(node, _STRUCT):
            for entry in _parts(built, _STRUCT_ENTRY):
                self._visit_element(_part(entry, _ENTRY_KEY), scope)
                self._visit_element(_part(entry, _ENTRY_VALUE), scope)
        for loop in _parts(node, _LOOP):
            self._visit_loop(loop, scope)

    def _visit_name(self, name: str, scope: frozenset[str] | None) -> None:
        name = name.removeprefix(".")
        if scope is not None and name not in scope:
            raise TooCostly(
                f"'{name}' stands inside a loop, where only the loop's own variable and literals "
                "may: compare with a literal, or move it out of the loop"
            )
        self.names.add(name)

    def _visit_element(self, element: bytes, scope: frozenset[str] | None) -> None:
        if not _has(element, _CONST):
            self._count()  # who compares the list compares this once more
        self.visit(element, scope)

    def _visit_call(self, call: bytes, scope: frozenset[str] | None) -> None:
        function = _text(call, _CALL_FUNCTION)
        arguments = [*_parts(call, _CALL_TARGET), *_parts(call, _CALL_ARGUMENT)]
        if function not in _FREE:
            self._count()
        if function in _LITERAL_ARGUMENT:
            self._check_literal(function, arguments[-1])
        for argument in arguments:
            self.visit(argument, scope)

    def _visit_loop(self, loop: bytes, scope: frozenset[str] | None) -> None:
        self._count()
        if _has(_part(loop, _LOOP_START), _LIST):
            raise TooCostly("map() and filter() are not served: use exists() or all()")
        if not _is_path(_part(loop, _LOOP_RANGE)):
            raise TooCostly("a loop goes over a part of the message, as in data.items.exists(…)")
        self.visit(_part(loop, _LOOP_RANGE), scope)
        own = {
            _text(loop, number)
            for number in (_LOOP_VARIABLE, _LOOP_RESULT, _LOOP_SECOND)
            if _has(loop, number)
        }
        for number in _LOOP_BODY:
            self.visit(_part(loop, number), frozenset(own))

    def _count(self) -> None:
        self.operations += 1
        if self.operations > MAX_OPERATIONS:
            raise TooCostly(
                f"it has more than {MAX_OPERATIONS} comparisons and calls: use key in "
                "['a', 'b'] for many values, or several subscriptions"
            )

    def _check_literal(self, function: str, argument: bytes) -> None:
        literal = _literal(argument)
        if literal is None:
            raise TooCostly(f"{function}() needs a literal text in quotes")
        if function == "matches":
            self.patterns += 1
            if self.patterns > MAX_PATTERNS:
                raise TooCostly(f"it has more than {MAX_PATTERNS} patterns: join them with |")
            _check_pattern(literal)


def _check_pattern(pattern: str) -> None:
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise TooCostly(f"a pattern has at most {MAX_PATTERN_CHARACTERS} characters")
    if re.search(r"\\[pP]", pattern):
        raise TooCostly(r"\p in a pattern is not served: write the characters as [a-zà-ÿ]")
    counts = [max(map(int, re.findall("[0-9]+", c) or ["1"])) for c in _COUNTED.findall(pattern)]
    if math.prod(counts) > MAX_REPETITION:
        raise TooCostly(
            f"counted repetition in a pattern is at most {MAX_REPETITION}, all of it multiplied: "
            "use * or +"
        )


def _is_path(node: bytes) -> bool:
    """Whether it is `name`, `name.field`, `name["field"]` and so on: a part, nothing built."""
    if _has(node, _IDENT):
        return True
    for select in _parts(node, _SELECT):
        return _is_path(_part(select, _SELECT_OPERAND))
    for call in _parts(node, _CALL):
        arguments = list(_parts(call, _CALL_ARGUMENT))
        return (
            _text(call, _CALL_FUNCTION) == "_[_]"
            and _has(arguments[1], _CONST)
            and _is_path(arguments[0])
        )
    return False


def _literal(node: bytes) -> str | None:
    for constant in _parts(node, _CONST):
        for text in _parts(constant, _CONST_STRING):
            return text.decode()
    return None


def _has(message: bytes, number: int) -> bool:
    return next(_parts(message, number), None) is not None  # it may be there and empty


def _text(message: bytes, number: int) -> str:
    return _part(message, number).decode()


def _part(message: bytes, number: int) -> bytes:
    """The field of this number; empty when it is not there, as everywhere in protocol buffers."""
    return next(_parts(message, number), b"")


def _parts(message: bytes, number: int) -> Iterator[bytes]:
    """The fields of this number that have a length: messages and texts. Numbers are skipped."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        match tag & 7:
            case 0:
                _, at = _varint(message, at)
            case 1:
                at += 8
            case 5:
                at += 4
            case kind:
                assert kind == 2, "the compiler wrote this"
                size, at = _varint(message, at)
                if tag >> 3 == number:
                    yield message[at : at + size]
                at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
