"""Leave room on the pages of beats, so that a beat is a heap-only update that touches no index."""

from typing import ClassVar

from django.db import migrations


class Migration(migrations.Migration):
    """Set the fillfactor of the table that every node writes every few seconds."""

    dependencies: ClassVar = [("providers", "0001_initial")]

    operations: ClassVar = [
        migrations.RunSQL(
            "ALTER TABLE providers_nodebeat SET (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.02)",
            "ALTER TABLE providers_nodebeat RESET (fillfactor, autovacuum_vacuum_scale_factor)",
        )
    ]
