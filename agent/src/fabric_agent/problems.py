"""Refusals of the agent: each with a stable code, what happened, and what to do about it."""


class AgentProblem(Exception):
    """Base of all expected failures. `remedy` says what the person at the machine can do."""

    def __init__(self, code: str, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy


class StateProblem(AgentProblem):
    """The state folder is missing something, or someone else could read it."""


class ConfigProblem(AgentProblem):
    """The configuration or a YAML file is refused; one line per field."""

    def __init__(self, code: str, message: str, *, fields: list[str] | None = None) -> None:
        super().__init__(code, message, remedy="Correct the named fields and try again.")
        self.fields = fields or []


class Unreachable(AgentProblem):
    """The control plane did not answer within the tries; trying later can help."""


class Refused(AgentProblem):
    """The control plane said no; RFC 9457 members are kept as they came."""

    def __init__(self, status: int, problem: dict[str, object]) -> None:
        code = str(problem.get("code") or f"HTTP_{status}")
        message = str(problem.get("detail") or problem.get("title") or f"refused with {status}")
        super().__init__(code, message, remedy=str(problem.get("suggestion") or ""))
        self.status = status
        self.problem = problem

    @property
    def fields(self) -> list[tuple[str, str, str]]:
        """Return (field, reason, accepted) for every field the control plane named."""
        errors = self.problem.get("errors")
        rows = [row for row in errors if isinstance(row, dict)] if isinstance(errors, list) else []
        return [
            (
                _as_path(str(row.get("field") or row.get("pointer") or "")),
                str(row.get("reason") or row.get("detail") or ""),
                str(row.get("accepted") or ""),
            )
            for row in rows
        ]


def _as_path(pointer: str) -> str:
    """Write a JSON pointer as the path a person sees in a file: /price/amount as price.amount."""
    if not pointer.startswith("/"):
        return pointer
    return ".".join(part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/"))
