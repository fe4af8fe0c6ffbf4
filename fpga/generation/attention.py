"""The attention blocks as hardware, and their sequences as streams."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from entrain.deploy.arithmetic import IntArray, Quotient, RectifiedCoupling, SeparableCoupling
from entrain.deploy.arithmetic.exponential import ENTRIES
from entrain.deploy.errors import UsageError
from entrain.fpga.generation.verilog import Block, Memory, Port
from entrain.fpga.reference import Integers, OscillatorBlock, SoftmaxBlock
from entrain.fpga.simulators.packing import packed, unpacked
from entrain.fpga.simulators.verilator import Simulator

BYTE, SUM_BITS, MOMENT_BITS, DRIVE_BITS = 8, 32, 22, 24
STEP_BITS, EXPONENTIAL_BITS, DRIVE_KEPT = 16, 15, 15
MULTIPLIER_BITS = 16
LEAST_WORDS = 4  # of a memory whose words are read, added to and written back in turn

ANCHORS, VALUES = Port("anchors", "s8", BYTE), Port("values", "s8", BYTE)
CONTEXTS = Port("contexts", "s8", BYTE)


def hardware_block(
    block: OscillatorBlock | SoftmaxBlock,
    *,
    tokens: int,
    queries: int,
    d_head: int,
    d_value: int,
    lanes: int,
    value_lanes: int = 2,
) -> Block:
    """An attention block's DSLX proc.

    Args:
        block: what it computes.
        tokens: T, keys of a sequence.
        queries: of a sequence.
        d_head: components of a query.
        d_value: components of a value.
        lanes: products of scores a cycle, an even divisor of ``d_head``; no matter to a separable
            coupling, which has no scores.
        value_lanes: products of weights and values a cycle, an even divisor of ``d_value``: of
            softmax alone, whose values are weighed pair by pair.

    Raises:
        UsageError: lanes do not divide what they multiply, or a size that the block cannot have.
    """
    sizes = Sizes(tokens, queries, d_head, d_value, lanes, value_lanes)
    if isinstance(block, SoftmaxBlock):
        return _softmax(block, sizes)
    if isinstance(block.coupling, RectifiedCoupling):
        return _relu(block, block.coupling, sizes)
    return _separable(block, block.coupling, sizes)


@dataclass(frozen=True)
class Sizes:
    """Of an attention block, as :func:`hardware_block` has them."""

    tokens: int
    queries: int
    d_head: int
    d_value: int
    lanes: int
    value_lanes: int

    @property
    def scores_pace(self) -> int:
        """Cycles of a query's scores."""
        return self.tokens * self.d_head // self.lanes

    @property
    def divisions_pace(self) -> int:
        """Cycles of a query's divisions: four products each, and the last sum."""
        return 4 * self.d_value + 1

    def scored(self) -> tuple[Port, Port]:
        """Keys and queries, a word of all lanes a transfer.

        Raises:
            UsageError: the lanes do not divide them.
        """
        if self.lanes % 2 or self.d_head % self.lanes:
            raise UsageError(
                f"{self.lanes} lanes for d_head {self.d_head}",
                remedy="an even number that divides it: a DSP block multiplies two pairs of bytes",
            )
        word = f"s8[{self.lanes}]"
        return Port("keys", word, BYTE * self.lanes), Port("queries", word, BYTE * self.lanes)

    @property
    def keys(self) -> Memory:
        """Of the keys, a word of all lanes."""
        word = f"s8[{self.lanes}]"
        depth = self.tokens * self.d_head // self.lanes
        return Memory("keys_memory", depth, 16, word, BYTE * self.lanes)


def _relu(block: OscillatorBlock, coupling: RectifiedCoupling, sizes: Sizes) -> Block:
    components = block.anchors.shape[1]
    keys, queries = sizes.scored()
    if block.total.epsilon >= 2**15:
        raise UsageError(
            f"an epsilon of {block.total.epsilon} steps, more than 15 bits",
            remedy="a smaller one, or another score scale",
        )
    return Block(
        "entrain_oscillator_relu",
        "relu_block",
        (
            *_unsigned(sizes.tokens, sizes.queries, components, sizes.d_head, sizes.d_value),
            *_unsigned(sizes.lanes, _settle_digit(components, sizes.scores_pace)),
            *_unsigned(coupling.shift, coupling.bits, block.total.lift),
            f"s32:{block.total.epsilon}",
            *_read_out(block),
        ),
        (ANCHORS, keys, VALUES, queries),
        (CONTEXTS,),
        (
            sizes.keys,
            Memory("field_anchors", sizes.tokens * components, 16, "s8", BYTE),
            *_moments(sizes, components),
        ),
    )


def _separable(block: OscillatorBlock, coupling: SeparableCoupling, sizes: Sizes) -> Block:
    components = block.anchors.shape[1]
    if coupling.bits < DRIVE_KEPT:
        raise UsageError(
            f"d_head {sizes.d_head}: a drive keeps {coupling.bits} bits, the block shifts to "
            f"{DRIVE_KEPT}",
            remedy="128 or less",
        )
    return Block(
        "entrain_oscillator_separable",
        "separable_block",
        (
            *_unsigned(sizes.tokens, sizes.queries, components, sizes.d_head, sizes.d_value),
            *_unsigned(_settle_digit(components, sizes.divisions_pace)),
            *_unsigned(coupling.bits, block.total.lift),
            f"s32:{block.total.epsilon}",
            *_read_out(block),
        ),
        (ANCHORS, Port("keys", "u8", BYTE), VALUES, Port("queries", "u8", BYTE)),
        (CONTEXTS,),
        (
            Memory("drive_memory", components * sizes.d_head, 16, "s24", DRIVE_BITS),
            *_moments(sizes, components),
        ),
    )


