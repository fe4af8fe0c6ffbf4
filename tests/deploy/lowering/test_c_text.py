"""Generated C is laid out for people and computes what it did before."""

from __future__ import annotations

import random
import re
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entrain.deploy.lowering.c_text import readable, wrapped
from entrain.deploy.lowering.c_text.expressions import without_needless_parentheses
from entrain.deploy.lowering.c_text.names import with_plain_names
from entrain.deploy.lowering.host import FLAGS

PRINTED = """\
static NOINLINE void layer_x(const int8_t *restrict x_in, int8_t *restrict output) {
  for (int32_t i1 = 0; i1 < 7; ++i1) {
    int32_t sum_5[1];
    sum_5[0] = 0;
    int32_t cse_v1 = (i1 * 16);
    for (int32_t ax0 = 0; ax0 < 16; ++ax0) {
      sum_5[0] = (sum_5[0] + ((int32_t)x_in[(cse_v1 + ax0)]));
    }
    for (int32_t ax0_1 = 0; ax0_1 < 16; ++ax0_1) {
      int32_t v_ = ((int32_t)x_in[(cse_v1 + ax0_1)]) - (sum_5[0] - 3);
      if ((v_ < 3) && ((i1 + ax0_1) < 9)) {
        output[(cse_v1 + ax0_1)] = ((int8_t)entrain_clamp(v_, (-128), 127));
      }
    }
  }
}
"""

READABLE = """\
static NOINLINE void layer_x(const int8_t *restrict x_in, int8_t *restrict output) {
    for (int32_t i = 0; i < 7; ++i) {
        int32_t sum[1];
        sum[0] = 0;
        int32_t at = i * 16;
        for (int32_t j = 0; j < 16; ++j) {
            sum[0] += (int32_t)x_in[at + j];
        }
        for (int32_t j = 0; j < 16; ++j) {
            int32_t value = (int32_t)x_in[at + j] - (sum[0] - 3);
            if (value < 3 && i + j < 9) {
                output[at + j] = (int8_t)entrain_clamp(value, -128, 127);
            }
        }
    }
}
"""


def test_a_function_for_people():
    assert readable(PRINTED) == READABLE


@pytest.mark.parametrize(
    ("printed", "plain"),
    [
        ("x = (a - (b - c));", "x = a - (b - c);"),
        ("x = ((a - b) - c);", "x = a - b - c;"),
        ("x = (x - (b - c));", "x -= b - c;"),
        ("x = (b + x);", "x = b + x;"),
        ("x = ((a + b) >> 3);", "x = (a + b) >> 3;"),
        ("x = ((a & 3) + (b << 2));", "x = (a & 3) + (b << 2);"),
        ("x = (-(-a));", "x = -(-a);"),
        ("x = (((int64_t)(a + b)) * ((int64_t)c));", "x = (int64_t)(a + b) * (int64_t)c;"),
        ("x = ((a) > (b) ? (a) : ((b) > (c) ? (b) : (c)));", "x = a > b ? a : (b > c ? b : c);"),
        ("if ((a || (b && c))) {", "if (a || (b && c)) {"),
        ("x = (((int8_t *)y)[(a + 1)]);", "x = ((int8_t *)y)[a + 1];"),
        ("(void)unused;", "(void)unused;"),
        ("x = (a b);", "x = (a b);"),
    ],
)
def test_parentheses(printed, plain):
    assert without_needless_parentheses(f"  {printed}") == f"  {plain}"


def expression(choose: random.Random, depth: int) -> str:
    """As TVM prints one: everything in parentheses."""
    if depth == 0:
        return choose.choice(["a", "b", "c", "7", "(-3)", "f(a, (b + 1))"])
    kind = choose.random()
    first, second = (expression(choose, depth - 1) for _ in range(2))
    if kind < 0.1:
        return f"({first} ? {second} : {expression(choose, 0)})"
    if kind < 0.25:
        return f"({choose.choice(['-', '!', '~', '(int64_t)', '(int16_t)'])}{first})"
    operators = ["+", "-", "*", "&", "|", "^", "<", "<=", "==", "!=", "&&", "||", "/", "%", ">>"]
    operator = choose.choice(operators)
    if operator in {"/", "%"}:
        return f"({first} {operator} (({second} & 7) + 1))"
    if operator == ">>":
        return f"({first} >> ({second} & 3))"
    return f"({first} {operator} {second})"


