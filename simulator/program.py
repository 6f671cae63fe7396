"""A program at the REST API: one key, one error type, and waiting with a bound."""

import time
import uuid
from collections.abc import Callable
from typing import Any

import httpx

_TIMEOUT_SECONDS = 20
_PAUSE_SECONDS = 0.3
_PAGE_LIMIT = "100"


class CallRefused(Exception):
    """An endpoint refused, or something did not come true in time."""


class Program:
    """Calls the API with one key."""

    def __init__(self, base_url: str, key: str) -> None:
        self.client = httpx.Client(
            base_url=f"{base_url}/api/v1/",
            timeout=_TIMEOUT_SECONDS,
            headers={"Authorization": f"Bearer {key}"},
        )

    def get(self, path: str, **query: str) -> dict[str, Any]:
        """Return one object."""
        return self._read(self.client.get(path, params=query))

    def list(self, path: str, **query: str) -> list[dict[str, Any]]:
        """Return all rows of a list, page by page."""
        rows: list[dict[str, Any]] = []
        cursor: str | None = ""
        while cursor is not None:
            asked = {"limit": _PAGE_LIMIT, **query, **({"cursor": cursor} if cursor else {})}
            page = self.get(path, **asked)
            rows.extend(page["data"])
            cursor = page["next_cursor"] or None
        return rows

    def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Send one act under an idempotency key of its own."""
        return self._read(
            self.client.post(path, json=body, headers={"Idempotency-Key": str(uuid.uuid4())})
        )

    def wait_for(
        self,
        what: str,
        look: Callable[[], Any],
        good: Callable[[Any], bool],
        *,
        seconds: float = 60,
    ) -> Any:
        """Look until it is good and return it; CallRefused with the last look when it never is."""
        deadline = time.monotonic() + seconds
        seen = look()
        while not good(seen):
            if time.monotonic() > deadline:
                raise CallRefused(
                    f"{what} did not come true in {seconds:.0f} s; last seen: {str(seen)[:400]}"
                )
            time.sleep(_PAUSE_SECONDS)
            seen = look()
        return seen

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def _read(self, answer: httpx.Response) -> dict[str, Any]:
        if answer.is_error:
            raise CallRefused(
                f"{answer.request.method} {answer.request.url.path} answered "
                f"{answer.status_code}: {answer.text[:600]}"
            )
        read: dict[str, Any] = answer.json()
        return read
