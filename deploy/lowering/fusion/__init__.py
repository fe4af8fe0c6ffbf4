"""Recognising what several layers compute together."""
