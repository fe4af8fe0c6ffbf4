"""What the device computes, known before anything is trained and without importing torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entrain.deploy.errors import UsageError

if TYPE_CHECKING:
    from torch import nn

    from entrain.models.attention import AttentionConfig

# Each mechanism that has an integer form, and its class in `attention/`.
FORMS = {
    "softmax": "QuantizedSoftmax",
    "softmax-base2": "QuantizedBase2Softmax",
    "oscillator": "QuantizedOscillator",
    "linear": "QuantizedLinear",
    "lowrank": "QuantizedLinear",
    "uniform": "QuantizedUniform",
}
LARGEST_EXPONENT = 8


def require_deployable(attention: AttentionConfig) -> None:
    """Make sure that the device can compute a mechanism.

    Raises:
        UsageError: it has no integer form, or an exponent that the device does not compute.
    """
    if attention.mechanism not in FORMS:
        raise UsageError(
            f"{attention.title} attention has no integer form: it is trained and compared in "
            "floating point only",
            remedy=f"the device computes: {', '.join(FORMS)}",
        )
    exponent = attention.exponent
    if exponent != int(exponent) or exponent > LARGEST_EXPONENT:
        raise UsageError(
            f"the device computes whole exponents p from 1 to {LARGEST_EXPONENT}, not "
            f"{exponent:g} ({attention.title})",
            remedy="train with such a p for the device",
        )


def quantized_form(attention: AttentionConfig) -> type[nn.Module]:
    """The class of a mechanism's quantized form.

    Raises:
        UsageError: the device cannot compute it.
    """
    from entrain.deploy.quantization import attention as forms

    require_deployable(attention)
    form: type[nn.Module] = getattr(forms, FORMS[attention.mechanism])
    return form
