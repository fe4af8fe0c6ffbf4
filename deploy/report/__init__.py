"""From results.json to a table, plots and one self-contained HTML page."""

from __future__ import annotations
