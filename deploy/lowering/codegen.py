"""From scheduled TensorIR to a bare C function over raw pointers.

TVM's own ``build`` wraps functions in its calling convention (argument checks, packed values); a
microcontroller wants ``void layer(const int8_t *x, ..., int8_t *output)``. So the passes of
``target="c"`` run without MakePackedAPI, buffer parameters become pointers, and the text that
TVM's C generator prints is freed of TVM's headers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from entrain.deploy.lowering.c_text import readable

C_TYPES = {
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
}
_C_SIZES = {c_type: np.dtype(name).itemsize for name, c_type in C_TYPES.items()}


@dataclass(frozen=True)
class CFunction:
    """The C text of a function, and the bytes of the arrays that it keeps on the stack."""

    text: str
    stack_array_bytes: int


def function_to_c(function: Any, symbol: str) -> CFunction:
    """One function in C, ``static`` and never inlined.

    Args:
        function: scheduled TensorIR whose parameters are buffers; the last one is written.
        symbol: the C function's name.
    """
    import tvm
    from tvm.target import Target
    from tvm.tirx import transform

    target = Target("c")
    bare = bare_function(function, symbol, target)
    module = transform.LowerIntrin()(tvm.IRModule({symbol: bare}))
    text = tvm.get_global_func("target.build.c")(module, target).inspect_source()
    text = _tidy(text, symbol)
    return CFunction(readable(text), _stack_array_bytes(text))


def bare_function(function: Any, symbol: str, target: Any) -> Any:
    """A scheduled function as loops over raw pointers, for whatever TVM target prints it."""
    import tvm
    from tvm.tirx import transform

    module = tvm.IRModule({symbol: function.with_attr("global_symbol", symbol)})
    module = transform.BindTarget(target.with_host(target))(module)
    module = tvm.ir.transform.Sequential(_passes())(module)
    return _with_pointer_parameters(module[symbol])


def _stack_array_bytes(text: str) -> int:
    arrays = re.findall(r"^ +(\w+) \w+\[(\d+)\];$", text, flags=re.M)
    return sum(_C_SIZES[c_type] * int(count) for c_type, count in arrays)


def _passes() -> list[Any]:
    """TVM's lowering for target c, less packed calls and less LowerTVMBuiltin.

    The latter would turn small buffers into calls of a run-time allocator; without it they become
    C arrays on the stack, a row at most by the schedules. Nor does StorageRewrite run, which lets
    arrays of different types share their bytes; a C compiler may do that, a C program may not.
    """
    from tvm.s_tir import transform as s_tir
    from tvm.tirx import transform as tirx

    return [
        s_tir.CanonicalizeLoop(),
        s_tir.LowerInitBlock(),
        s_tir.PlanAndUpdateBufferAllocationLocation(),
        s_tir.ConvertBlocksToOpaque(),
        s_tir.CompactBufferAllocation(),
        s_tir.LowerMatchBuffer(),
        s_tir.StmtSimplify(),
        s_tir.LowerOpaqueBlock(),
        tirx.FlattenBuffer(),
        tirx.NarrowDataType(32),
        s_tir.LoopPartition(),
        tirx.VectorizeLoop(False),
        s_tir.HoistIfThenElse(),
        tirx.UnrollLoop(),
        s_tir.RenormalizeSplitPattern(),
        tirx.StmtSimplify(),
        tirx.RemoveNoOp(),
        s_tir.RewriteUnsafeSelect(),
        tirx.CommonSubexprElim(),
    ]


def _with_pointer_parameters(function: Any) -> Any:
    """Buffer parameters become pointers that declare the buffer inside."""
    from tvm import tirx
    from tvm.ir import PointerType, PrimType
    from tvm.tirx import stmt

    pointers, declarations = [], []
    for parameter in function.params:
        kind = PointerType(PrimType(parameter.dtype), parameter.scope() or "global")
        pointer = tirx.Var(str(parameter.name), kind)
        pointers.append(pointer)
        declarations.append(stmt.DeclBuffer(parameter, data=pointer))
    body = stmt.SeqStmt([*declarations, function.body])
    bare = tirx.PrimFunc(pointers, body, function.ret_type, function.attrs)
    return bare.with_attr("calling_conv", 0)


def _tidy(text: str, symbol: str) -> str:
    start = re.search(rf"^TVM_DLL \w+ {symbol}\((?=[^;]*\{{)", text, flags=re.M)
    if start is None:
        raise LookupError(f"TVM printed no function {symbol}")
    body = text[start.start() :].split("\nTVM_DLL", maxsplit=1)[0].strip()
    body = re.sub(r"\b([a-z]+(?:_[a-z]+)*_\d+)_ptr\b", r"\1", body)
    head, rest = body.split("{", 1)
    parameters = re.findall(r"(\w+)\* (\w+)", head)
    *read, written = parameters
    signature = ", ".join(
        [f"const {kind} *restrict {name}" for kind, name in read]
        + [f"{written[0]} *restrict {written[1]}"]
    )
    # of what joins constants to a value, a part may be all constant
    unread = [name for _, name in read if not re.search(rf"\b{name}\b", rest)]
    unused = "".join(f"\n  (void){name};" for name in unread)
    return f"static NOINLINE void {symbol}({signature}) {{{unused}{rest}\n"
