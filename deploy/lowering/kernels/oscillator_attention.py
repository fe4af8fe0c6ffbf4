"""Oscillator attention as a call of ``entrain_oscillator_attention``."""

from __future__ import annotations

import numpy as np

from entrain.deploy.arithmetic import (
    FactorisedReadOut,
    PlainReadOut,
    RectifiedCoupling,
    SeparableCoupling,
    TabulatedCoupling,
)
from entrain.deploy.lowering.graph import Array, Layer
from entrain.deploy.lowering.kernels.c_source import rounded_up
from entrain.deploy.lowering.kernels.contract import Kernel
from entrain.deploy.lowering.kernels.rows import (
    Fields,
    attention_call,
    quotient_fields,
    shared_fields,
)
from entrain.deploy.lowering.operators.oscillator_attention import OscillatorAttention

MVE_QUERIES = 4


def match_oscillator_attention(layer: Layer) -> Kernel | None:
    """The kernel of a layer that is oscillator attention."""
    operator = layer.expression.operator
    if not isinstance(operator, OscillatorAttention):
        return None
    constants = [node.operator.reference() for node in layer.expression.operands[3:]]
    anchors, bias, *table = constants
    d_osc = anchors.shape[2]
    arrays = [("anchors", laid_out(anchors)), ("bias", _even(bias.astype(np.int32)))]
    if isinstance(operator.read_out, FactorisedReadOut):
        sums = operator.read_out.anchor_sum(anchors).astype(np.int16)
        arrays.append(("anchor_sums", _even(sums)))
    arrays += [("table", entries) for entries in table]
    fields = {
        **shared_fields(operator),
        "d_osc": d_osc,
        **{name: name for name, _ in arrays},
        "shared": anchors.shape[0] == 1,
        **_coupling(operator.coupling),
        "lift": operator.total.lift,
        **_read_out(operator.read_out),
    }
    return Kernel(
        layer,
        "entrain_oscillator.h",
        attention_call("oscillator", fields),
        tuple(arrays),
        max(scratch_bytes(operator, d_osc).values()),
    )


def laid_out(anchors: Array) -> Array:
    """Anchors [heads, T, d_osc] as int16 [heads, d_osc / 2, T / 2, 2, 2].

    The last two axes are two components of two tokens: 32-bit words of two tokens, those of two
    components side by side. Tokens are padded to a multiple of 8, components to one of 2.
    """
    heads, tokens, components = anchors.shape
    padded = np.zeros((heads, rounded_up(tokens, 8), rounded_up(components, 2)), np.int16)
    padded[:, :tokens, :components] = anchors
    split = padded.reshape(heads, padded.shape[1] // 2, 2, padded.shape[2] // 2, 2)
    return np.ascontiguousarray(split.transpose(0, 3, 1, 4, 2))


def _even(components: Array) -> Array:
    """Components along the last axis, padded to an even number."""
    return np.pad(components, [(0, 0), (0, components.shape[1] % 2)])


def _coupling(
    coupling: RectifiedCoupling | TabulatedCoupling | SeparableCoupling,
) -> Fields:
    if isinstance(coupling, SeparableCoupling):
        return {"coupling": "ENTRAIN_SEPARABLE", "weight_bits": coupling.bits}
    fields: Fields = {"weight_bits": coupling.bits}
    if isinstance(coupling, RectifiedCoupling):
        return {
            **fields,
            "coupling": "ENTRAIN_RECTIFIED",
            "coupling_shift": coupling.shift,
        }
    fields |= {"multiplier": coupling.multiplier, "table_lift": coupling.lift}
    if coupling.rectified is None:
        return {**fields, "coupling": "ENTRAIN_TABULATED"}
    return {
        **fields,
        "coupling": "ENTRAIN_RECTIFIED_TABLE",
        "coupling_shift": coupling.rectified.shift,
    }


def _read_out(read_out: FactorisedReadOut | PlainReadOut) -> Fields:
    quotient = read_out.quotient
    fields = {
        "least": quotient.least,
        **quotient_fields(quotient),
    }
    if isinstance(read_out, PlainReadOut):
        return {
            **fields,
            "exponent": read_out.exponent,
            "one": read_out.one,
            "read_out_bits": read_out.bits,
        }
    return {
        **fields,
        "exponent": 1,
        "moment_shift": read_out.moment_shift,
        "value_factor": read_out.value_factor,
        "token_weight": read_out.tokens,
    }


def scratch_bytes(operator: OscillatorAttention, d_osc: int) -> dict[str, int]:
    """What each instruction set's kernel keeps: see the structures in its header."""
    keys, d_value = operator.value.shape[1:]
    d_head = operator.query.shape[2]
    components = rounded_up(d_osc, 2)
    separable = isinstance(operator.coupling, SeparableCoupling)
    factorised = isinstance(operator.read_out, FactorisedReadOut)
    return {
        "scalar": 4 * (2 * components + d_value)
        + 2 * (components + d_head)
        + (6 * components * d_head if separable else 0)
        + (2 * components * d_value if factorised else 4 * keys),
        "dsp": _dsp_bytes(keys, d_head, d_value, components, separable, factorised),
        "mve": _mve_bytes(keys, d_head, d_value, components, separable, factorised),
    }


def _dsp_bytes(
    keys: int, d_head: int, d_value: int, components: int, separable: bool, factorised: bool
) -> int:
    tokens, channels, values = rounded_up(keys, 2), rounded_up(d_head, 4), rounded_up(d_value, 4)
    shared = 6 * components * channels if separable else 2 * tokens * channels
    read_out = 4 * values * (1 + components // 2) if factorised else 2 * tokens * (values + 4)
    weights = 0 if separable and factorised else 4 * tokens
    return 16 * components + 4 * channels + weights + shared + read_out


def _mve_bytes(
    keys: int, d_head: int, d_value: int, components: int, separable: bool, factorised: bool
) -> int:
    lanes, channels, values = rounded_up(keys, 8), rounded_up(d_head, 8), rounded_up(d_value, 4)
    shared = 6 * components * channels if separable else 0
    weights = 0 if separable and factorised else 2 * MVE_QUERIES * lanes
    read_out = (4 + 2 * components) * values if factorised else 4 * lanes
    return 4 * (MVE_QUERIES + 1) * components + shared + weights + read_out
