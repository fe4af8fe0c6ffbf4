"""A network's attention in an FPGA's block: which block that is, what goes there, what comes back.

The block computes one head, a sequence after the other; heads differ in their anchors only, which
go with each sequence. Its integers are those of the lowered network's operator: no bit changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from entrain.deploy.arithmetic import (
    Exponential,
    FactorisedReadOut,
    RectifiedCoupling,
    SeparableCoupling,
    Softmax,
)
from entrain.deploy.device.client import Client
from entrain.deploy.errors import DeviceMissing, UnsupportedOperator
from entrain.deploy.lowering.artifact import LoweredModel
from entrain.deploy.lowering.graph import Array, Layer, LoweredGraph
from entrain.deploy.lowering.operators.heads import AttentionOperator, arranged, elements
from entrain.deploy.lowering.operators.oscillator_attention import OscillatorAttention
from entrain.deploy.lowering.operators.softmax_attention import SoftmaxAttention
from entrain.deploy.lowering.tensors import one_of
from entrain.deploy.validation import Compared, compared_with
from entrain.fpga.bridge.shape import TASK, BlockShape, announced
from entrain.fpga.built import kept_module
from entrain.fpga.generation.attention import hardware_block
from entrain.fpga.reference import LONGEST, OscillatorBlock, SoftmaxBlock
from entrain.fpga.simulators.verilator import Module

HeadBlock = OscillatorBlock | SoftmaxBlock
LANES = (4, 2)  # products a cycle, the first that divides a vector's length


@dataclass(frozen=True, eq=False)
class Heads:
    """Queries, keys and values [heads, tokens, channels] as they are stored, 8 bits each."""

    queries: Array
    keys: Array
    values: Array


@dataclass(frozen=True, eq=False)
class Coprocessor:
    """An attention layer and the block that computes it.

    Attributes:
        layer: of the lowered network.
        heads: the specification of each head.
        shape: of the block.
    """

    layer: Layer
    heads: tuple[HeadBlock, ...]
    shape: BlockShape

    @property
    def operator(self) -> AttentionOperator:
        """The layer's operator."""
        return _attention(self.layer)

    @property
    def table(self) -> tuple[int, ...]:
        """What the block is given once: exponentials; nothing for oscillators."""
        block = self.heads[0]
        if isinstance(block, SoftmaxBlock):
            return tuple(int(word) for word in block.softmax.exponential.table)
        return ()

    def given(self, values: Mapping[str, Array]) -> Heads:
        """What the layer reads, of the network's values by name."""
        views = (self.operator.query, self.operator.key, self.operator.value)
        return Heads(*(elements(view, values[view.value.name]) for view in views))

    def written(self, contexts: Array) -> Array:
        """The layer's output, of contexts [heads, queries, d_value]."""
        operator = self.operator
        return arranged(contexts, operator.strides, operator.shape, operator.dtype)

    def inputs(self, given: Heads) -> list[bytes]:
        """What the block behind a serial line is sent, for each head."""
        return [
            b"".join(
                np.ascontiguousarray(part).tobytes()
                for part in (
                    *_anchors(block),
                    given.keys[head],
                    given.values[head],
                    given.queries[head],
                )
            )
            for head, block in enumerate(self.heads)
        ]

    def answer(self, given: Heads, ask: Callable[[bytes], bytes]) -> Array:
        """The layer's output as the block behind a serial line answers.

        Args:
            given: what the layer reads.
            ask: the block's answer to one input, such as :meth:`Client.classify`.
        """
        answers = [np.frombuffer(ask(one), np.int8) for one in self.inputs(given)]
        return self.written(np.stack(answers).reshape(len(answers), -1, self.shape.d_value))


def coprocessor(graph: LoweredGraph) -> Coprocessor:
    """The block for the network's attention.

    Raises:
        UnsupportedOperator: there is no attention as one operator, or more than one, or none that a
            block computes; the error says why.
    """
    layers = [
        layer for layer in graph.layers if isinstance(layer.expression.operator, AttentionOperator)
    ]
    if len(layers) != 1:
        raise UnsupportedOperator(
            f"the network has {len(layers)} attentions as one operator, and a block computes one",
            where=graph.name,
            remedy="choose a run with one layer of oscillator or softmax attention",
        )
    return _coprocessor(layers[0])


def _coprocessor(layer: Layer) -> Coprocessor:
    operator = _attention(layer)
    _check(layer, operator)
    constants = [node.operator.reference() for node in layer.expression.operands[3:]]
    heads, queries, d_head = operator.query.shape
    blocks: tuple[HeadBlock, ...]
    if isinstance(operator, OscillatorAttention):
        blocks = _oscillators(layer, operator, heads, *constants[:2])
        d_osc = constants[0].shape[2]
    elif isinstance(operator, SoftmaxAttention):
        exponential = Exponential(operator.multiplier, operator.reach, constants[0])
        softmax = Softmax(exponential, operator.quotient)
        blocks, d_osc = (SoftmaxBlock(softmax, operator.zero_point),) * heads, 0
    else:
        raise _unsupported(layer, f"{layer.title} has no block")
    tokens, d_value = operator.value.shape[1:]
    return Coprocessor(layer, blocks, BlockShape(tokens, queries, d_head, d_value, d_osc))


