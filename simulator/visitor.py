"""A person at a browser without JavaScript: opens pages, fills in forms, follows redirects.

Forms are read from the page and sent back as they are, CSRF token included, so a page whose form
would not work for a person does not work here either.
"""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urljoin

import httpx

_TIMEOUT_SECONDS = 20
_MOST_REDIRECTS = 5


class PageRefused(Exception):
    """A page answered with an error, lacks the form that was wanted, or refused what was sent."""


@dataclass
class Form:
    """A form as it stands on a page, with the values a browser would send."""

    action: str
    method: str
    values: dict[str, str | list[str]] = field(default_factory=dict)
    choices: dict[str, list[str]] = field(default_factory=dict)
    buttons: list[tuple[str, str]] = field(default_factory=list)


class Visitor:
    """One person's browser, with its own cookies."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.client = httpx.Client(timeout=_TIMEOUT_SECONDS, follow_redirects=False)
        self.url = base_url
        self.html = ""

    def open(self, path: str) -> str:
        """Open a page and return its HTML; anything but success is a PageRefused."""
        return self._follow(self.client.get(urljoin(self.url, path)))

    def forms(self) -> list[Form]:
        """Return the forms of the page that is open."""
        reader = _FormReader()
        reader.feed(self.html)
        return reader.forms

    def submit(self, *, button: str = "", action: str = "", **values: str | list[str]) -> str:
        """Fill in and send the form that has all these fields, and return the page it leads to.

        `button` names a submit button's `name=value` when the form has several; `action` the
        address a form without fields leads to. Of forms that fit, one that posts comes first.
        """
        form = self._form_with(set(values), button, action)
        name, _, value = button.partition("=")
        sent = {**form.values, **values, **({name: value} if name else {})}
        target = urljoin(self.url, form.action)
        if form.method == "get":
            return self._follow(self.client.get(target, params=sent))
        return self._follow(self.client.post(target, data=sent, headers={"Referer": self.url}))

    def sign_in(self, email: str, password: str) -> None:
        """Sign in through the page a person uses."""
        self.open("/accounts/login/")
        self.submit(login=email, password=password)
        if "/login" in self.url:
            raise PageRefused(f"{email} could not sign in")

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def _form_with(self, names: set[str], button: str, action: str) -> Form:
        wanted = tuple(button.split("=", 1)) if button else None
        for form in sorted(self.forms(), key=lambda form: form.method != "post"):
            fits = (
                names <= {*form.values, *form.choices}
                and (wanted is None or wanted in form.buttons)
                and action in {"", form.action}
            )
            if fits:
                return form
        asked = " ".join(part for part in (str(sorted(names)), button, action) if part)
        raise PageRefused(f"{self.url} has no form with {asked}")

    def _follow(self, answer: httpx.Response) -> str:
        for _ in range(_MOST_REDIRECTS):
            if not answer.is_redirect:
                break
            answer = self.client.get(urljoin(str(answer.url), answer.headers["Location"]))
        if answer.status_code != 200:
            raise PageRefused(
                f"{answer.request.method} {answer.url} answered {answer.status_code}: "
                f"{_errors(answer.text)}"
            )
        self.url, self.html = str(answer.url), answer.text
        return self.html


class _FormReader(HTMLParser):
    """Collects forms with the values their fields have on the page."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self._form: Form | None = None
        self._select = ""
        self._area = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._form = Form(given.get("action", ""), given.get("method", "get").lower())
            self.forms.append(self._form)
        form = self._form
        if form is None:
            return
        name = given.get("name", "")
        if tag == "button" and given.get("type", "submit") == "submit":
            form.buttons.append((name, given.get("value", "")))
        elif tag == "input" and name:
            self._read_input(form, name, given)
        elif tag == "select":
            self._select = name
            form.choices[name] = []
        elif tag == "option" and self._select:
            form.choices[self._select].append(given.get("value", ""))
            if "selected" in given or len(form.choices[self._select]) == 1:
                form.values[self._select] = given.get("value", "")
        elif tag == "textarea":
            self._area = name
            form.values[name] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None
        elif tag == "select":
            self._select = ""
        elif tag == "textarea":
            self._area = ""

    def handle_data(self, data: str) -> None:
        if self._form is not None and self._area:
            self._form.values[self._area] = f"{self._form.values[self._area]}{data}"

    def _read_input(self, form: Form, name: str, given: dict[str, str]) -> None:
        kind = given.get("type", "text")
        if kind in {"checkbox", "radio"}:
            value = given.get("value", "on")
            form.choices.setdefault(name, []).append(value)
            if "checked" in given and kind == "radio":
                form.values[name] = value
            elif "checked" in given:
                form.values[name] = [*form.values.get(name, []), value]
        elif kind == "submit":
            form.buttons.append((name, given.get("value", "")))
        else:
            form.values[name] = given.get("value", "")


class _ErrorReader(HTMLParser):
    """Collects the text of a page's error messages."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self._depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        marks = dict(attrs).get("class") or ""
        if self._depth or "error" in marks or dict(attrs).get("role") == "alert":
            self._depth += tag not in {"br", "img", "input", "hr", "use", "path"}

    def handle_endtag(self, tag: str) -> None:
        self._depth = max(0, self._depth - 1) if tag not in {"br", "input"} else self._depth

    def handle_data(self, data: str) -> None:
        if self._depth and data.strip():
            self.said.append(data.strip())


def _errors(page: str) -> str:
    reader = _ErrorReader()
    reader.feed(page)
    return " ".join(reader.said)[:400] or "no reason given"
