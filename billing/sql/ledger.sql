-- The ledger: the only code that changes accounts, transfers and entries.
--
-- The functions run with the rights of the tables' owner; the role the application runs under has
-- no right of its own to write these tables, so what is refused here cannot be done at all.
-- Every function locks the accounts it will change in id order, and ids are handed out so that the
-- order is also wallet, escrow, unsettled, earned, fee, cash: a transaction that first funds and
-- then reserves asks for locks in the same order as a settlement run, and neither waits in a ring.

CREATE FUNCTION ledger_open_account(code text, kind text, owner text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
#variable_conflict use_column
DECLARE
  kinds constant text[] := ARRAY['wallet', 'escrow', 'unsettled', 'earned', 'fee', 'cash', 'rounding'];
  rank constant integer := array_position(kinds, ledger_open_account.kind);
  present billing_account;
BEGIN
  IF rank IS NULL THEN
    RAISE EXCEPTION 'no account is of kind %', ledger_open_account.kind
      USING ERRCODE = '23514', CONSTRAINT = 'an_account_is_of_a_known_kind';
  END IF;
  SELECT * INTO present FROM billing_account a WHERE a.code = ledger_open_account.code;
  IF NOT FOUND THEN
    INSERT INTO billing_account (id, code, kind, owner, never_negative,
        debits_posted, credits_posted, debits_pending, credits_pending)
      VALUES (rank * 1000000000000000 + nextval(pg_get_serial_sequence('billing_account', 'id')),
        ledger_open_account.code, ledger_open_account.kind, ledger_open_account.owner,
        ledger_open_account.kind IN ('wallet', 'escrow'), 0, 0, 0, 0)
      ON CONFLICT (code) DO NOTHING;
    SELECT * INTO STRICT present FROM billing_account a WHERE a.code = ledger_open_account.code;
  END IF;
  IF present.kind <> ledger_open_account.kind OR present.owner <> ledger_open_account.owner THEN
    RAISE EXCEPTION 'account % belongs to something else', code
      USING ERRCODE = '23505', CONSTRAINT = 'an_account_has_one_owner';
  END IF;
  RETURN present.id;
END $$;

CREATE FUNCTION ledger_lock(ids bigint[]) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp SET lock_timeout = '5s' AS $$
BEGIN
  PERFORM 1 FROM billing_account WHERE id = ANY (ids) ORDER BY id FOR NO KEY UPDATE;
  IF EXISTS (SELECT 1 FROM billing_account WHERE id = ANY (ids) AND closed_at IS NOT NULL) THEN
    RAISE EXCEPTION 'a closed account takes no transfer'
      USING ERRCODE = '23514', CONSTRAINT = 'a_closed_account_takes_no_transfer';
  END IF;
END $$;

-- A repeat of the same request returns the first transfer; the same key for another is refused.
CREATE FUNCTION ledger_first_answer(key text, hash bytea) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
DECLARE
  old billing_transfer;
BEGIN
  SELECT * INTO old FROM billing_transfer WHERE idempotency_key = key;
  IF FOUND AND old.request_hash <> hash THEN
    RAISE EXCEPTION 'key % was used for another request', key
      USING ERRCODE = '23505', CONSTRAINT = 'a_key_stands_for_one_request';
  END IF;
  RETURN old.id;
END $$;

-- Moves money (phase single) or promises it (phase pending) from one account to another.
CREATE FUNCTION ledger_transfer(
  key text, phase text, kind text, debit bigint, credit bigint, amount bigint, effective timestamptz
) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
  hash constant bytea := sha256(convert_to(concat_ws('|', phase, kind, debit, credit, amount), 'utf8'));
  made bigint := ledger_first_answer(key, hash);
BEGIN
  IF made IS NOT NULL THEN
    RETURN made;
  END IF;
  IF phase NOT IN ('single', 'pending') OR amount IS NULL OR amount <= 0 OR debit = credit THEN
    RAISE EXCEPTION 'a transfer moves something between two accounts'
      USING ERRCODE = '23514', CONSTRAINT = 'a_transfer_moves_something';
  END IF;
  PERFORM ledger_lock(ARRAY[debit, credit]);
  INSERT INTO billing_transfer (idempotency_key, request_hash, phase, kind, amount_micros,
      debit_account_id, credit_account_id, effective_at)
    VALUES (key, hash, phase, kind, amount, debit, credit, effective)
    ON CONFLICT (idempotency_key) DO NOTHING RETURNING id INTO made;
  IF made IS NULL THEN  -- the same request was booked while this one waited
    RETURN ledger_first_answer(key, hash);
  END IF;
  IF phase = 'single' THEN
    UPDATE billing_account SET
        debits_posted = debits_posted + CASE WHEN id = debit THEN amount ELSE 0 END,
        credits_posted = credits_posted + CASE WHEN id = credit THEN amount ELSE 0 END
      WHERE id IN (debit, credit);
    INSERT INTO billing_entry (transfer_id, account_id, amount_micros)
      VALUES (made, debit, amount), (made, credit, -amount);
  ELSE
    UPDATE billing_account SET
        debits_pending = debits_pending + CASE WHEN id = debit THEN amount ELSE 0 END,
        credits_pending = credits_pending + CASE WHEN id = credit THEN amount ELSE 0 END
      WHERE id IN (debit, credit);
  END IF;
  RETURN made;
END $$;

-- Resolves pendings, many in one call: posts `amount` to the credit legs and frees the rest; an
-- amount of zero is a void. Each request is {key, kind, pending, amount, record, legs: [[account,
-- amount], …]}. All or none: a request that breaks a rule fails the call, and its caller bisects.
CREATE FUNCTION ledger_resolve(requests jsonb, effective timestamptz) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp SET lock_timeout = '5s' AS $$
DECLARE
  touched bigint[];
  resolved integer;
BEGIN
  SELECT array_agg(id) INTO touched FROM (
    SELECT p.debit_account_id AS id FROM jsonb_array_elements(requests) r
      JOIN billing_transfer p ON p.id = (r ->> 'pending')::bigint
    UNION SELECT p.credit_account_id FROM jsonb_array_elements(requests) r
      JOIN billing_transfer p ON p.id = (r ->> 'pending')::bigint
    UNION SELECT (leg ->> 0)::bigint
      FROM jsonb_array_elements(requests) r, jsonb_array_elements(r -> 'legs') leg
  ) accounts;
  PERFORM ledger_lock(touched);

  IF EXISTS (
    SELECT 1 FROM jsonb_array_elements(requests) r
      LEFT JOIN billing_transfer p ON p.id = (r ->> 'pending')::bigint AND p.phase = 'pending'
      WHERE p.id IS NULL OR (r ->> 'amount')::bigint > p.amount_micros
        OR (r ->> 'amount')::bigint IS NULL OR (r ->> 'amount')::bigint < 0
  ) THEN
    RAISE EXCEPTION 'more than was reserved cannot be posted'
      USING ERRCODE = '23514', CONSTRAINT = 'a_post_is_at_most_what_was_reserved';
  END IF;
  IF EXISTS (
    SELECT 1 FROM jsonb_array_elements(requests) r
      WHERE (r ->> 'amount')::bigint <> coalesce(
        (SELECT sum((leg ->> 1)::bigint) FROM jsonb_array_elements(r -> 'legs') leg), 0)
      OR EXISTS (SELECT 1 FROM jsonb_array_elements(r -> 'legs') leg
        WHERE (leg ->> 1)::bigint < 0 OR NOT EXISTS (
          SELECT 1 FROM billing_account a WHERE a.id = (leg ->> 0)::bigint))
  ) THEN
    RAISE EXCEPTION 'the legs do not add up to the amount'
      USING ERRCODE = '23514', CONSTRAINT = 'legs_add_up_to_the_amount';
  END IF;
  IF EXISTS (
    SELECT 1 FROM jsonb_array_elements(requests) r
      JOIN billing_transfer t ON t.idempotency_key = r ->> 'key'
      WHERE t.request_hash <> sha256(convert_to(r::text, 'utf8'))
  ) THEN
    RAISE EXCEPTION 'a key was used for another request'
      USING ERRCODE = '23505', CONSTRAINT = 'a_key_stands_for_one_request';
  END IF;

  WITH request AS (
    SELECT r ->> 'key' AS key, r ->> 'kind' AS kind, (r ->> 'pending')::bigint AS pending_id,
        (r ->> 'amount')::bigint AS amount, (r ->> 'record')::uuid AS record_id, r -> 'legs' AS legs,
        sha256(convert_to(r::text, 'utf8')) AS hash
      FROM jsonb_array_elements(requests) r
  ), made AS (
    INSERT INTO billing_transfer (idempotency_key, request_hash, phase, kind, pending_id,
        amount_micros, debit_account_id, record_id, effective_at)
      SELECT q.key, q.hash, CASE WHEN q.amount = 0 THEN 'void' ELSE 'post' END, q.kind, q.pending_id,
          q.amount, p.debit_account_id, q.record_id, effective
        FROM request q JOIN billing_transfer p ON p.id = q.pending_id
        ORDER BY q.pending_id
      ON CONFLICT (idempotency_key) DO NOTHING
      RETURNING id, idempotency_key, pending_id, amount_micros
  ), leg AS (
    SELECT m.id AS transfer_id, (l ->> 0)::bigint AS account_id, (l ->> 1)::bigint AS amount
      FROM made m JOIN request q ON q.key = m.idempotency_key, jsonb_array_elements(q.legs) l
      WHERE (l ->> 1)::bigint <> 0
  ), entered AS (
    INSERT INTO billing_entry (transfer_id, account_id, amount_micros)
      SELECT m.id, p.debit_account_id, m.amount_micros
        FROM made m JOIN billing_transfer p ON p.id = m.pending_id WHERE m.amount_micros > 0
      UNION ALL SELECT transfer_id, account_id, -amount FROM leg
  ), change AS (
    SELECT id, sum(debit) AS debit, sum(credit) AS credit,
        sum(debit_freed) AS debit_freed, sum(credit_freed) AS credit_freed
      FROM (
        SELECT p.debit_account_id AS id, m.amount_micros AS debit, 0::bigint AS credit,
            p.amount_micros AS debit_freed, 0::bigint AS credit_freed
          FROM made m JOIN billing_transfer p ON p.id = m.pending_id
        UNION ALL SELECT p.credit_account_id, 0, 0, 0, p.amount_micros
          FROM made m JOIN billing_transfer p ON p.id = m.pending_id
        UNION ALL SELECT account_id, 0, amount, 0, 0 FROM leg
      ) parts GROUP BY id
  ), counted AS (
    UPDATE billing_account a SET
        debits_posted = a.debits_posted + c.debit,
        credits_posted = a.credits_posted + c.credit,
        debits_pending = a.debits_pending - c.debit_freed,
        credits_pending = a.credits_pending - c.credit_freed
      FROM change c WHERE a.id = c.id
  )
  SELECT count(*) INTO resolved FROM made;
  RETURN resolved;
END $$;

-- Closes an account for good; refused while it holds or promises anything.
CREATE FUNCTION ledger_close_account(account bigint, at timestamptz) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER
SET search_path = public, pg_temp SET lock_timeout = '5s' AS $$
BEGIN
  PERFORM ledger_lock(ARRAY[account]);
  UPDATE billing_account SET closed_at = at WHERE id = account
    AND debits_posted = credits_posted AND debits_pending = 0 AND credits_pending = 0;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'an account that holds or promises something stays open'
      USING ERRCODE = '23514', CONSTRAINT = 'a_closed_account_is_empty';
  END IF;
END $$;

-- All entries of a transfer arrive in one statement; an unbalanced one is refused there and then.
CREATE FUNCTION ledger_entries_balance() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM fresh GROUP BY transfer_id HAVING sum(amount_micros) <> 0) THEN
    RAISE EXCEPTION 'the entries of a transfer sum to zero'
      USING ERRCODE = '23514', CONSTRAINT = 'entries_sum_to_zero';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER entries_sum_to_zero AFTER INSERT ON billing_entry
  REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT EXECUTE FUNCTION ledger_entries_balance();

-- Rows of the ledger are never changed or removed, in bulk either; counters only by the functions.
CREATE FUNCTION ledger_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = '42501';
END $$;
CREATE TRIGGER transfers_are_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON billing_transfer
  FOR EACH STATEMENT EXECUTE FUNCTION ledger_append_only();
CREATE TRIGGER entries_are_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON billing_entry
  FOR EACH STATEMENT EXECUTE FUNCTION ledger_append_only();
CREATE TRIGGER accounts_are_never_removed BEFORE DELETE OR TRUNCATE ON billing_account
  FOR EACH STATEMENT EXECUTE FUNCTION ledger_append_only();

REVOKE ALL ON FUNCTION ledger_first_answer(text, bytea) FROM PUBLIC;
