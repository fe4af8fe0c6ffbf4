"""From QCDQ ONNX to bare integer C."""
