"""The hosted payment page: one form, no script, plainly not a real card."""

from html import escape
from typing import Any

_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; display: grid; place-items: center; min-height: 100vh; }
main { width: min(26rem, calc(100vw - 2rem)); }
h1 { font-size: 1.75rem; margin: 0; font-variant-numeric: tabular-nums; }
p { margin: .5rem 0 1.5rem; }
.note { border-left: 4px solid #b45309; padding: .25rem .75rem; }
form { display: grid; gap: .75rem; }
button, a.back { font: inherit; padding: .75rem; border: 2px solid currentColor; border-radius: 6px;
  text-align: center; color: inherit; background: transparent; cursor: pointer;
  text-decoration: none; min-height: 24px; }
button.pay { background: #1d4ed8; border-color: #1d4ed8; color: #fff; font-weight: 600; }
"""


def show_checkout(session: dict[str, Any], *, declined: bool) -> str:
    """Return the page on which a card is charged or declined."""
    amount = f"{session['amount_total'] / 100:,.2f} {str(session['currency']).upper()}"
    alert = (
        '<p class="note" role="alert">The card was declined. Try again, or go back.</p>'
        if declined
        else ""
    )
    back = session.get("cancel_url")
    link = f'<a class="back" href="{escape(back)}">Go back without paying</a>' if back else ""
    return _page(
        f"Pay {amount}",
        f"""<h1>{escape(amount)}</h1>
<p>Balance top-up. This is a stand-in for the card processor: no card is charged.</p>
{alert}
<form method="post">
<button class="pay" name="act" value="pay">Pay with a card that works</button>
<button name="act" value="decline">Pay with a card that is declined</button>
{link}
</form>""",
    )


def show_closed(session: dict[str, Any]) -> str:
    """Return the page of a session that takes no payment any more."""
    state = "paid" if session["payment_status"] == "paid" else "expired"
    back = session.get("cancel_url")
    link = f'<p><a class="back" href="{escape(back)}">Go back</a></p>' if back else ""
    return _page("Payment closed", f"<h1>This payment is {state}.</h1>{link}")


def show_missing() -> str:
    """Return the page of an address that leads nowhere."""
    return _page("Not found", "<h1>There is no such payment.</h1>")


def _page(title: str, body: str) -> str:
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(title)} (stand-in)</title><style>{_STYLE}</style></head>
<body><main>{body}</main></body></html>"""
