"""Commands of the providers app."""
