"""What a project's open orders may hold."""

from fabric.accounts.models import Project
from fabric.lib.errors import DomainError
from fabric.lib.money import format_amount
from leases import selectors


class ProjectBudgetExceeded(DomainError):
    """The project's open orders would hold more than its budget."""

    code = "PROJECT_BUDGET_EXCEEDED"


def require_budget(*, project: Project, amount_micros: int) -> None:
    """Raise unless the project's budget leaves room for `amount_micros` more.

    Holds the project's row, so that two orders cannot both take the last of it.
    """
    limit = (
        Project.objects.select_for_update(no_key=True)
        .values_list("budget_micros", flat=True)
        .get(pk=project.pk)
    )
    if limit is None:
        return
    held = selectors.committed_micros(project)
    if held + amount_micros > limit:
        raise ProjectBudgetExceeded(
            f"The project's open orders hold {format_amount(held)} of its budget of "
            f"{format_amount(limit)}.",
            suggestion="End a lease, choose a smaller amount, or raise the project's budget.",
            metadata={"budget_micros": str(limit), "committed_micros": str(held)},
        )
