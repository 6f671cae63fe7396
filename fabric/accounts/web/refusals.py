"""Showing a service's refusal beside the field it is about."""

from django import forms

from fabric.lib.errors import DomainError


def add_refusal(form: forms.Form, refusal: DomainError) -> None:
    """Add what a service refused to a form: to its fields where it has them, else on top."""
    for error in refusal.errors:
        field = error.field if error.field in form.fields else None
        form.add_error(field, f"{error.reason} Accepted: {error.accepted}.")
    if not refusal.errors:
        form.add_error(None, f"{refusal.message} {refusal.suggestion}".strip())
