"""The catalogue of error codes: what each means and what to do about it.

`/docs/errors/<code>/` shows an entry, and every problem's `type` leads there. A code that is not
listed here is explained by the docstring of the refusal it belongs to.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class ProblemKind:
    """One code: its title, what happened, and what the caller can do."""

    title: str
    meaning: str
    remedy: str


PROBLEMS: Final[dict[str, ProblemKind]] = {
    "INVALID_INPUT": ProblemKind(
        "Some input cannot be accepted",
        "A field is missing, unknown, of the wrong type, or breaks a rule. `errors` names each.",
        "Correct the fields that `errors` points at; `accepted` says what would pass.",
    ),
    "MALFORMED_BODY": ProblemKind(
        "The body is not acceptable JSON",
        "The body must be one JSON object without repeated names, NaN or infinities.",
        "Send one JSON object in UTF-8.",
    ),
    "CREDENTIALS_IN_URL": ProblemKind(
        "A key was sent in the address",
        "Addresses are kept in logs and histories, so a key in one has to be considered public.",
        "Revoke the key, make a new one, and send it as `Authorization: Bearer`.",
    ),
    "NOT_AUTHENTICATED": ProblemKind(
        "No valid key",
        "No API key was sent, or it is unknown, expired or revoked.",
        "Send `Authorization: Bearer` with a live key from Settings, API keys.",
    ),
    "SCOPE_MISSING": ProblemKind(
        "The key lacks a scope",
        "The key is valid, but was not made for this. `metadata.scope` names what it lacks.",
        "Make a key with that scope.",
    ),
    "NOT_ALLOWED": ProblemKind(
        "Your role does not allow this",
        "You see the object, but your role in the organisation may not act so.",
        "Ask an owner or admin of your organisation.",
    ),
    "NOT_FOUND": ProblemKind(
        "There is nothing here",
        "The object does not exist, or it belongs to someone else; both look the same.",
        "Check the id, and that the key belongs to the right organisation.",
    ),
    "METHOD_NOT_ALLOWED": ProblemKind(
        "This method does not exist here",
        "The address exists, the method does not.",
        "See the `Allow` header and the reference.",
    ),
    "NOT_ACCEPTABLE": ProblemKind(
        "No such representation", "The API answers in JSON only.", "Accept `application/json`."
    ),
    "UNSUPPORTED_MEDIA_TYPE": ProblemKind(
        "Only JSON is accepted", "The body was of another type.", "Send `application/json`."
    ),
    "WRONG_STATE": ProblemKind(
        "Not in this state",
        "The object is in a state from which this act does not lead anywhere.",
        "Read the object again and act on its present state.",
    ),
    "REFUSED": ProblemKind(
        "The request was refused", "A rule of the market refuses this.", "Read `detail`."
    ),
    "IDEMPOTENCY_KEY_MISSING": ProblemKind(
        "This request needs an Idempotency-Key",
        "It moves money or makes something that must exist once.",
        "Send a fresh UUID in `Idempotency-Key`, and the same one when you repeat the request.",
    ),
    "IDEMPOTENCY_KEY_INVALID": ProblemKind(
        "The Idempotency-Key is not acceptable",
        "A key is 1 to 255 printable ASCII characters.",
        "Use a UUID.",
    ),
    "IDEMPOTENCY_IN_PROGRESS": ProblemKind(
        "The first request is still running",
        "A request with this key is being worked on right now.",
        "Wait as `Retry-After` says and send the same request again.",
    ),
    "IDEMPOTENCY_KEY_REUSED": ProblemKind(
        "The Idempotency-Key belongs to another request",
        "The same key came before with another body.",
        "Make a new key for every new request.",
    ),
    "INVALID_CURSOR": ProblemKind(
        "The cursor does not fit",
        "Cursors belong to one tenant, one filter and one order, and cannot be edited.",
        "Start again without a cursor, or keep the filters of the first page.",
    ),
    "CURSOR_EXPIRED": ProblemKind(
        "The cursor is too old", "Cursors live for 24 hours.", "Start again without a cursor."
    ),
    "PRECONDITION_REQUIRED": ProblemKind(
        "This edit needs If-Match",
        "Price, state and payout edits must say which version they edit.",
        "Read the object, and send its `ETag` in `If-Match`.",
    ),
    "PRECONDITION_FAILED": ProblemKind(
        "The object has changed since you read it",
        "The version in `If-Match` is not the current one.",
        "Read it again and decide anew.",
    ),
    "UNKNOWN_API_VERSION": ProblemKind(
        "No such API version",
        "`Api-Version` names a version that this server does not speak.",
        "Leave the header out, or use a version from the changelog.",
    ),
    "TOO_MANY_REQUESTS": ProblemKind(
        "Too many requests",
        "The limit in `RateLimit-Policy` is used up.",
        "Wait as `Retry-After` says.",
    ),
    "INTERNAL_ERROR": ProblemKind(
        "We failed", "Something failed on our side.", "Try again; name the request id to us."
    ),
    "UNAVAILABLE": ProblemKind(
        "Not available at the moment",
        "A part we need does not answer.",
        "Try again as `Retry-After` says.",
    ),
}


def title_of(code: str) -> str:
    """Return the short title of a code; an unlisted code reads as its own words."""
    kind = PROBLEMS.get(code)
    return kind.title if kind else code.replace("_", " ").capitalize()
