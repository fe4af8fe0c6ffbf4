"""Where recordings and texts lie, if they are there."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
SPEECH_COMMANDS = DATA / "speech_commands"
TEXT = DATA / "text"
