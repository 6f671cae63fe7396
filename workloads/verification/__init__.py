"""Verifiers by kind of result; plain Python, no Django."""
