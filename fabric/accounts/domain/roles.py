"""Roles in an organisation and what each may do."""

from enum import StrEnum

from fabric.lib.types import Choice


class Role(Choice):
    """A person's standing in an organisation, strongest first."""

    OWNER = "owner"
    ADMIN = "admin"
    MEMBER = "member"
    BILLING = "billing"
    VIEWER = "viewer"


class Right(StrEnum):
    """An act that a role allows."""

    SEE = "see"
    MANAGE_MEMBERS = "manage_members"
    MANAGE_PROJECTS = "manage_projects"
    MANAGE_KEYS = "manage_keys"
    ORDER = "order"
    PROVIDE = "provide"
    PAY = "pay"
    DISPUTE = "dispute"


_RIGHTS: dict[Role, frozenset[Right]] = {
    Role.OWNER: frozenset(Right),
    Role.ADMIN: frozenset(Right),
    Role.MEMBER: frozenset(
        {Right.SEE, Right.ORDER, Right.PROVIDE, Right.DISPUTE, Right.MANAGE_KEYS}
    ),
    Role.BILLING: frozenset({Right.SEE, Right.PAY, Right.DISPUTE}),
    Role.VIEWER: frozenset({Right.SEE}),
}


def rights_of(role: Role) -> frozenset[Right]:
    """Return everything a member with this role may do."""
    return _RIGHTS[role]
