"""The settings of one block as a C++ header, ``instance.hpp``, for the sources in ``vitis``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from entrain.deploy.arithmetic import Quotient, RectifiedCoupling
from entrain.deploy.errors import UsageError
from entrain.fpga.reference import LONGEST, OscillatorBlock, SettlingCore, SoftmaxBlock

MOST_STEPS = 255  # are counted in 8 bits


@dataclass(frozen=True)
class Instance:
    """One block with its sizes and settings.

    Attributes:
        top: the top function; ``fpga/vitis`` has a header, a source and a testbench of this name.
        header: the text of ``instance.hpp``.
    """

    top: str
    header: str


def settling_core_instance(core: SettlingCore) -> Instance:
    """The settling core.

    Raises:
        UsageError: the dynamics may take more steps than are counted.
    """
    tokens, components = core.anchors.shape
    scheme = "entrain::ClosedForm"
    if core.dynamics is not None:
        most, tolerance = core.dynamics.most_steps, core.dynamics.tolerance
        if not 0 <= most <= MOST_STEPS:
            raise UsageError(
                f"dynamics of up to {most} steps", remedy=f"the block counts {MOST_STEPS}"
            )
        scheme = f"entrain::Dynamics</*MOST_STEPS*/ {most}, /*TOLERANCE*/ {tolerance}>"
    return _instance(
        "settling_core",
        _size("T", tokens),
        _size("D_OSC", components),
        f"constexpr int ROUNDING = {core.rounding}; // a field of no larger component is weak",
        f"using Scheme = {scheme};",
        f"using Division = {_division(core.quotient)};",
    )


def oscillator_instance(block: OscillatorBlock, d_head: int, d_value: int) -> Instance:
    """Oscillator attention.

    Args:
        block: its settings and anchors.
        d_head: components of a query.
        d_value: of a value.

    Raises:
        UsageError: too many tokens, or a bias that is not epsilon times the sum of the anchors,
            which is how the block makes it.
    """
    tokens, components = block.anchors.shape
    _check_tokens(tokens)
    total, read_out = block.total, block.read_out
    if not np.array_equal(block.bias, total.epsilon * block.anchors.sum(axis=0, dtype=np.int64)):
        raise UsageError(
            "the bias of the fields is not epsilon times the sum of the anchors",
            remedy="the block makes it of the anchors that it is given: a bias of its own is none",
        )
    if isinstance(block.coupling, RectifiedCoupling):
        coupling = f"RectifiedCoupling</*SHIFT*/ {block.coupling.shift}, "
    else:
        coupling = "SeparableCoupling<"
    return _instance(
        "oscillator_attention",
        _size("T", tokens),
        _size("D_OSC", components),
        _size("D_HEAD", d_head),
        _size("D_VALUE", d_value),
        f"using Coupling = entrain::{coupling}/*BITS*/ {block.coupling.bits}>;",
        f"using Total = entrain::FieldSum</*LIFT*/ {total.lift}, /*EPSILON*/ {total.epsilon}>;",
        f"using Division = {_division(read_out.quotient)};",
        f"using ReadOut = entrain::FactorisedReadOut</*MOMENT_SHIFT*/ {read_out.moment_shift},",
        f"    /*VALUE_FACTOR*/ {read_out.value_factor}, /*SUM_SHIFT*/ {read_out.sum_shift},",
        f"    /*TOKENS*/ {read_out.tokens}, Division>;",
        _zero_point(block.zero_point),
    )


def softmax_instance(block: SoftmaxBlock, tokens: int, d_head: int, d_value: int) -> Instance:
    """Softmax attention.

    Args:
        block: its settings and table.
        tokens: keys.
        d_head: components of a query.
        d_value: of a value.

    Raises:
        UsageError: too many tokens.
    """
    _check_tokens(tokens)
    exponential = block.softmax.exponential
    return _instance(
        "softmax_attention",
        _size("T", tokens),
        _size("D_HEAD", d_head),
        _size("D_VALUE", d_value),
        f"constexpr int ENTRIES = {exponential.table.size}; // of the table of exponentials",
        f"constexpr int MULTIPLIER = {exponential.multiplier}; // of a score, in 2^-16",
        f"using Division = {_division(block.softmax.quotient)};",
        _zero_point(block.zero_point),
    )


_SIZES = {
    "T": "tokens",
    "D_OSC": "components of an anchor",
    "D_HEAD": "components of a query",
    "D_VALUE": "components of a value",
}


def _size(name: str, size: int) -> str:
    return f"constexpr int {name} = {size}; // {_SIZES[name]}"


def _zero_point(zero_point: int) -> str:
    return f"constexpr int ZERO_POINT = {zero_point}; // of the contexts"


def _division(quotient: Quotient) -> str:
    return (
        f"entrain::Quotient</*MULTIPLIER*/ {quotient.multiplier}, /*DROP*/ {quotient.drop}, "
        f"/*SHIFT*/ {quotient.shift}, /*LEAST*/ {quotient.least}>"
    )


def _check_tokens(tokens: int) -> None:
    if not 1 <= tokens <= LONGEST:
        raise UsageError(f"{tokens} tokens", remedy=f"the blocks take 1 to {LONGEST}")


def _instance(top: str, *settings: str) -> Instance:
    lines = [
        "// The settings of one block, written by entrain.fpga.simulators.vitis_instance.",
        "#pragma once",
        "",
        f'#include "{top}.hpp"',
        "",
        "namespace instance {",
        "",
        *settings,
        "",
        "} // namespace instance",
        "",
    ]
    return Instance(top, "\n".join(lines))
