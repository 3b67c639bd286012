// The last statement of a transaction that holds a user's SQL
// It does what a commit does, for one run, and raises an error where that would be refused: the user's part goes with it. The commit that the
// caller sends right behind it is a rollback then. And the statement that starts a run in a transaction of the user's.

/** Refused; the message is the answer. */
export const REFUSED = "PAWL2";
/** The transaction is not the one that was begun. */
export const OTHER_TRANSACTION = "PAWL3";

/** The user's SQL has made it read-only. */
export const MADE_READ_ONLY = "PAWL5";

/** A run was to be started in a transaction, and there is none. */
export const NO_TRANSACTION = "PAWL4";

const PARAMETERS = `p_worker text, p_lane int, p_now double precision, p_numbers bigint[],
      e_part int[], e_seq bigint[], e_at double precision[], e_type text[], e_key text[], e_data text[], e_bytes bytea[], e_hash text[],
      p_creates jsonb, p_ends jsonb, p_parts jsonb, p_locks text[], v_data text[], v_bytes bytea[]`;

const ARGUMENTS = `p_worker, p_lane, p_now, p_numbers, e_part, e_seq, e_at, e_type, e_key, e_data, e_bytes, e_hash, p_creates, p_ends, p_parts,
        p_locks, v_data, v_bytes`;

export function transactFunctions(s: string): string {
  return `
    create function ${s}.transact_1(p_transaction text, ${PARAMETERS}) returns jsonb language plpgsql as $$
    declare
      v_done jsonb;
      v_answer jsonb;
    begin
      if current_setting('pawl.transaction', true) is distinct from p_transaction then
        raise exception sqlstate '${OTHER_TRANSACTION}' using message = 'The transaction was ended before its time.';
      end if;
      if current_setting('transaction_read_only')::boolean and current_setting('pawl.read_only', true) = 'off' then
        raise exception sqlstate '${MADE_READ_ONLY}' using message = 'The transaction is read-only.';
      end if;
      v_done := ${s}.commit_1(${ARGUMENTS});
      v_answer := case when v_done is null then '{"kind":"refused","why":"fenced"}' else v_done #> '{answers,1}' end;
      if v_answer ->> 'kind' <> 'applied' then
        raise exception sqlstate '${REFUSED}' using message = v_answer::text;
      end if;
      return v_done;
    end $$;

    /* Creates a run in the caller's transaction, and says so to others when that commits. A setting of the statement before tells that there is one. */
    create function ${s}.enlist_1(p_transaction text, p_channel text, ${PARAMETERS}) returns text language plpgsql as $$
    declare
      v_done jsonb;
      v_answer jsonb;
    begin
      if current_setting('pawl.enlisted', true) is distinct from p_transaction then
        raise exception sqlstate '${NO_TRANSACTION}' using message = 'No transaction is open on this connection.';
      end if;
      v_done := ${s}.commit_1(${ARGUMENTS});
      v_answer := v_done #> '{answers,1}';
      if v_answer ->> 'kind' <> 'applied' then return v_answer::text; end if;
      perform pg_notify(p_channel, '{"isWork":true,"runs":[]}');
      return jsonb_build_object('kind', 'applied', 'n', v_done #> '{numbers,0}')::text;
    end $$;`;
}
