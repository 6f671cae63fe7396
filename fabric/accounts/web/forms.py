"""Forms of this app: they say politely what the services would refuse."""

from datetime import datetime, timedelta
from typing import Any

from django import forms

from fabric.accounts.domain.roles import Role
from fabric.accounts.domain.scopes import SCOPES
from fabric.accounts.models import Project, User
from fabric.accounts.querysets import ProjectQuerySet
from fabric.accounts.services.organisations import found_organisation
from fabric.lib.clock import utc_now
from fabric.lib.money import format_amount, parse_amount

_LIFETIMES = {"30": "30 days", "90": "90 days", "365": "One year", "never": "Until revoked"}


class SignUpForm(forms.Form):
    """What signing up asks beyond address and password; django-allauth calls `signup`."""

    name = forms.CharField(
        label="Your name",
        max_length=120,
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )
    organisation = forms.CharField(
        label="Organisation",
        max_length=120,
        required=False,
        help_text="What you buy and provide as. Left out, it is called after you.",
        widget=forms.TextInput(attrs={"autocomplete": "organization"}),
    )

    def signup(self, request: Any, user: User) -> None:  # noqa: ARG002 - the caller names it
        """Finish the person and found their organisation."""
        user.name = self.cleaned_data["name"]
        user.save(update_fields=["name"])
        name = self.cleaned_data["organisation"] or self.cleaned_data["name"]
        found_organisation(founder=user, name=name, now=utc_now())


class OrganisationForm(forms.Form):
    """An organisation's name."""

    name = forms.CharField(label="Name of the organisation", max_length=120)


class InvitationForm(forms.Form):
    """Whom to ask to join, and as what."""

    email = forms.EmailField(
        label="E-mail address", widget=forms.EmailInput(attrs={"autocomplete": "off"})
    )
    role = forms.ChoiceField(
        label="Role",
        choices=[choice for choice in Role.choices() if choice[0] != Role.OWNER],
        initial=Role.MEMBER,
    )


class RoleForm(forms.Form):
    """A member's role."""

    role = forms.ChoiceField(label="Role", choices=Role.choices())


class AmountField(forms.Field):
    """Money as people write it, in micro-units once read."""

    def to_python(self, value: Any) -> Any:
        """Read `25.00`; an empty field is None."""
        if value in self.empty_values:
            return None
        try:
            return parse_amount(str(value))
        except ValueError as exc:
            raise forms.ValidationError(f"{str(exc).capitalize()}.") from exc

    def prepare_value(self, value: Any) -> Any:
        """Write micro-units as people do."""
        return format_amount(value).replace(",", "") if isinstance(value, int) else value


class ProjectForm(forms.Form):
    """A project's name and budget."""

    name = forms.CharField(label="Name", max_length=120)
    budget_micros = AmountField(
        label="Budget in $",
        required=False,
        help_text="Most that its orders may hold and spend together. Empty is no limit.",
        widget=forms.TextInput(
            attrs={"inputmode": "decimal", "autocomplete": "off", "maxlength": "24"}
        ),
    )


class ApiKeyForm(forms.Form):
    """A key: for which project, for what, and until when."""

    name = forms.CharField(label="Name", max_length=80, help_text="Where it will be used.")
    project = forms.ModelChoiceField(label="Project", queryset=Project.objects.none())
    lifetime = forms.ChoiceField(label="Lives for", choices=list(_LIFETIMES.items()), initial="90")
    scopes = forms.MultipleChoiceField(
        label="Scopes",
        choices=[(scope, f"{scope}: {meaning}") for scope, meaning in SCOPES.items()],
        widget=forms.CheckboxSelectMultiple,
        help_text="What the key may be used for. It never does more than your role allows.",
    )

    def __init__(self, *args: Any, projects: ProjectQuerySet, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["project"]
        if isinstance(field, forms.ModelChoiceField):
            field.queryset = projects
            field.empty_label = None

    def expires_at(self, now: datetime) -> datetime | None:
        """Return when the key ends, or None."""
        lifetime = self.cleaned_data["lifetime"]
        return None if lifetime == "never" else now + timedelta(days=int(lifetime))
