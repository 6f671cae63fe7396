"""A passkey, added and used in a real browser with a virtual authenticator."""

import pytest
from playwright.sync_api import Browser

from tests.browser.harness import open_window
from tests.world import PASSWORD, World

pytestmark = pytest.mark.e2e


def test_a_person_adds_a_passkey_and_signs_in_with_it(
    browser: Browser, live_server_url: str, world: World
) -> None:
    """R-E4 (page): passkeys work under the content policy, from adding to signing in."""
    # A passkey belongs to a name; browsers give none to a bare address.
    url = live_server_url.replace("127.0.0.1", "localhost")
    with open_window(browser, url) as visitor:
        page = visitor.page
        device = visitor.context.new_cdp_session(page)
        device.send("WebAuthn.enable")
        device.send(
            "WebAuthn.addVirtualAuthenticator",
            {
                "options": {
                    "protocol": "ctap2",
                    "transport": "internal",
                    "hasResidentKey": True,
                    "hasUserVerification": True,
                    "isUserVerified": True,
                    "automaticPresenceSimulation": True,
                }
            },
        )
        visitor.go("/accounts/login/")
        page.fill("[name=login]", world.alice.email)
        page.fill("[name=password]", PASSWORD)
        page.click("main form button[type=submit]:not([form])")
        page.wait_for_url(f"{url}/")
        visitor.go("/accounts/2fa/webauthn/add/")
        page.fill("[name=password]", PASSWORD)
        page.click("main form button[type=submit]:not([form])")
        page.wait_for_url("**/webauthn/add/")
        page.fill("[name=name]", "laptop")
        page.check("[name=passwordless]")
        page.click("#mfa_webauthn_add")
        page.wait_for_url("**/2fa/**codes/**")
        visitor.go("/settings/security/")
        assert "1 in use" in page.inner_text("main")

        visitor.go("/accounts/logout/")
        page.click("main form button[type=submit]")
        page.wait_for_url(f"{url}/")
        visitor.go("/accounts/login/")
        page.click("#passkey_login")
        page.wait_for_url(f"{url}/")
        visitor.go("/settings/security/")
        assert "1 in use" in page.inner_text("main")
