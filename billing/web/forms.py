"""Forms of this app: they say politely what the services would refuse."""

import uuid

from django import forms

from billing.services.topups import LEAST_MICROS, MOST_MICROS
from fabric.lib.money import format_amount, parse_amount


class TopUpForm(forms.Form):
    """How much to add; the hidden key makes a form sent twice one payment."""

    amount_micros = forms.CharField(
        label="Amount, $",
        max_length=20,
        help_text=(
            f"From {format_amount(LEAST_MICROS)} to {format_amount(MOST_MICROS)}, whole cents."
        ),
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
    )
    key = forms.CharField(max_length=64, widget=forms.HiddenInput, initial=lambda: uuid.uuid4().hex)

    def clean_amount_micros(self) -> int:
        """Read the amount; what is not written plainly is refused, not interpreted."""
        try:
            return parse_amount(self.cleaned_data["amount_micros"])
        except ValueError as error:
            raise forms.ValidationError(f"{str(error).capitalize()}.") from error
