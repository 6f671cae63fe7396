"""What caches may keep: nothing that was made for one visitor."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.cache import patch_cache_control


class PersonalAnswersMiddleware:
    """Keeps every answer to a visitor with a session out of caches, unless its view says otherwise.

    Also the public pages: their frame names who is signed in.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Serve the request; mark the answer as personal."""
        response = self.get_response(request)
        has_session = settings.SESSION_COOKIE_NAME in request.COOKIES
        if has_session and not response.has_header("Cache-Control"):
            patch_cache_control(response, private=True, no_store=True)
        return response
