"""The few words of QEMU's machine protocol that are needed, over its socket."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any, Self

from entrain.deploy.errors import DeviceLost


class MachineProtocol:
    """A connection to a running QEMU.

    Args:
        path: the socket that QEMU listens on.
        timeout: seconds to wait for any one answer.

    Raises:
        OSError: nobody listens there (yet).
        DeviceLost: QEMU hung up.
    """

    def __init__(self, path: Path, timeout: float = 10.0) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(str(path))
            self._lines = self._socket.makefile("rb")
            self._read()  # the greeting
            self.execute("qmp_capabilities")
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self._socket.close()

    def execute(self, command: str, **arguments: object) -> Any:
        """Carry out ``command``; returns what QEMU returns.

        Raises:
            DeviceLost: QEMU hung up, or refused.
        """
        message = {"execute": command, "arguments": arguments}
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
            answer = self._answer()
        except OSError as error:
            raise DeviceLost(f"the emulator hung up on {command!r}: {error}") from error
        if "error" in answer:
            raise DeviceLost(f"the emulator refused {command!r}: {answer['error']}")
        return answer["return"]

    def _answer(self) -> dict[str, Any]:
        """The next answer, past the events that QEMU tells of meanwhile."""
        while True:
            answer = self._read()
            if "return" in answer or "error" in answer:
                return answer

    def _read(self) -> dict[str, Any]:
        line = self._lines.readline()
        if not line:
            raise DeviceLost("the emulator hung up")
        answer: dict[str, Any] = json.loads(line)
        return answer