def _oscillators(
    layer: Layer, operator: OscillatorAttention, heads: int, anchors: Array, bias: Array
) -> tuple[OscillatorBlock, ...]:
    coupling, read_out = operator.coupling, operator.read_out
    if not isinstance(coupling, RectifiedCoupling | SeparableCoupling):
        raise _unsupported(layer, "a coupling that is kept in a table has no block")
    if not isinstance(read_out, FactorisedReadOut):
        raise _unsupported(layer, "the block's read-out is that of p = 1")
    every = np.broadcast_to(anchors, (heads, *anchors.shape[1:]))
    constant = np.broadcast_to(bias, (heads, *bias.shape[1:]))
    return tuple(
        OscillatorBlock(codes, h, coupling, operator.total, read_out, operator.zero_point)
        for codes, h in zip(every, constant, strict=True)
    )


def _check(layer: Layer, operator: AttentionOperator) -> None:
    """Whether a block reads and writes these values."""
    separable = isinstance(operator, OscillatorAttention) and isinstance(
        operator.coupling, SeparableCoupling
    )
    scored = "uint8" if separable else "int8"
    wanted = {
        "queries": (operator.query, scored),
        "keys": (operator.key, scored),
        "values": (operator.value, "int8"),
    }
    for name, (view, dtype) in wanted.items():
        if view.zero_point != 0:
            raise _unsupported(layer, f"the {name} have the zero point {view.zero_point}, not 0")
        if view.value.dtype != dtype:
            raise _unsupported(layer, f"the {name} are {view.value.dtype}, not {dtype}")
    if operator.dtype != "int8":
        raise _unsupported(layer, f"the contexts are {operator.dtype}, not int8")
    longest = max(operator.query.shape[1], operator.key.shape[1])
    if longest > LONGEST:
        raise _unsupported(layer, f"{longest} tokens, and a block takes {LONGEST}")


def _attention(layer: Layer) -> AttentionOperator:
    operator = layer.expression.operator
    if not isinstance(operator, AttentionOperator):
        raise LookupError(f"layer {layer.name} is no attention")
    return operator


def _unsupported(layer: Layer, why: str) -> UnsupportedOperator:
    return UnsupportedOperator(
        f"no block computes this attention: {why}",
        where=f"layer {layer.name}",
        remedy="run it on the microcontroller, or quantize queries, keys and values around 0",
    )


def _anchors(block: HeadBlock) -> tuple[Array, ...]:
    return (block.anchors.astype(np.int8),) if isinstance(block, OscillatorBlock) else ()


def hardware(chosen: Coprocessor, folder: Path) -> Module:
    """The block's Verilog, kept in ``folder``.

    Raises:
        ToolError: XLS is missing, or refuses the sources.
        UnsupportedOperator: vectors of an odd length.
    """
    shape = chosen.shape
    lanes = next((lanes for lanes in LANES if shape.d_head % lanes == 0), None)
    if lanes is None or shape.d_value % LANES[-1]:
        raise _unsupported(
            chosen.layer, f"vectors of {shape.d_head} and {shape.d_value} components"
        )
    block = hardware_block(
        chosen.heads[0],
        tokens=shape.tokens,
        queries=shape.queries,
        d_head=shape.d_head,
        d_value=shape.d_value,
        lanes=lanes,
    )
    return kept_module(block, folder)


def is_block(client: Client) -> bool:
    """Whether what answers is a block, not firmware."""
    return client.profile().task == TASK


def check_block(client: Client, module: Module, shape: BlockShape) -> None:
    """Make sure that the device holds this very block.

    Raises:
        DeviceMissing: it holds another.
        DeviceError: it does not answer.
    """
    answered, expected = client.profile().firmware, announced(module, shape)
    if answered != expected:
        raise DeviceMissing(
            f"the device holds {answered!r}, not {expected!r}",
            remedy="flash it with this run's block: entrain fpga flash",
        )


@dataclass(frozen=True)
class BlockRun:
    """What a block did.

    Attributes:
        queries: that it answered.
        cycles_per_query: of its clock (counted), loading the keys and values included.
    """

    queries: int
    cycles_per_query: float


def compare_block(
    client: Client, chosen: Coprocessor, model: LoweredModel, golden: Mapping[str, Array]
) -> tuple[Compared, BlockRun]:
    """The attention layer as the block computes it, for every golden inference; and its pace.

    Raises:
        DeviceError: the device does not answer.
    """
    name = chosen.layer.output.name
    record = next(layer for layer in model.layers if layer.name == name)
    answers = [
        chosen.answer(chosen.given(one_of(golden, index)), client.classify).tobytes()
        for index in range(len(golden[name]))
    ]
    compared = compared_with(record, answers, golden[name])
    queries = chosen.shape.queries
    cycles = client.infer(1, 0).cycles  # the last sequence once more
    return compared, BlockRun(len(answers) * len(chosen.heads) * queries, (cycles or 0) / queries)


def several(chosen: Coprocessor, values: Sequence[Mapping[str, Array]]) -> Heads:
    """What the layer reads in several inferences: [inferences, heads, tokens, channels]."""
    each = [chosen.given(one) for one in values]
    return Heads(
        np.stack([one.queries for one in each]),
        np.stack([one.keys for one in each]),
        np.stack([one.values for one in each]),
    )
