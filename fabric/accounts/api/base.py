"""What every endpoint under `/api/v1/` is: authenticated, scoped, strict, repeatable, limited."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeVar, cast

from django.db import models, transaction
from django.http import HttpResponseBase
from django.http.request import HttpRequest
from rest_framework import serializers
from rest_framework.exceptions import NotAuthenticated, Throttled
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from fabric.accounts.access import actor_for
from fabric.accounts.api.authentication import (
    ApiKeyAuthentication,
    PageSessionAuthentication,
    refuse_key_in_url,
)
from fabric.accounts.api.conditions import etag_of, is_unchanged
from fabric.accounts.api.limits import Standing, count_request
from fabric.accounts.api.pages import PAGE_PARAMETERS, CursorPage
from fabric.accounts.api.parsing import StrictJsonParser, read_fields, read_query
from fabric.accounts.api.problems import problem_answer, problem_of_refusal
from fabric.accounts.api.repeats import answer_once, fingerprint, read_key
from fabric.accounts.domain.actors import Actor
from fabric.accounts.domain.roles import Right
from fabric.accounts.models import ApiKey
from fabric.lib import ids
from fabric.lib.clock import utc_now
from fabric.lib.errors import DomainError, FieldError, InvalidInput, NotAllowed

API_VERSION = "2026-11-30"
M = TypeVar("M", bound=models.Model)
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class ScopeMissing(NotAllowed):
    """The key is good, but was not made for this."""

    code = "SCOPE_MISSING"


class UnknownApiVersion(DomainError):
    """`Api-Version` names a version that this server does not speak."""

    code = "UNKNOWN_API_VERSION"
    status = 400


class ApiView(APIView):
    """Base of all endpoints.

    A subclass declares what it needs and makes one service call::

        class LeaseList(ApiView):
            scopes = {"get": "leases:read", "post": "leases:write"}
            rights = {"post": Right.ORDER}  # reading needs Right.SEE; writing says what it needs
            idempotency = "required"

            @extend_schema(
                operation_id="leases_list", parameters=[LeaseQuery], responses=page_of(LeaseOutput)
            )
            def get(self, request: Request) -> Response:
                query = self.read_query(LeaseQuery)  # a PageQuery; unknown parameters are refused
                leases = Lease.objects.visible_to(self.actor).filter(**query)
                return self.page(leases, order=("-created_at", "-id"), represent=show_lease)

            @extend_schema(operation_id="leases_create", request=LeaseInput, responses={201: …})
            def post(self, request: Request) -> Response:
                given = self.read_body(LeaseInput)  # unknown fields are refused
                lease = place(actor=self.actor, now=self.now, **given)
                return Response(show_lease(lease), status=201)

    Refusals (`DomainError`) travel up and become problems; no view catches them. `GET` replies carry
    an ETag; edits of price, state or payout call `require_match(request, show_lease(lease))` first.
    """

    scopes: ClassVar[Mapping[str, str]] = {}
    rights: ClassVar[Mapping[str, Right]] = {}
    idempotency: ClassVar[Literal["required", "optional"]] = "optional"
    keep_answers: ClassVar[timedelta] = timedelta(days=1)
    """How long an idempotency key is remembered; 30 days where money moves."""
    answers_secret: ClassVar[bool] = False
    """Whether answers hold a secret shown once; a stored answer is then encrypted."""
    is_transactional: ClassVar[bool] = True
    """False only where the service calls out over the network and is idempotent by itself."""
    is_for_operators: ClassVar[bool] = False
    """Whether only operators of the exchange may call this, whatever their organisation."""
    is_public: ClassVar[bool] = False
    """Whether reading needs no key."""
    allows_validate_only: ClassVar[bool] = False
    """Whether `?validate_only=true` does everything, answers, and undoes it."""

    authentication_classes = (ApiKeyAuthentication, PageSessionAuthentication)
    parser_classes = (StrictJsonParser,)
    permission_classes = ()
    _standing: Standing | None = None

    @cached_property
    def actor(self) -> Actor:
        """Who calls; raises NotAuthenticated for a public endpoint's anonymous reader."""
        if not self.is_authenticated:
            raise NotAuthenticated
        return actor_for(self.request)

    @cached_property
    def now(self) -> datetime:
        """The instant of this request, one and the same for all it does."""
        return utc_now()

    @property
    def is_authenticated(self) -> bool:
        """Whether a key or a signed-in person calls."""
        return bool(self.request.user.is_authenticated)

    @property
    def idempotency_key(self) -> str | None:
        """The caller's key for this request, for services that store it beside their effect."""
        return read_key(self.request, required=False)

    @cached_property
    def is_validate_only(self) -> bool:
        """Whether the caller only asks what would happen."""
        given = self.request.query_params.get("validate_only", "false")
        if given not in ("true", "false") or (given == "true" and not self.allows_validate_only):
            raise InvalidInput(
                "validate_only cannot be used like this.",
                errors=(FieldError("validate_only", "Not accepted here.", "true or false"),),
            )
        return given == "true"

    def read_body(self, serializer_class: type[serializers.BaseSerializer[Any]]) -> dict[str, Any]:
        """Return the validated body; unknown fields are refused by name."""
        return read_fields(serializer_class, cast("Mapping[str, Any]", self.request.data))

    def read_query(self, serializer_class: type[serializers.BaseSerializer[Any]]) -> dict[str, Any]:
        """Return the validated filters of a list, without `limit` and `cursor`."""
        query = read_query(serializer_class, self.request.query_params)
        return {name: value for name, value in query.items() if name not in PAGE_PARAMETERS}

    def page(
        self,
        queryset: "models.QuerySet[M]",
        *,
        order: Sequence[str],
        represent: Callable[[M], Mapping[str, Any]],
    ) -> Response:
        """Return one page of a queryset; `order` ends with a unique field."""
        tenant = self.actor.organisation_id if self.is_authenticated else None
        return CursorPage(self.request, queryset, order=order, tenant=tenant).response(represent)

    def check_permissions(self, request: Request) -> None:
        """Refuse the anonymous (401), then a key without the scope, then a role without the right."""
        refuse_key_in_url(request)
        method = (request.method or "").lower().replace("head", "get")
        if not self.is_authenticated:
            if self.is_public and request.method in _SAFE:
                return
            raise NotAuthenticated
        scope = self.scopes.get(method)
        if isinstance(request.auth, ApiKey) and scope and scope not in request.auth.scopes:
            raise ScopeMissing(f"This key lacks the scope {scope}.", metadata={"scope": scope})
        if self.is_for_operators:
            self.actor.require_operator()
        elif method in self.scopes and not (self.is_public and request.method in _SAFE):
            # Writing that declares no right is for owners and admins until it does.
            default = Right.SEE if request.method in _SAFE else Right.MANAGE_MEMBERS
            self.actor.require(self.rights.get(method, default))

    def check_throttles(self, request: Request) -> None:
        """Count this request against the caller's limit."""
        self._standing = count_request(
            request, policy="default" if self.is_authenticated else "anonymous"
        )
        if self._standing is not None and self._standing.remaining < 0:
            raise Throttled(wait=self._standing.reset_seconds)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Check what holds for every request before any handler runs."""
        super().initial(request, *args, **kwargs)
        version = request.headers.get("Api-Version", API_VERSION)
        if version != API_VERSION:
            raise UnknownApiVersion(
                f"This server speaks version {API_VERSION}.", metadata={"versions": [API_VERSION]}
            )
        if request.method not in _SAFE:
            for name in request.query_params:
                if name != "validate_only":
                    raise InvalidInput(
                        "Writing takes no query parameters.",
                        errors=(FieldError(name, "There is no such parameter.", ""),),
                    )

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Serve the request; writes go through the idempotency key where one is sent."""
        self.args, self.kwargs = args, kwargs
        self.request = wrapped = self.initialize_request(request, *args, **kwargs)
        self.headers = self.default_response_headers
        response: HttpResponseBase
        try:
            self.initial(wrapped, *args, **kwargs)
            name = (wrapped.method or "").lower()
            handler = getattr(self, name, None) if name in self.http_method_names else None
            if handler is None:
                response = self.http_method_not_allowed(wrapped, *args, **kwargs)
            elif wrapped.method in _SAFE:
                response = handler(wrapped, *args, **kwargs)
            else:
                response = self._write(handler)
        except Exception as exc:  # noqa: BLE001 - the border: every failure becomes a problem
            response = self.handle_exception(exc)
        return self.finalize_response(wrapped, response, *args, **kwargs)

    def finalize_response(  # type: ignore[override]  # a replayed answer is a plain response
        self, request: Request, response: HttpResponseBase, *args: Any, **kwargs: Any
    ) -> HttpResponseBase:
        """Add what every reply carries: version, limits, entity tag."""
        if request.method in ("GET", "HEAD") and isinstance(response, Response):
            response = self._tag(request, response)
        final = super().finalize_response(
            request,
            response,  # type: ignore[arg-type]
            *args,
            **kwargs,
        )
        final["Api-Version"] = API_VERSION
        if not final.has_header("Cache-Control"):
            final["Cache-Control"] = "private, no-cache"
        if self._standing is not None:
            for name, value in self._standing.headers().items():
                final[name] = value
        return final

    def _write(self, handler: Any) -> HttpResponseBase:
        def work() -> Response:
            response: Response = handler(self.request, *self.args, **self.kwargs)
            return response

        required = self.idempotency == "required" and self.request.method == "POST"
        if self.is_validate_only:
            with transaction.atomic():
                response = work()
                transaction.set_rollback(True)
            return response
        key = read_key(self.request, required=required)
        if key is None:
            return work()
        match = self.request.resolver_match
        return answer_once(
            work,
            refuse=lambda exc: problem_answer(problem_of_refusal(exc, path=self.request.path)),
            tenant=self._tenant(),
            route=f"{self.request.method} {match.route if match else self.request.path}",
            key=key,
            request_hash=fingerprint(self.request, version=API_VERSION),
            now=self.now,
            keep=self.keep_answers,
            is_secret=self.answers_secret,
            is_transactional=self.is_transactional,
        )

    def _tenant(self) -> str:
        organisation = self.actor.organisation_id
        return self.actor.id if organisation is None else ids.to_public("org", organisation)

    def _tag(self, request: Request, response: Response) -> Response:
        if response.status_code != 200 or not isinstance(response.data, Mapping):
            return response
        etag = etag_of(response.data)
        if is_unchanged(request, etag):
            response = Response(status=304)
        response["ETag"] = etag
        return response
