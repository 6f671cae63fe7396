"""Endpoints of a provider: its profile, its nodes, and what was shown about them."""

from typing import Any

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from fabric.accounts.access import access_organisation
from fabric.accounts.api.base import ApiView
from fabric.accounts.api.conditions import require_match
from fabric.accounts.api.pages import PageQuery, page_of
from fabric.accounts.api.schema import EnvelopeOutput
from fabric.accounts.domain.roles import Right
from fabric.journal.services.parameters import get_operational
from fabric.lib.errors import NotVisible
from fabric_protocol.payloads import ENVELOPE_CONTENT_TYPE
from providers.access import (
    access_challenge,
    access_enrolment_token,
    access_node,
    access_provider,
    access_report,
)
from providers.api.shapes import (
    ChallengeOutput,
    EnrolmentTokenInput,
    EnrolmentTokenOutput,
    HardwareClassOutput,
    KeyRevocationInput,
    KeyRevocationOutput,
    NewEnrolmentTokenOutput,
    NewProviderInput,
    NodeDetailOutput,
    NodeOutput,
    NodeQuery,
    ProviderInput,
    ProviderOutput,
    ReportDetailOutput,
    ReportOutput,
    show_challenge,
    show_class,
    show_node,
    show_provider,
    show_report,
    show_token,
    show_unit,
)
from providers.models import Challenge, EnrolmentToken, HardwareClass, HardwareReport, Node, Unit
from providers.selectors import liveness_now, path_of
from providers.services.capacity import list_free_units
from providers.services.challenges import retest_node
from providers.services.enrolment import create_token, revoke_token, token_state
from providers.services.nodes import measured_facts, retire_node, revoke_keys
from providers.services.profile import change_profile
from providers.services.registration import register_provider


class ProviderDetail(ApiView):
    """The caller's organisation as a provider."""

    scopes = {"get": "provider:read", "post": "provider:write", "put": "provider:write"}
    rights = {"post": Right.PROVIDE, "put": Right.PROVIDE}

    @extend_schema(operation_id="provider_get", responses=ProviderOutput)
    def get(self, request: Request) -> Response:
        """Read what your organisation declares as a provider."""
        return Response(show_provider(access_provider(actor=self.actor)))

    @extend_schema(
        operation_id="provider_create", request=NewProviderInput, responses={201: ProviderOutput}
    )
    def post(self, request: Request) -> Response:
        """Become a provider."""
        given = self.read_body(NewProviderInput)
        provider = register_provider(
            actor=self.actor,
            organisation=access_organisation(actor=self.actor),
            now=self.now,
            **given,
        )
        return Response(show_provider(provider), status=201)

    @extend_schema(operation_id="provider_change", request=ProviderInput, responses=ProviderOutput)
    def put(self, request: Request) -> Response:
        """Change what you declare; wants `If-Match`."""
        provider = access_provider(actor=self.actor)
        require_match(request, show_provider(provider))
        given = self.read_body(ProviderInput)
        changed = change_profile(actor=self.actor, provider=provider, now=self.now, **given)
        return Response(show_provider(changed))


class NodeList(ApiView):
    """The provider's nodes."""

    scopes = {"get": "provider:read"}

    @extend_schema(operation_id="nodes_list", parameters=[NodeQuery], responses=page_of(NodeOutput))
    def get(self, request: Request) -> Response:
        """List your nodes, newest first: state, health, tier, and what holds them back."""
        chosen = self.read_query(NodeQuery)
        nodes = Node.objects.visible_to(self.actor).filter(**chosen).select_related("beat")
        rules = get_operational(now=self.now)
        return self.page(
            nodes,
            order=("-enrolled_at", "-id"),
            represent=lambda node: show_node(
                node, health=liveness_now(node=node, now=self.now, rules=rules)
            ),
        )


class NodeView(ApiView):
    """One node, if the caller may see it."""

    scopes = {"get": "provider:read"}

    def find(self, node_id: str) -> Node:
        """Return the node, or raise NotVisible."""
        return access_node(actor=self.actor, public_id=node_id)

    def show(self, node: Node) -> dict[str, Any]:
        """Return the node as `NodeOutput`."""
        return show_node(node, health=liveness_now(node=node, now=self.now))


