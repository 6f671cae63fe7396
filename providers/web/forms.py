"""Forms of a provider's pages; the rules are the services', said politely earlier."""

from typing import Any

from django import forms
from django.conf import settings

from providers.domain.nodes import Pool


class EnrolmentForm(forms.Form):
    """What a token allows."""

    accepts_unisolated = forms.BooleanField(
        required=False,
        label="Run leases without a container where the node has no Podman",
        help_text="Buyers see it and must accept it too.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not settings.FABRIC_ALLOW_UNISOLATED:
            del self.fields["accepts_unisolated"]


class RevocationForm(forms.Form):
    """Why a node's keys end."""

    reason = forms.CharField(
        max_length=200,
        label="Reason",
        help_text="Such as: disk stolen. It stays in the audit trail.",
    )


class ProfileForm(forms.Form):
    """What a provider declares about itself."""

    name = forms.CharField(max_length=80, help_text="As buyers see it.")
    country = forms.CharField(max_length=2, help_text="Two letters, ISO 3166-1: DE for Germany.")
    region = forms.CharField(max_length=40, help_text="Such as eu-central; buyers filter by it.")
    pool = forms.ChoiceField(
        choices=[(pool.value, pool.value.capitalize()) for pool in Pool],
        help_text="Where the nodes stand.",
    )
    facility = forms.CharField(
        max_length=80, required=False, help_text="Such as a data centre's name. Decides no tier."
    )
