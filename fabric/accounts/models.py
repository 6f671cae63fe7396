"""People, organisations, projects and keys: who acts, for whom, and with what right."""

from typing import ClassVar

from django.contrib.auth.base_user import BaseUserManager
from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Lower

from fabric.accounts.domain.roles import Role
from fabric.accounts.querysets import (
    ApiKeyQuerySet,
    InvitationQuerySet,
    MembershipQuerySet,
    ProjectQuerySet,
)
from fabric.lib.models import PublicModel


class UserManager(BaseUserManager["User"]):
    """Creates people by e-mail address; there are no user names."""

    def create_user(self, email: str, password: str | None = None, **extra: object) -> "User":
        """Return a saved person; the address is lower-cased so that it is unique in any case."""
        user = self.model(email=self.normalize_email(email).lower(), **extra)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None) -> "User":
        """Return a saved operator with every right in the back office."""
        return self.create_user(email, password, is_staff=True, is_superuser=True)


class User(PublicModel, AbstractUser):
    """A person; signs in by e-mail. `is_staff` makes an operator of the exchange."""

    PREFIX: ClassVar[str] = "usr"

    username = None  # type: ignore[assignment]
    first_name = None  # type: ignore[assignment]
    last_name = None  # type: ignore[assignment]
    name = models.CharField(max_length=120, blank=True)
    email = models.EmailField(unique=True)
    theme = models.CharField(
        max_length=8,
        default="system",
        choices=[("system", "system"), ("light", "light"), ("dark", "dark")],
    )

    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    objects = UserManager()  # type: ignore[misc,assignment]

    class Meta:
        constraints = [
            models.UniqueConstraint(Lower("email"), name="an_address_belongs_to_one_person")
        ]

    def __str__(self) -> str:
        return self.name or self.email

    def get_full_name(self) -> str:
        """Return the name; there are no first and last ones."""
        return self.name

    def get_short_name(self) -> str:
        """Return the name."""
        return self.name


class Organisation(PublicModel):
    """A legal party: buys, provides, or both. Every tenant-owned row names one."""

    PREFIX: ClassVar[str] = "org"

    name = models.CharField(max_length=120)
    slug = models.SlugField(max_length=60, unique=True)
    members = models.ManyToManyField(User, through="Membership", related_name="organisations")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A person's role in an organisation; one role each."""

    id = models.BigAutoField(primary_key=True)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="memberships"
    )
    role = models.CharField(max_length=16, choices=Role.choices())
    created_at = models.DateTimeField(auto_now_add=True)

    objects = MembershipQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "organisation"], name="a_person_has_one_role_per_organisation"
            )
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.organisation}"


class Invitation(PublicModel):
    """An offer to join an organisation, mailed as a link that works once."""

    PREFIX: ClassVar[str] = "inv"

    organisation = models.ForeignKey(
        Organisation, on_delete=models.CASCADE, related_name="invitations"
    )
    email = models.EmailField()
    role = models.CharField(max_length=16, choices=Role.choices())
    token_digest = models.BinaryField(max_length=32, unique=True)
    invited_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True)

    objects = InvitationQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(
                "organisation",
                Lower("email"),
                condition=models.Q(accepted_at__isnull=True, withdrawn_at__isnull=True),
                name="an_address_has_one_open_invitation_per_organisation",
            ),
            models.CheckConstraint(
                condition=models.Q(accepted_at__isnull=True) | models.Q(withdrawn_at__isnull=True),
                name="an_invitation_is_accepted_or_withdrawn_not_both",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.email} to {self.organisation}"


class Project(PublicModel):
    """What orders, leases, jobs and keys belong to; carries the budget."""

    PREFIX: ClassVar[str] = "prj"

    organisation = models.ForeignKey(
        Organisation, on_delete=models.PROTECT, related_name="projects"
    )
    name = models.CharField(max_length=120)
    budget_micros = models.BigIntegerField(
        null=True,
        blank=True,
        help_text="Most that open orders may hold and spend; null is no limit.",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ProjectQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "name"], name="project_names_are_unique_per_organisation"
            ),
            models.CheckConstraint(
                condition=models.Q(budget_micros__isnull=True) | models.Q(budget_micros__gte=0),
                name="a_project_budget_is_not_negative",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ApiKey(PublicModel):
    """A hashed bearer key of one project, with scopes; shown once, when made."""

    PREFIX: ClassVar[str] = "key"

    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="api_keys")
    name = models.CharField(max_length=80)
    visible_prefix = models.CharField(max_length=16, unique=True)
    digest = models.BinaryField(max_length=32, help_text="HMAC-SHA-256 under the server's pepper.")
    scopes = ArrayField(models.CharField(max_length=40), default=list)
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.name} ({self.visible_prefix}…)"