class NodeDetail(NodeView):
    """A node and the evidence about it."""

    @extend_schema(operation_id="nodes_get", responses=NodeDetailOutput)
    def get(self, request: Request, node_id: str) -> Response:
        """Read a node: its path with times, every measured fact, its units."""
        node = self.find(node_id)
        free = {unit.pk for unit in list_free_units(node=node, now=self.now)}
        units = (
            Unit.objects.offered()
            .filter(device__node=node)
            .select_related("device")
            .order_by("device__ordinal", "slots")
        )
        facts = measured_facts(node=node)
        body = self.show(node) | {
            "path": [
                {
                    "name": step.name,
                    "state": step.state,
                    "at": step.at,
                    "elapsed_seconds": (
                        None if step.since_start is None else step.since_start.total_seconds()
                    ),
                }
                for step in path_of(node=node)
            ],
            "facts": [{"field": field, **fact} for field, fact in sorted(facts.items())],
            "units": [show_unit(unit, free=unit.pk in free) for unit in units],
        }
        return Response(body)


class NodeChallengeList(NodeView):
    """The challenges of a node."""

    scopes = {"get": "provider:read", "post": "provider:write"}
    rights = {"post": Right.PROVIDE}

    @extend_schema(
        operation_id="node_challenges_list",
        parameters=[PageQuery],
        responses=page_of(ChallengeOutput),
    )
    def get(self, request: Request, node_id: str) -> Response:
        """List a node's challenges with figures and verdicts, newest first."""
        node = self.find(node_id)
        self.read_query(PageQuery)
        rows = Challenge.objects.filter(node=node).select_related("node", "report")
        return self.page(rows, order=("-issued_at", "-id"), represent=show_challenge)

    @extend_schema(
        operation_id="node_challenges_create", request=None, responses={201: ChallengeOutput}
    )
    def post(self, request: Request, node_id: str) -> Response:
        """Have a held-back or admitted node tested again; nothing is placed on it meanwhile."""
        challenge = retest_node(actor=self.actor, node=self.find(node_id), now=self.now)
        return Response(show_challenge(challenge), status=201)


class NodeReportList(NodeView):
    """The hardware reports of a node."""

    @extend_schema(
        operation_id="node_reports_list", parameters=[PageQuery], responses=page_of(ReportOutput)
    )
    def get(self, request: Request, node_id: str) -> Response:
        """List what a node said about itself, newest first."""
        node = self.find(node_id)
        self.read_query(PageQuery)
        rows = HardwareReport.objects.filter(node=node).select_related("node")
        return self.page(rows, order=("-received_at", "-id"), represent=show_report)


class NodeRetirement(NodeView):
    """The end of a node."""

    scopes = {"post": "provider:write"}
    rights = {"post": Right.PROVIDE}

    @extend_schema(operation_id="nodes_retire", request=None, responses=NodeOutput)
    def post(self, request: Request, node_id: str) -> Response:
        """Take a node out of service for good; its leases must have ended."""
        node = retire_node(actor=self.actor, node=self.find(node_id), now=self.now)
        return Response(self.show(node))


class NodeKeyRevocation(NodeView):
    """The end of a node's keys."""

    scopes = {"post": "provider:write"}
    rights = {"post": Right.PROVIDE}

    @extend_schema(
        operation_id="node_keys_revoke", request=KeyRevocationInput, responses=KeyRevocationOutput
    )
    def post(self, request: Request, node_id: str) -> Response:
        """Revoke every key of a node, for one that was stolen; the machine enrols anew."""
        node = self.find(node_id)
        given = self.read_body(KeyRevocationInput)
        ended = revoke_keys(actor=self.actor, node=node, reason=given["reason"], now=self.now)
        return Response({"revoked": ended})


class ChallengeDetail(ApiView):
    """One challenge."""

    scopes = {"get": "provider:read"}

    @extend_schema(operation_id="challenges_get", responses=ChallengeOutput)
    def get(self, request: Request, challenge_id: str) -> Response:
        """Read a challenge: the work asked for, the figures against their range, the verdict."""
        return Response(show_challenge(access_challenge(actor=self.actor, public_id=challenge_id)))


