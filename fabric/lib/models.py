"""What models of every app are built on; no table of its own lives here."""

import uuid
from typing import ClassVar, Self

import pgtrigger
from django.db import models

from fabric.lib import ids


class PublicModel(models.Model):
    """A row with a UUIDv7 key, shown outside as a typed public id."""

    PREFIX: ClassVar[str]

    id = models.UUIDField(primary_key=True, default=ids.uuid7, editable=False)

    class Meta:
        abstract = True

    @property
    def public_id(self) -> str:
        """The id as pages, API, logs and SDK show it, such as `lse_01j…`."""
        return ids.to_public(self.PREFIX, self.id)

    @classmethod
    def key_from(cls, public_id: str) -> uuid.UUID:
        """Return the row key behind a public id of this type, or raise ValueError."""
        return ids.from_public(cls.PREFIX, public_id)

    @classmethod
    def find_public(cls, public_id: str) -> Self | None:
        """Return the row with this public id, or None; costs a query. Checks no access."""
        try:
            key = cls.key_from(public_id)
        except ValueError:
            return None
        return cls._default_manager.filter(pk=key).first()


class AppendOnlyModel(models.Model):
    """A row that is written once.

    Two locks keep it so: this trigger, and `grant_runtime_role`, which gives the runtime role no
    UPDATE, DELETE or TRUNCATE on tables of this kind (a table's owner could switch a trigger off).
    """

    RUNTIME_PRIVILEGES: ClassVar[tuple[str, ...]] = ("SELECT", "INSERT")

    class Meta:
        abstract = True
        triggers = [
            pgtrigger.Protect(name="append_only", operation=pgtrigger.Update | pgtrigger.Delete)
        ]
