"""Forms of this app: they say politely what the services would refuse."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import uuid4

from django import forms

from fabric.accounts.models import Project
from fabric.accounts.querysets import ProjectQuerySet
from fabric.accounts.web.forms import AmountField
from fabric.lib.money import format_amount
from leases.models import Reading

SECONDS_PER_HOUR = 3600


def new_key() -> str:
    """Return the key that makes one rendered form one act, however often it is sent."""
    return str(uuid4())


class OrderForm(forms.Form):
    """What is ordered, for how long, for how much, and on which consents."""

    project = forms.ModelChoiceField(label="Project", queryset=Project.objects.none())
    unit_count = forms.IntegerField(label="Accelerators", min_value=1)
    hours = forms.DecimalField(
        label="Term in hours",
        min_value=Decimal("0.01"),
        max_digits=8,
        decimal_places=2,
    )
    budget_micros = AmountField(
        label="Hold at most, $",
        help_text="Moved from your balance to the lease's escrow. What is unused returns.",
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
    )
    accepts_interruption = forms.BooleanField(
        label="I accept that this node may be interrupted.", required=False
    )
    accepts_unisolated = forms.BooleanField(
        label="I accept that my workload runs without a container.", required=False
    )
    price = forms.IntegerField(min_value=1, widget=forms.HiddenInput)
    key = forms.CharField(max_length=64, widget=forms.HiddenInput)

    def __init__(
        self,
        *args: Any,
        projects: ProjectQuerySet,
        most_units: int,
        most_hours: int,
        needs: frozenset[str],
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["project"]
        if isinstance(field, forms.ModelChoiceField):
            field.queryset = projects
            field.empty_label = None
        for name, most in (("unit_count", most_units), ("hours", most_hours)):
            self.fields[name].widget.attrs |= {"inputmode": "decimal", "max": most}
        for consent in ("accepts_interruption", "accepts_unisolated"):
            if consent not in needs:
                del self.fields[consent]

    @property
    def max_seconds(self) -> int:
        """The term in whole seconds."""
        return int(self.cleaned_data["hours"] * SECONDS_PER_HOUR)


class TopUpForm(forms.Form):
    """More money for a lease."""

    amount_micros = AmountField(
        label="Amount, $",
        help_text="Moved from your balance; what is unused returns when the lease ends.",
        widget=forms.TextInput(attrs={"inputmode": "decimal", "autocomplete": "off"}),
    )
    key = forms.CharField(max_length=64, widget=forms.HiddenInput)


class DisputeForm(forms.Form):
    """Which window is disputed, and what was wrong with it."""

    reading = forms.ChoiceField(label="Window")
    statement = forms.CharField(
        label="What was wrong",
        max_length=4000,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="The signed batch, the exchange's own looks and the terms are attached for you.",
    )

    def __init__(self, *args: Any, readings: Sequence[Reading], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["reading"]
        if isinstance(field, forms.ChoiceField):
            field.choices = [(row.public_id, _window_words(row)) for row in readings]


def _window_words(reading: Reading) -> str:
    record = reading.usage_record
    amount = format_amount(record.amount_micros, decimals=6) if record else "0"
    return f"{reading.starts_at:%H:%M:%S} to {reading.ends_at:%H:%M:%S} UTC, ${amount}"
