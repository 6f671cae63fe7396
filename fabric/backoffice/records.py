"""How the back office shows a row: whole, in words a person can check, and never editable.

What an operator may do to an object is an action that calls the service every interface calls.
"""

import json
import uuid
from collections.abc import Callable
from typing import Any

from django.db import models
from django.http import HttpRequest
from django.utils.html import format_html
from unfold.admin import ModelAdmin

from fabric.backoffice.figures import money
from fabric.lib import ids
from fabric.lib.models import PublicModel

_HIDDEN = {"password", "digest_of_secret"}


class RecordAdmin(ModelAdmin):
    """Shows every field of a row; there is no add, no change and no delete."""

    list_per_page = 50
    show_full_result_count = False
    list_filter_submit = True
    hidden_fields: tuple[str, ...] = ()
    money_fields: tuple[str, ...] = ()

    def __init__(self, model: type[models.Model], admin_site: Any) -> None:
        super().__init__(model, admin_site)
        self._shown = [self._column(field) for field in model._meta.fields if self._may_show(field)]

    def _may_show(self, field: "models.Field[Any, Any]") -> bool:
        return field.name not in _HIDDEN and field.name not in self.hidden_fields

    def _column(self, field: "models.Field[Any, Any]") -> str:
        """Return the name under which a field is shown: its own, or that of a reader of it."""
        if field.primary_key and issubclass(self.model, PublicModel):
            return self._reader("public_id", _public_id, "id")
        if isinstance(field, models.BinaryField):
            return self._reader(f"{field.name}_hex", _hex_of(field.name), field.verbose_name)
        if isinstance(field, models.JSONField):
            return self._reader(f"{field.name}_text", _json_of(field.name), field.verbose_name)
        if field.name.endswith("_micros") or field.name in self.money_fields:
            label = str(field.verbose_name).removesuffix(" micros")
            return self._reader(f"{field.name}_money", _money_of(field.name), f"{label}, $")
        return field.name

    def _reader(self, name: str, read: Callable[[Any], str], label: object) -> str:
        read.short_description = str(label)  # type: ignore[attr-defined]
        if not hasattr(self, name):
            setattr(self, name, read)
        return name

    def get_fields(self, request: HttpRequest, obj: models.Model | None = None) -> list[str]:
        """Show all fields."""
        return self._shown

    def get_readonly_fields(
        self, request: HttpRequest, obj: models.Model | None = None
    ) -> list[str]:
        """Leave none of them to be changed."""
        return self._shown

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[Any], search_term: str
    ) -> tuple[models.QuerySet[Any], bool]:
        """Find by public id first; every list takes one."""
        if issubclass(self.model, PublicModel):
            key = _key_of(self.model, search_term)
            if key is not None:
                return queryset.filter(pk=key), False
        found: tuple[models.QuerySet[Any], bool] = super().get_search_results(
            request, queryset, search_term
        )
        return found

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        """Offer the search box on every list, for ids at least."""
        return tuple(self.search_fields) or (() if self.model._meta.pk.is_relation else ("pk",))

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Show the app to whoever may enter the site."""
        return bool(self.admin_site.has_permission(request))

    def has_view_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Show the rows to whoever may enter the site."""
        return bool(self.admin_site.has_permission(request))

    def has_add_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Refuse: rows are made by services."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Refuse: rows are changed by services."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Refuse: history stays."""
        return False


def _public_id(row: PublicModel) -> str:
    return row.public_id


def _hex_of(name: str) -> Callable[[Any], str]:
    def read(row: Any) -> str:
        value = getattr(row, name)
        if value is None:
            return "none"
        text = bytes(value).hex()
        return text if len(text) <= 128 else f"{text[:128]}… ({len(text) // 2:,} bytes)"

    return read


def _json_of(name: str) -> Callable[[Any], str]:
    def read(row: Any) -> str:
        text = json.dumps(getattr(row, name), indent=2, sort_keys=True, default=str)
        return format_html('<pre class="fx-raw">{}</pre>', text)

    return read


def _money_of(name: str) -> Callable[[Any], str]:
    def read(row: Any) -> str:
        return money(getattr(row, name))

    read.admin_order_field = name  # type: ignore[attr-defined]
    return read


def _key_of(model: type[PublicModel], text: str) -> uuid.UUID | None:
    try:
        return ids.from_public(model.PREFIX, text.strip().lower())
    except ValueError:
        return None
