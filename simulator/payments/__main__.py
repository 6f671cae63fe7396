"""Runs the payment stand-in: `python -m simulator.payments --port … --webhook-url … --secret …`."""

import argparse
import signal
import sys
import threading

from simulator.payments.server import StandIn


def main() -> int:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(prog="simulator.payments", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one and prints it")
    parser.add_argument("--webhook-url", required=True, help="on this machine")
    parser.add_argument("--secret", required=True, help="signs the webhooks")
    parser.add_argument("--state", default=":memory:", help="a SQLite file; in memory by default")
    given = parser.parse_args()
    try:
        standin = StandIn(
            port=given.port,
            webhook_url=given.webhook_url,
            secret=given.secret,
            state=given.state,
        )
    except ValueError as error:
        parser.error(str(error))
    told = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told.set())
    standin.start()
    print(standin.address, flush=True)
    told.wait()
    standin.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