def test_no_parenthesis_that_matters_is_taken_off(tmp_path):
    """Of 300 expressions, by what a C compiler makes of both forms."""
    choose = random.Random(0)
    checks = []
    for number in range(300):
        full = f"x = {expression(choose, choose.randint(1, 4))};"
        plain = without_needless_parentheses(full)
        values = [text.removeprefix("x = ").removesuffix(";") for text in (full, plain)]
        assert plain.count("(") <= full.count("(")
        checks.append(f"    if ((int64_t)({values[0]}) != (int64_t)({values[1]})) return {number};")
    source = "\n".join(
        [
            "#include <stdint.h>",
            "static int64_t f(int64_t x, int64_t y) { return x * 3 - y; }",
            "static int different(int64_t a, int64_t b, int64_t c) {",
            *checks,
            "    return -1;",
            "}",
            "int main(void) {",
            "    for (int64_t a = -4; a < 5; a += 3)",
            "        for (int64_t b = -5; b < 9; b += 4)",
            "            for (int64_t c = 0; c < 7; c += 5)",
            "                if (different(a, b, c) >= 0) return 1;",
            "    return 0;",
            "}",
        ]
    )
    (tmp_path / "both.c").write_text(source)
    subprocess.run(["cc", "-w", "-fwrapv", "both.c", "-o", "both"], cwd=tmp_path, check=True)
    subprocess.run([tmp_path / "both"], check=True)


def test_compilers_ask_for_no_more_parentheses(tmp_path):
    choose = random.Random(1)
    lines = [
        without_needless_parentheses(f"x = (x + {expression(choose, 3)});") for _ in range(100)
    ]
    text = "\n".join(
        [
            "#include <stdint.h>",
            "int64_t g(int64_t a, int64_t b, int64_t c);",
            "static int64_t f(int64_t x, int64_t y) { return x * 3 - y; }",
            "int64_t g(int64_t a, int64_t b, int64_t c) {",
            "    int64_t x = 0;",
            *lines,
            "    return x;",
            "}",
        ]
    )
    (tmp_path / "plain.c").write_text(text)
    subprocess.run(["cc", "-Werror=parentheses", "-c", "plain.c"], cwd=tmp_path, check=True)
    assert "-Wall" in FLAGS


def test_names_that_a_function_has_already_are_left_to_it():
    text = "void f(const int8_t *i, int8_t *at) {\n  for (int32_t i1 = 0; i1 < 7; ++i1) {\n"
    text += "    int32_t cse_v1 = (i1 * 2);\n    at[cse_v1] = i[i1];\n  }\n}\n"
    named = with_plain_names(text)
    assert "for (int32_t j = 0; j < 7; ++j)" in named
    assert "at[at_2] = i[j];" in named


WORDS = st.sampled_from(
    ["name", "a_longer_name", "f(x, y)", "table[i + j]", "(int32_t)z", "-12", "g(h(k), 3)"]
)
OPERATORS = st.sampled_from([" + ", " - ", " * ", ", ", " ? ", " : ", " && ", " >> "])


@given(st.lists(st.tuples(WORDS, OPERATORS), min_size=1, max_size=60), st.integers(0, 12))
def test_wrapped_lines_hold_the_same_words(parts, depth):
    line = "  " * depth + "x = f(" + "".join(a + b for a, b in parts) + "1);"
    lines = wrapped(line).split("\n")
    assert re.sub(r"\s", "", "".join(lines)) == re.sub(r"\s", "", line)
    assert all(len(each) <= 100 for each in lines)
    assert len(lines) == 1 or len(line) > 100
    assert all(each.startswith("  " * depth) for each in lines)


def test_a_chain_of_shifts_is_broken_like_any_other():
    line = " " * 20 + "x = f(name >> " + "a_longer_name >> " * 4 + "1);"
    assert all(len(each) <= 100 for each in wrapped(line).split("\n"))


def test_comments_directives_and_strings_stay_as_they_are():
    text = "\n".join(f"{head}{', x' * 60}" for head in ("/* ", " * ", "#define A ", 'puts("'))
    assert wrapped(text) == text
