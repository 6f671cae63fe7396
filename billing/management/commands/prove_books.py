"""Proves the books from their rows, at once and for a person; a task does the same every night."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from billing.services.proof import prove_books
from fabric.lib.clock import utc_now


class Command(BaseCommand):
    """`manage.py prove_books`: fails with the rows that contradict a statement."""

    help = "Check every statement about the ledger against its rows."

    def handle(self, *args: Any, **options: Any) -> None:
        """Say that the books are right, or which rows say otherwise."""
        found = prove_books(now=utc_now())
        if found:
            lines = [f"{item.statement}: {', '.join(item.rows)}" for item in found]
            raise CommandError("The books are not right.\n" + "\n".join(lines))
        self.stdout.write("The books are right: no row contradicts any statement about them.")
