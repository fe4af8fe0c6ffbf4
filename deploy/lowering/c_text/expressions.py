"""Expressions with the parentheses that C needs, and those that compilers ask for.

TVM puts each operation in parentheses. Taking the needless ones off leaves the tree of operations
as it is: what C would group otherwise keeps its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from entrain.deploy.lowering.c_text.tokens import is_name, tokens_of

_TYPES = {
    *("int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t"),
    *("bool", "float", "double", "int", "char", "void"),
}
_LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", ">", "<=", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
_LEVEL = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators}
_UNARY = len(_LEVELS)
_POSTFIX = _UNARY + 1
_CHOICE = -1
_ARITHMETIC = {"+", "-", "*", "/", "%"}


@dataclass(frozen=True)
class Expression:
    """Text of an expression, and how tightly its outermost operation binds."""

    text: str
    level: int
    operator: str = ""
    operands: tuple[str, ...] = ()

    def within(self, *, needed: bool) -> str:
        """The text, in parentheses if they are needed."""
        return f"({self.text})" if needed else self.text


def without_needless_parentheses(line: str) -> str:
    """A line of C; one that is no declaration, assignment or condition stays as it is."""
    head = line.lstrip(" ")
    if not head.endswith((";", "{")) or head.startswith(("for ", "static ", "#", "/*", "*")):
        return line
    indentation = line[: len(line) - len(head)]
    try:
        return indentation + _statement(head)
    except SyntaxError:
        return line


def _statement(text: str) -> str:
    tokens = tokens_of(text)
    if tokens[0] == "if" and tokens[-1] == "{":
        parser = _Parser(tokens[2:-2])
        return f"if ({parser.whole().text}) {{"
    if tokens[-1] != ";" or "=" not in tokens:
        raise SyntaxError(text)
    place = tokens.index("=")
    target, value = tokens[:place], _Parser(tokens[place + 1 : -1]).whole()
    if len(target) > 1 and target[0] in _TYPES:
        return f"{target[0]} {' '.join(target[1:])} = {value.text};"
    left = _Parser(target).whole().text
    if value.operator in _ARITHMETIC and value.operands[0] == left:
        return f"{left} {value.operator}= {value.operands[1]};"
    return f"{left} = {value.text};"


class _Parser:
    """Reads an expression from its tokens, and writes it again on the way back."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def whole(self) -> Expression:
        """All of the tokens as one expression; SyntaxError if they are none."""
        found = self._choice()
        if self._at != len(self._tokens):
            raise SyntaxError(" ".join(self._tokens))
        return found

    def _next(self, ahead: int = 0) -> str:
        place = self._at + ahead
        return self._tokens[place] if place < len(self._tokens) else ""

    def _take(self, expected: str = "") -> str:
        token = self._next()
        if not token or (expected and token != expected):
            raise SyntaxError(" ".join(self._tokens))
        self._at += 1
        return token

    def _choice(self) -> Expression:
        condition = self._binary(0)
        if self._next() != "?":
            return condition
        self._take("?")
        first = self._choice()
        self._take(":")
        second = self._choice()
        parts = [each.within(needed=each.level == _CHOICE) for each in (condition, first, second)]
        return Expression(f"{parts[0]} ? {parts[1]} : {parts[2]}", _CHOICE)

    def _binary(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while self._next() in _LEVELS[level]:
            operator = self._take()
            left = _joined(left, operator, self._binary(level + 1))
        return left

    def _unary(self) -> Expression:
        cast = self._cast()
        if not cast and self._next() not in {"-", "!", "~", "*", "&", "+"}:
            return self._postfix()
        operator = cast or self._take()
        operand = self._unary()
        doubled = not cast and operand.text[0] == operator
        inner = operand.within(needed=operand.level < _UNARY or doubled)
        return Expression(f"{operator}{inner}", _UNARY, operator if operator == "!" else "")

    def _cast(self) -> str:
        """A type in parentheses, if one is next."""
        words = []
        ahead = 1
        while self._next() == "(" and (self._next(ahead) in {*_TYPES, "const", "*"}):
            words.append(self._next(ahead))
            ahead += 1
        if not words or self._next(ahead) != ")":
            return ""
        self._at += ahead + 1
        stars = words.count("*")
        return f"({' '.join(words[: len(words) - stars])}{' ' * bool(stars)}{'*' * stars})"

    def _postfix(self) -> Expression:
        token = self._take()
        if token == "(":
            found = self._choice()
            self._take(")")
        elif is_name(token) or token[0].isdigit():
            found = Expression(token, _POSTFIX)
        else:
            raise SyntaxError(" ".join(self._tokens))
        while self._next() in {"(", "["}:
            closing = {"(": ")", "[": "]"}[opening := self._take()]
            inner = []
            while self._next() != closing:
                inner.append(self._choice().text)
                if self._next() != closing:
                    self._take(",")
            self._take(closing)
            called = found.within(needed=found.level < _POSTFIX)
            found = Expression(f"{called}{opening}{', '.join(inner)}{closing}", _POSTFIX)
        return found


def _joined(left: Expression, operator: str, right: Expression) -> Expression:
    level = _LEVEL[operator]
    first = left.within(needed=left.level < level or _confusing(operator, left))
    second = right.within(needed=right.level <= level or _confusing(operator, right))
    return Expression(f"{first} {operator} {second}", level, operator, (first, right.text))


def _confusing(operator: str, operand: Expression) -> bool:
    """Whether people, and gcc with -Wall, want parentheses although C does not need them."""
    inner = operand.operator
    compared = {*_LEVELS[5], *_LEVELS[6]}
    if not inner or (inner == operator and inner not in compared):
        return False
    return operator not in _ARITHMETIC and not (
        (operator in compared and inner in _ARITHMETIC)
        or (operator in {"&&", "||"} and inner in _ARITHMETIC | compared | {"!"})
    )
