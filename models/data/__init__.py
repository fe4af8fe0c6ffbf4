"""Data sets, one source a file."""

from __future__ import annotations

from entrain.models.data.clips import Clips, KeywordData

__all__ = ["Clips", "KeywordData"]
