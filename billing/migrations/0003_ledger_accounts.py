"""The accounts that every lease touches, in shards, and the card processor's."""

from django.db import migrations

FORWARD = """
SELECT ledger_open_account('unsettled:' || shard, 'unsettled', '') FROM generate_series(0, 15) shard;
SELECT ledger_open_account('fee:' || share || ':' || shard, 'fee', '')
  FROM generate_series(0, 15) shard,
    unnest(ARRAY['verification', 'network', 'infrastructure', 'margin']) share;
SELECT ledger_open_account('cash:stripe', 'cash', '');
"""


class Migration(migrations.Migration):
    dependencies = [("billing", "0002_ledger_functions")]

    operations = [migrations.RunSQL(FORWARD, migrations.RunSQL.noop)]
