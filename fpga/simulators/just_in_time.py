"""The DSLX functions on this machine, compiled by XLS as it would compile them to hardware.

Sizes are compile-time constants of a function, settings are its arguments: one compilation serves
all blocks of a shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from entrain.deploy.arithmetic import (
    FactorisedReadOut,
    FieldSum,
    IntArray,
    Quotient,
    RectifiedCoupling,
    SeparableCoupling,
)
from entrain.deploy.errors import ToolError
from entrain.fpga.reference import (
    Integers,
    OscillatorBlock,
    Settled,
    SettlingCore,
    SoftmaxBlock,
)

SOURCES = Path(str(files("entrain.fpga"))) / "dslx"

_IMPORTS = ("arithmetic", "attention", "core", "coupling", "read_out", "softmax")


def settled(core: SettlingCore, couplings: IntArray) -> Settled:
    """As ``core.settled(couplings)`` of couplings [queries, T].

    Raises:
        ToolError: XLS is missing, or refuses the sources.
    """
    tokens, components = core.anchors.shape
    sizes = [tokens, components]
    function = "settled"
    if core.dynamics is not None:
        function = "moved"
        sizes += [core.dynamics.most_steps, core.dynamics.tolerance]
    run = _compiled(
        f"core::{function}",
        tuple(sizes),
        f"u15[{tokens}], s8[{components}][{tokens}], s32, arithmetic::Quotient",
        f"(s16[{components}], u16[{tokens}], u4, u8)",
    )
    constants = [_array(core.anchors, 8), _bits(core.rounding, 32), _quotient(core.quotient)]
    answers = [run.run([_array(row, 15), *constants]) for row in couplings]
    states, weights, flags, steps = zip(*map(_elements, answers), strict=True)
    return Settled(
        np.array([_integers(z, 16) for z in states]),
        np.array([_integers(a) for a in weights]),
        np.array([_integer(f) for f in flags]),
        np.array([_integer(n) for n in steps]),
    )


def oscillator_contexts(
    block: OscillatorBlock, queries: IntArray, keys: IntArray, values: IntArray
) -> Integers:
    """As ``block.contexts(queries, keys, values)``; errors as :func:`settled`."""
    (tokens, components), d_head, d_value = block.anchors.shape, keys.shape[1], values.shape[1]
    separable = isinstance(block.coupling, SeparableCoupling)
    run = _compiled(
        f"attention::{'separable' if separable else 'relu'}_oscillator",
        (tokens, components, d_head, d_value),
        f"coupling::Coupling, read_out::ReadOut, s8[{components}][{tokens}], "
        f"s9[{d_head}], s9[{d_head}][{tokens}], s8[{d_value}][{tokens}]",
        f"s8[{d_value}]",
    )
    constants = [
        _coupling(block.coupling, block.total),
        _read_out(block.read_out, block.zero_point),
        _array(block.anchors, 8),
    ]
    operands = [_array(keys, 9), _array(values, 8)]
    return np.array([_integers(run.run([*constants, _array(q, 9), *operands]), 8) for q in queries])


def softmax_contexts(
    block: SoftmaxBlock, queries: IntArray, keys: IntArray, values: IntArray
) -> Integers:
    """As ``block.contexts(queries, keys, values)``; errors as :func:`settled`."""
    (tokens, d_head), d_value = keys.shape, values.shape[1]
    run = _compiled(
        "attention::softmax_attention",
        (tokens, d_head, d_value),
        f"softmax::Softmax, u15[softmax::ENTRIES], "
        f"s9[{d_head}], s9[{d_head}][{tokens}], s8[{d_value}][{tokens}]",
        f"s8[{d_value}]",
    )
    exponential = block.softmax.exponential
    settings = [
        _bits(exponential.multiplier, 32),
        _quotient(block.softmax.quotient),
        _bits(block.zero_point, 32),
    ]
    constants = [_tuple(settings), _array(exponential.table, 15)]
    operands = [_array(keys, 9), _array(values, 8)]
    return np.array([_integers(run.run([*constants, _array(q, 9), *operands]), 8) for q in queries])


@cache
def _compiled(function: str, sizes: tuple[int, ...], arguments: str, result: str) -> Any:
    """A function of the sources for these sizes, as something with ``run``."""
    xls = xls_module()
    names = [f"a{index}" for index in range(arguments.count(",") + 1)]
    parameters = ", ".join(
        f"{name}: {kind.strip()}" for name, kind in zip(names, arguments.split(","), strict=True)
    )
    constants = ", ".join(f"u32:{size}" for size in sizes)
    source = "\n".join(
        [
            *(f"import {name};" for name in _IMPORTS),
            f"fn top({parameters}) -> {result} {{ {function}<{constants}>({', '.join(names)}) }}",
        ]
    )
    try:
        ir = xls.convert_dslx_to_ir(source, "top.x", "top", additional_search_paths=[str(SOURCES)])
        package = xls.Package.parse_ir(ir)
        return package.get_function(xls.mangle_dslx_name("top", "top")).to_jit()
    except RuntimeError as error:
        raise ToolError(f"XLS refuses {function}<{constants}>: {error}") from error


def xls_module() -> Any:
    """XLS, imported where it is needed.

    Raises:
        ToolError: it is not installed.
    """
    try:
        import xls
    except ImportError as error:
        raise ToolError(
            "XLS is not installed", remedy="pip install 'entrain-edge[fpga]'"
        ) from error
    return xls


def _coupling(coupling: RectifiedCoupling | SeparableCoupling, total: FieldSum) -> Any:
    shift = coupling.shift if isinstance(coupling, RectifiedCoupling) else 0
    numbers = (shift, coupling.bits, total.lift, total.epsilon)
    return _tuple([_bits(number, 32) for number in numbers])


def _read_out(read_out: FactorisedReadOut, zero_point: int) -> Any:
    numbers = (
        read_out.moment_shift,
        read_out.value_factor,
        read_out.sum_shift,
        read_out.tokens,
    )
    settings = [_bits(number, 32) for number in numbers]
    return _tuple([*settings, _quotient(read_out.quotient), _bits(zero_point, 32)])


def _quotient(quotient: Quotient) -> Any:
    numbers = (quotient.drop, quotient.shift, quotient.least)
    return _tuple([_bits(quotient.multiplier, 15), *(_bits(number, 32) for number in numbers)])


def _bits(number: int, bits: int) -> Any:
    return xls_module().Value.make_ubits(bits, int(number) & (2**bits - 1))


def _array(numbers: IntArray, bits: int) -> Any:
    if np.ndim(numbers) == 0:
        return _bits(int(numbers), bits)
    return xls_module().Value.make_array([_array(row, bits) for row in numbers])


def _tuple(values: Sequence[Any]) -> Any:
    return xls_module().Value.make_tuple(list(values))


def _elements(value: Any) -> list[Any]:
    return [value.get_element(index) for index in range(value.get_element_count())]


def _integer(value: Any) -> int:
    return int(value.get_bits().to_uint64())


def _integers(value: Any, sign_bits: int = 0) -> list[int]:
    """The elements of an array, signed if it says of how many bits."""
    numbers = [_integer(element) for element in _elements(value)]
    if not sign_bits:
        return numbers
    return [n - (1 << sign_bits) if n >> (sign_bits - 1) else n for n in numbers]
