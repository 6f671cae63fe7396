"""Intents, plans and jobs; their models come with the fabric."""
