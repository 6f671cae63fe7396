"""What a provider has earned and may still earn, from the rows the money itself comes from."""

from dataclasses import dataclass

from django.db import connection

from billing.domain.accounts import earned_code
from billing.domain.states import UsageState
from billing.models import Account
from fabric.accounts.models import Organisation

# The provider takes what the floored fee shares leave of each line, by its pinned parameters.
_UNSETTLED = """
SELECT u.state, sum(u.amount_micros
    - floor(u.amount_micros::numeric * (p.body ->> 'verification_bps')::int / 10000)
    - floor(u.amount_micros::numeric * (p.body ->> 'network_bps')::int / 10000)
    - floor(u.amount_micros::numeric * (p.body ->> 'infrastructure_bps')::int / 10000)
    - floor(u.amount_micros::numeric * (p.body ->> 'margin_bps')::int / 10000))
  FROM billing_usagerecord u
    JOIN billing_agreement a ON a.id = u.agreement_id
    JOIN billing_terms t ON t.id = u.terms_id
    JOIN journal_protocolparameters p ON p.digest = t.parameters_digest
  WHERE a.provider_id = %s AND u.state IN ('pending', 'disputed')
  GROUP BY u.state
"""


@dataclass(frozen=True)
class Earnings:
    """A provider's share of its lines by state, in micro-units."""

    pending: int
    disputed: int
    earned: int


def by_state(organisation: Organisation) -> Earnings:
    """Return the provider's share of pending, disputed and settled lines. Costs two queries."""
    with connection.cursor() as cursor:
        cursor.execute(_UNSETTLED, [organisation.pk])
        shares = {state: int(total) for state, total in cursor.fetchall()}
    account = Account.objects.filter(code=earned_code(organisation.public_id)).first()
    return Earnings(
        pending=shares.get(UsageState.PENDING, 0),
        disputed=shares.get(UsageState.DISPUTED, 0),
        earned=account.balance_micros if account else 0,
    )
