"""What newer releases of apache-tvm-ffi break: they crash in saving JSON and in tensorizing."""

from __future__ import annotations

import subprocess
import sys

# in a process of its own, since the failure is a segmentation fault
SCRIPT = """
import tvm
from tvm import te
from tvm.s_tir import Schedule, TensorIntrin
from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def description(a: T.Buffer((16,), "int8", offset_factor=1),
                b: T.Buffer((16,), "int8", offset_factor=1),
                c: T.Buffer((1,), "int32", offset_factor=1)) -> None:
    with T.sblock("root"):
        T.reads(c[0:1], a[0:16], b[0:16])
        T.writes(c[0:1])
        for k in range(16):
            with T.sblock("update"):
                vk = T.axis.remap("R", [k])
                c[0] = c[0] + T.cast(a[vk], "int32") * T.cast(b[vk], "int32")

@T.prim_func(s_tir=True)
def implementation(a: T.Buffer((16,), "int8", offset_factor=1),
                   b: T.Buffer((16,), "int8", offset_factor=1),
                   c: T.Buffer((1,), "int32", offset_factor=1)) -> None:
    with T.sblock("root"):
        T.reads(c[0:1], a[0:16], b[0:16])
        T.writes(c[0:1])
        c[0] = T.call_extern("int32", "dot", a.access_ptr("r"), b.access_ptr("r"), c[0])

TensorIntrin.register("dot_of_16", description, implementation)
a, b = te.placeholder((4, 32), "int8", "a"), te.placeholder((8, 32), "int8", "b")
k = te.reduce_axis((0, 32), "k")
c = te.compute((4, 8), lambda i, j: te.sum(
    a[i, k].astype("int32") * b[j, k].astype("int32"), axis=k), "c")
schedule = Schedule(tvm.IRModule({"main": te.create_prim_func([a, b, c])}))
block = schedule.get_sblock("c")
outer, inner = schedule.split(schedule.get_loops(block)[-1], [None, 16])
schedule.decompose_reduction(block, outer)
schedule.tensorize(inner, "dot_of_16")
text = tvm.ir.save_json(schedule.mod)
assert "dot" in tvm.ir.load_json(text)["main"].script()
"""


def test_tensorizing_and_saving_json_work(tmp_path):
    script = tmp_path / "tensorize.py"  # the TVM script parser reads its source
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
