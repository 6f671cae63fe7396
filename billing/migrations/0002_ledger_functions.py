"""The functions and triggers through which alone the ledger changes."""

from pathlib import Path

from django.db import migrations

SQL = Path(__file__).resolve().parent.parent / "sql"


class Migration(migrations.Migration):
    dependencies = [("billing", "0001_initial")]

    operations = [
        migrations.RunSQL(
            (SQL / "ledger.sql").read_text(encoding="utf-8"),
            (SQL / "ledger_drop.sql").read_text(encoding="utf-8"),
        )
    ]
