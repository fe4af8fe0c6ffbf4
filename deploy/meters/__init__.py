"""Energy, one instrument a file, and the modelled one."""

from __future__ import annotations
