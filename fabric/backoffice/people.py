"""People, organisations, projects and keys, as an operator looks at them."""

from allauth.account.models import EmailAddress
from django.contrib import admin

from fabric.accounts.models import ApiKey, Membership, Organisation, Project, User
from fabric.backoffice.records import RecordAdmin
from fabric.backoffice.site import operator_site


@admin.register(User, site=operator_site)
class UserAdmin(RecordAdmin):
    """People; nobody's password or second factor is shown."""

    list_display = ("email", "name", "is_staff", "is_active", "last_login", "date_joined")
    list_filter = ("is_staff", "is_active")
    search_fields = ("email", "name")
    ordering = ("email",)
    hidden_fields = ("password",)


@admin.register(Organisation, site=operator_site)
class OrganisationAdmin(RecordAdmin):
    """Legal parties."""

    list_display = ("name", "slug", "created_at")
    search_fields = ("name", "slug")


@admin.register(Membership, site=operator_site)
class MembershipAdmin(RecordAdmin):
    """Who belongs where, in which role."""

    list_display = ("user", "organisation", "role", "created_at")
    list_filter = ("role",)
    list_select_related = ("user", "organisation")
    search_fields = ("user__email", "organisation__name")


@admin.register(Project, site=operator_site)
class ProjectAdmin(RecordAdmin):
    """Projects and their budgets."""

    list_display = ("name", "organisation", "budget_micros_money", "created_at")
    list_select_related = ("organisation",)
    search_fields = ("name", "organisation__name")


@admin.register(ApiKey, site=operator_site)
class ApiKeyAdmin(RecordAdmin):
    """Keys by their visible beginning; the rest of a key nobody has."""

    list_display = ("name", "visible_prefix", "project", "scopes", "last_used_at", "revoked_at")
    list_select_related = ("project",)
    search_fields = ("name", "visible_prefix")
    hidden_fields = ("digest",)


@admin.register(EmailAddress, site=operator_site)
class EmailAddressAdmin(RecordAdmin):
    """Addresses and whether their owners proved them."""

    list_display = ("email", "user", "verified", "primary")
    list_filter = ("verified",)
    list_select_related = ("user",)
    search_fields = ("email",)
