"""What every REST endpoint is built on; other apps import these names from here.

`fabric.api` composes and may not be imported by apps, so the shared pieces live in this package.
"""

from fabric.accounts.api.base import ApiView
from fabric.accounts.api.conditions import etag_of, require_match
from fabric.accounts.api.fields import MicrosField
from fabric.accounts.api.pages import CursorPage, PageQuery, page_of
from fabric.accounts.api.problems import problem_response

__all__ = [
    "ApiView",
    "CursorPage",
    "MicrosField",
    "PageQuery",
    "etag_of",
    "page_of",
    "problem_response",
    "require_match",
]