def _softmax(block: SoftmaxBlock, sizes: Sizes) -> Block:
    exponential = block.softmax.exponential
    if sizes.d_value < LEAST_WORDS * sizes.value_lanes or sizes.d_value % sizes.value_lanes:
        raise UsageError(
            f"d_value {sizes.d_value} with {sizes.value_lanes} lanes: a sum would be read again "
            "before it is written",
            remedy=f"a multiple of the lanes, {LEAST_WORDS * sizes.value_lanes} or more",
        )
    if block.narrow and sizes.value_lanes % 2:
        raise UsageError(
            f"{sizes.value_lanes} lanes for weights of 8 bits",
            remedy="an even number: a DSP block multiplies two pairs of bytes",
        )
    lane = f"s8[{sizes.value_lanes}]"
    sums, bits = f"s32[{sizes.value_lanes}]", SUM_BITS * sizes.value_lanes
    words = sizes.d_value // sizes.value_lanes
    keys, queries = sizes.scored()
    return Block(
        "entrain_softmax",
        "softmax_block",
        (
            *_unsigned(sizes.tokens, sizes.queries, sizes.d_head, sizes.d_value, sizes.lanes),
            *_unsigned(sizes.value_lanes),
            str(block.narrow).lower(),
            *_unsigned(exponential.multiplier),
            *_quotient(block.softmax.quotient),
            f"s32:{block.zero_point}",
        ),
        (
            Port("table", "u15", EXPONENTIAL_BITS),
            keys,
            Port("values", lane, BYTE * sizes.value_lanes),
            queries,
        ),
        (CONTEXTS,),
        (
            sizes.keys,
            Memory("steps", 2 * sizes.tokens, 16, "s16", STEP_BITS),
            Memory("exponentials", ENTRIES, 16, "u15", EXPONENTIAL_BITS),
            Memory("values_memory", sizes.tokens * words, 16, lane, BYTE * sizes.value_lanes),
            Memory("sums", words, 8, sums, bits),
            Memory("rows", 2 * words, 8, sums, bits),
        ),
    )


def _moments(sizes: Sizes, components: int) -> tuple[Memory, ...]:
    return (
        Memory("moments", components * (sizes.d_value + 1), 16, "s22", MOMENT_BITS),
        Memory("value_sums", sizes.d_value + 1, 8, "s32", SUM_BITS),
    )


def _settle_digit(components: int, pace: int) -> int:
    """The fewest bits a step of the settling stage's multiplier with which it keeps the pace."""
    products = 2 * components + 6
    others = 21 + components  # normalising, receiving, sending
    for digit in (1, 2):
        if products * (MULTIPLIER_BITS // digit + 1) + others <= pace:
            return digit
    return 4


def _unsigned(*numbers: int) -> list[str]:
    return [f"u32:{number}" for number in numbers]


def _read_out(block: OscillatorBlock) -> list[str]:
    read_out = block.read_out
    return [
        *_unsigned(read_out.moment_shift, read_out.value_factor, read_out.sum_shift),
        f"s32:{read_out.tokens}",
        *_quotient(read_out.quotient),
        f"s32:{block.zero_point}",
    ]


def _quotient(quotient: Quotient) -> list[str]:
    numbers = (quotient.drop, quotient.shift, quotient.least, quotient.most)
    return _unsigned(quotient.multiplier, *numbers)


def contexts_in(
    simulator: Simulator,
    block: OscillatorBlock | SoftmaxBlock,
    queries: IntArray,
    keys: IntArray,
    values: IntArray,
    *,
    pauses: int = 0,
) -> tuple[Integers, int]:
    """What the simulated block answers to whole sequences, and the cycles it took.

    Args:
        simulator: of the block.
        block: for its anchors, or its table.
        queries: [sequences, queries, d_head].
        keys: [sequences, T, d_head].
        values: [sequences, T, d_value].
        pauses: seed of random pauses on all streams; 0 for none.

    Returns:
        Contexts [sequences, queries, d_value], and cycles.

    Raises:
        ToolError: it did not answer.
    """
    sequences, count, _ = queries.shape
    d_value = values.shape[2]
    inputs = {"keys": keys, "values": values, "queries": queries}
    if isinstance(block, SoftmaxBlock):
        given = {"table": packed(block.softmax.exponential.table[:, None], EXPONENTIAL_BITS)}
    else:
        given = {"anchors": packed(np.tile(block.anchors, (sequences, 1)).reshape(-1, 1), BYTE)}
    for name, numbers in inputs.items():
        lanes = simulator.bits(name) // BYTE
        given[name] = packed(numbers.reshape(-1, lanes), BYTE)
    streams = simulator.run(
        given,
        {"contexts": sequences * count * d_value},
        most_cycles=10_000 + 400 * sequences * (count + 4) * (keys.shape[1] + 8),
        pauses=pauses,
    )
    contexts = unpacked(streams.transfers["contexts"], 1, BYTE, signed=True)
    return contexts.reshape(sequences, count, d_value), streams.cycles
