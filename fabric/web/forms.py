"""Forms of the pages that belong to no single app."""

from django import forms

from providers.domain.nodes import Pool


class ProviderForm(forms.Form):
    """Where an organisation's capacity stands, as it declares."""

    country = forms.CharField(
        max_length=2, help_text="Two letters, ISO 3166-1: DE for Germany. Declared, with a date."
    )
    region = forms.CharField(max_length=40, help_text="Such as eu-central; buyers filter by it.")
    pool = forms.ChoiceField(
        choices=[(pool.value, pool.value.capitalize()) for pool in Pool],
        help_text="Where the nodes stand.",
    )
    facility = forms.CharField(
        max_length=80, required=False, help_text="Such as a data centre's name. Decides no tier."
    )

    def clean_country(self) -> str:
        """Accept small letters too."""
        country: str = self.cleaned_data["country"]
        return country.upper()
