"""Quantized twins of the networks: the graph that the device will run."""

from __future__ import annotations
