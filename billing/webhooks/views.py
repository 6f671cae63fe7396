"""The door at which Stripe knocks."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from billing import stripe_gateway
from billing.services import inbox
from fabric.lib.clock import utc_now

MAX_BODY_BYTES = 256 * 1024


@csrf_exempt
@require_POST
def receive_stripe_event(request: HttpRequest) -> HttpResponse:
    """Verify the exact bytes, store the event once, answer; the work is done afterwards.

    A repeat is answered like the first time.
    """
    if len(request.body) > MAX_BODY_BYTES:
        return JsonResponse({"code": "BODY_TOO_LARGE"}, status=413)
    now = utc_now()
    try:
        event = stripe_gateway.read_webhook(
            body=request.body, signature=request.headers.get("Stripe-Signature", ""), now=now
        )
        inbox.receive_event(event=event, now=now)
    except stripe_gateway.BadWebhook as refusal:
        return JsonResponse({"code": refusal.code, "detail": refusal.message}, status=400)
    return JsonResponse({"received": True})