class ChallengeEnvelope(ApiView):
    """The exact bytes of an answer."""

    scopes = {"get": "provider:read"}

    @extend_schema(
        operation_id="challenges_envelope",
        responses={(200, ENVELOPE_CONTENT_TYPE): EnvelopeOutput},
    )
    def get(self, request: Request, challenge_id: str) -> HttpResponse:
        """Read the answer's envelope as it was signed and received."""
        challenge = access_challenge(actor=self.actor, public_id=challenge_id)
        if challenge.envelope is None:
            raise NotVisible("This challenge has no answer yet.")
        return HttpResponse(bytes(challenge.envelope), content_type=ENVELOPE_CONTENT_TYPE)


class ReportDetail(ApiView):
    """One hardware report."""

    scopes = {"get": "provider:read"}

    @extend_schema(operation_id="reports_get", responses=ReportDetailOutput)
    def get(self, request: Request, report_id: str) -> Response:
        """Read a report and its digest."""
        report = access_report(actor=self.actor, public_id=report_id)
        return Response(show_report(report) | {"body": report.body})


class ReportEnvelope(ApiView):
    """The exact bytes of a report."""

    scopes = {"get": "provider:read"}

    @extend_schema(
        operation_id="reports_envelope",
        responses={(200, ENVELOPE_CONTENT_TYPE): EnvelopeOutput},
    )
    def get(self, request: Request, report_id: str) -> HttpResponse:
        """Read the envelope as it was signed and received, for checking without us."""
        report = access_report(actor=self.actor, public_id=report_id)
        return HttpResponse(bytes(report.envelope), content_type=ENVELOPE_CONTENT_TYPE)


class EnrolmentTokenList(ApiView):
    """The provider's enrolment tokens."""

    scopes = {"get": "provider:read", "post": "provider:write"}
    rights = {"post": Right.PROVIDE}
    answers_secret = True

    @extend_schema(
        operation_id="enrolment_tokens_list",
        parameters=[PageQuery],
        responses=page_of(EnrolmentTokenOutput),
    )
    def get(self, request: Request) -> Response:
        """List tokens, newest first, without their texts."""
        self.read_query(PageQuery)
        rows = EnrolmentToken.objects.visible_to(self.actor)
        return self.page(rows, order=("-created_at", "-id"), represent=self._show)

    @extend_schema(
        operation_id="enrolment_tokens_create",
        request=EnrolmentTokenInput,
        responses={201: NewEnrolmentTokenOutput},
    )
    def post(self, request: Request) -> Response:
        """Make a token for one machine and one hour; its text is in this answer only."""
        provider = access_provider(actor=self.actor)
        given = self.read_body(EnrolmentTokenInput)
        text, token = create_token(provider=provider, actor=self.actor, now=self.now, **given)
        return Response({**self._show(token), "token": text}, status=201)

    def _show(self, token: EnrolmentToken) -> dict[str, Any]:
        return show_token(token, state=token_state(token, now=self.now))


class EnrolmentTokenRevocation(ApiView):
    """The end of a token."""

    scopes = {"post": "provider:write"}
    rights = {"post": Right.PROVIDE}

    @extend_schema(
        operation_id="enrolment_tokens_revoke", request=None, responses=EnrolmentTokenOutput
    )
    def post(self, request: Request, token_id: str) -> Response:
        """Revoke a token that has enrolled nothing yet."""
        token = access_enrolment_token(actor=self.actor, public_id=token_id)
        revoked = revoke_token(actor=self.actor, token=token, now=self.now)
        return Response(show_token(revoked, state=token_state(revoked, now=self.now)))


class HardwareClassList(ApiView):
    """The reference classes."""

    scopes = {"get": "catalogue:read"}
    is_public = True

    @extend_schema(
        operation_id="classes_list", parameters=[PageQuery], responses=page_of(HardwareClassOutput)
    )
    def get(self, request: Request) -> Response:
        """List classes with the tier each leads to and the ranges figures are held against."""
        self.read_query(PageQuery)
        return self.page(HardwareClass.objects.all(), order=("slug",), represent=show_class)
