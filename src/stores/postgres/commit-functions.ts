// The commit: the hot path
// One call for all runs of a commit, and one transaction. Each statement of a function has a snapshot of its own, taken after the locks that the
// ones before it have waited for; that is what makes the conditions sound, where one large statement would still look at the past (P18, P24).
//
//   K1. The worker's fence row of this lane is locked first, so that whoever deletes it waits for this commit, or this commit finds it gone
//       (P20, P21). It names the server that it was written on: after a hidden failover or restart it counts as gone (P15).
//   K2. Rows of runs are locked in the order of their number, whoever needs them, and before anything is done to others (P24). Where a commit has
//       nothing but ends, it comes to them in that order anyway.
//   K3. Most parts only append to a run that the caller surely owns, create one, or end one that nothing from outside has reached. These take
//       one statement for all, or a short one each. The others follow one by one, in the order of the commit, in \`commit_part_1\`.
//   K4. A part whose condition does not hold leaves no trace. Entries are written last, for the parts that are left.
//   K5. A new run whose id or key somebody has taken in a transaction that is still open waits for that only so long: the lane's other runs
//       wait with it.

/** How long a new run waits for whoever has taken its id or its key (K5). */
const CREATE_LOCK_LIMIT = "500ms";

/** The columns of a new run, as \`newRunJson\` names them. */
const NEW_RUN = `part int, id text, workflow text, version text, line text, patch bigint, trace_id text, key text, tags text[],
  priority double precision, parent text, parent_key text, parent_generation bigint, detached boolean, origin text,
  deadline double precision, head bigint, head_hash text, claimed boolean, ready_at double precision, codec text, slot text,
  rate text`;

/** Inserts new runs, and says the number of each that was: the statement, with what names its time and its list. */
function insertion(s: string, now: string, list: string): string {
  return `
      with given as materialized (
        select *, nextval('${s}.runs_n_seq') as n, claimed and p_worker is not null as is_claimed
        from jsonb_to_recordset(${list}) as run (${NEW_RUN})
      ), inserted as (
        insert into ${s}.runs (n, id, workflow, version, line, patch, state, trace_id, key, tags, priority, parent, parent_key, parent_generation,
          detached, origin, created_at, deadline, head, head_hash, owner, ready_at, wake_at, claims, claimed_head, codec, slot, rate)
        select n, id, workflow, version, line, patch, case when is_claimed then 'running' else 'accepted' end, trace_id, key, tags, priority,
          parent, parent_key, parent_generation, detached, origin, ${now}, deadline, head, head_hash,
          case when is_claimed then p_worker end,
          case when not is_claimed and ready_at <= ${now} then ready_at end,
          case when not is_claimed and ready_at > ${now} then ready_at end,
          case when is_claimed then 1 else 0 end, head, codec, coalesce(slot, ''), coalesce(rate, '')
        from given order by id
        on conflict (id) do nothing
        returning runs.n, runs.tags
      ), tagged as (
        insert into ${s}.tags (tag, run) select distinct unnest(tags), n from inserted where cardinality(tags) > 0
      )
      select given.part, given.n as number from given join inserted using (n)`;
}

/** Not in the language SQL: before version 18, PostgreSQL plans a function in that anew for every call, and this plan is a long one. */
function insertRuns(s: string): string {
  return `
    create function ${s}.insert_runs_1(p_worker text, p_now double precision, p_runs jsonb)
    returns table (part int, number bigint) language plpgsql as $$
    #variable_conflict use_column
    begin
      return query ${insertion(s, "p_now", "p_runs")};
    end $$;`;
}

const IS_OVER = "state in ('succeeded', 'failed', 'cancelled')";

function commitPart(s: string): string {
  return `
    create function ${s}.commit_part_1(p_worker text, p_now double precision, p_part jsonb, v_data text[], v_bytes bytea[])
    returns jsonb language plpgsql as $$
    declare
      v_run text := p_part ->> 'run';
      v_row jsonb := p_part -> 'row';
      v_ended boolean := coalesce((p_part #>> '{row,ended}')::boolean, false);
      r record;
      x jsonb;
      v_n bigint;
      v_head bigint;
      v_seen text[] := '{}';
      v_amount double precision;
      v_value double precision;
      v_max double precision;
      v_by double precision;
      v_at int;
      v_children jsonb := '[]';
    begin
      select n, owner, ${IS_OVER} as has_ended, wake, cancel into r from ${s}.runs where id = v_run for no key update;
      v_n := r.n;
      if p_part ? 'create' then
        if v_n is not null then return ${s}.exists_1(v_run); end if;
      else
        select coalesce(max(seq) + 1, 0) into v_head from ${s}.journal where run = v_n;
        if v_n is null or p_worker is null or r.owner is distinct from p_worker or r.has_ended or v_head <> (p_part ->> 'head')::bigint then
          return jsonb_build_object('kind', 'conflict', 'head', coalesce(v_head, 0));
        end if;
      end if;
      if p_part ? 'ifWake' and (p_part ->> 'ifWake')::bigint <> coalesce(r.wake, 0) then
        return '{"kind":"refused","why":"wake"}';
      end if;
      if p_part ? 'ifNotCancelled' and r.cancel is not null then
        return '{"kind":"refused","why":"cancel"}';
      end if;
      if p_part ? 'consumes' and jsonb_array_length(p_part -> 'consumes') <>
        (select count(*) from ${s}.inbox where run = v_n and not consumed
          and id in (select jsonb_array_elements_text(p_part -> 'consumes')))
      then
        return '{"kind":"refused","why":"consumed"}';
      end if;

      if p_part ? 'create' then
        select number into v_n from ${s}.insert_runs_1(p_worker, p_now, jsonb_build_array(p_part -> 'create'));
        if v_n is null then return ${s}.exists_1(v_run); end if;
      end if;
      -- Whatever is refused from here on is taken back by the caller, with all that this part has written.
      for x in select jsonb_array_elements(p_part -> 'keys') loop
        insert into ${s}.keys as held (space, key, run, digest) values (x ->> 'space', x ->> 'key', v_n, x ->> 'digest')
          on conflict (space, key) do update set run = excluded.run, digest = excluded.digest
          where not (jsonb_build_array(x -> 'space', x -> 'key')::text = any (v_seen))
            and (select id from ${s}.runs where n = held.run) = x ->> 'from';
        if not found then
          raise exception sqlstate 'PAWL1' using message = (select jsonb_build_object('kind', 'refused', 'why', 'key', 'holder',
            case when jsonb_build_array(x -> 'space', x -> 'key')::text = any (v_seen)
              then jsonb_build_object('run', v_run, 'digest', x ->> 'digest')
              else (select jsonb_build_object('run', runs.id, 'digest', keys.digest) from ${s}.keys join ${s}.runs on runs.n = keys.run
                where keys.space = x ->> 'space' and keys.key = x ->> 'key') end))::text;
        end if;
        v_seen := v_seen || jsonb_build_array(x -> 'space', x -> 'key')::text;
      end loop;
      for x, v_at in select value, ordinality - 1 from jsonb_array_elements(p_part -> 'counters') with ordinality loop
        -- Nothing is counted for a run that is gone.
        continue when x ? 'of' and not exists (select 1 from ${s}.runs where id = x ->> 'of');
        select value into v_value from ${s}.counters where key = x ->> 'stored' for no key update;
        v_max := (x ->> 'max')::double precision;
        if x ? 'maxFrom' then v_max := greatest(v_max, (select value from ${s}.counters where key = x ->> 'maxFrom')); end if;
        v_by := (x ->> 'by')::double precision;
        v_amount := ${s}.count_1(x ->> 'stored', v_by, x ? 'atLeast');
        if v_amount < 0 or (v_by > 0 and v_amount > v_max)
          or ((x ->> 'held')::boolean and not ${s}.hold_1(v_n, x ->> 'stored', v_by))
        then
          raise exception sqlstate 'PAWL1' using message = jsonb_build_object('kind', 'refused', 'why', 'counter', 'key', x ->> 'key',
            'at', v_at, 'value', coalesce(v_value, 0), 'max', v_max)::text;
        end if;
      end loop;

      if p_part ? 'consumes' then
        update ${s}.inbox set consumed = true, data = null, bytes = null
          where run = v_n and id in (select jsonb_array_elements_text(p_part -> 'consumes'));
        update ${s}.runs set unread = greatest(unread - jsonb_array_length(p_part -> 'consumes'), 0) where n = v_n;
      end if;
      for x in select jsonb_array_elements(p_part -> 'waits') loop
        if x ? 'closeAll' then delete from ${s}.waits where run = v_n;
        elsif x ? 'close' then delete from ${s}.waits where run = v_n and key = x ->> 'close';
        else
          insert into ${s}.waits (run, key, kind, name, due, detail)
            values (v_n, x #>> '{open,key}', x #>> '{open,kind}', x #>> '{open,name}', (x #>> '{open,due}')::double precision,
              x #>> '{open,detail}')
            on conflict (run, key) do update
            set kind = excluded.kind, name = excluded.name, due = excluded.due, detail = excluded.detail;
        end if;
      end loop;
      for x in select jsonb_array_elements(p_part -> 'state') loop
        insert into ${s}.state (run, key, data, bytes)
          values (v_n, x ->> 'key', v_data[(x ->> 'value')::int], v_bytes[(x ->> 'value')::int])
          on conflict (run, key) do update set data = excluded.data, bytes = excluded.bytes;
      end loop;
      for x in select jsonb_array_elements(p_part -> 'children') loop
        v_children := v_children || coalesce(to_jsonb(${s}.insert_child_1(p_worker, p_now, x, v_data, v_bytes)), 'null');
      end loop;
      if v_row is not null or p_part ? 'cancelling' then
        update ${s}.runs set
          state = coalesce(v_row ->> 'state', state),
          version = coalesce(v_row ->> 'version', version),
          line = coalesce(v_row ->> 'line', line),
          patch = coalesce((v_row ->> 'patch')::bigint, patch),
          head = coalesce((v_row ->> 'head')::bigint, head),
          head_hash = coalesce(v_row ->> 'headHash', head_hash),
          owner = case when v_ended or coalesce((v_row ->> 'release')::boolean, false) then null else owner end,
          ready_at = case when v_ended then null when v_row ? 'readyAt' then (v_row ->> 'readyAt')::double precision else ready_at end,
          wake_at = case when v_ended then null when v_row ? 'wakeAt' then (v_row ->> 'wakeAt')::double precision else wake_at end,
          claims = coalesce((v_row ->> 'claims')::bigint, claims),
          ended_at = coalesce((v_row ->> 'endedAt')::double precision, case when v_ended then p_now else ended_at end),
          stop_reason = coalesce(v_row ->> 'stopReason', stop_reason),
          progress = coalesce(v_row ->> 'progress', progress),
          cost = coalesce(v_row ->> 'cost', cost),
          deadline = coalesce((v_row ->> 'deadline')::double precision, deadline),
          slot = case when v_row ? 'needs' then v_row #>> '{needs,slot}' else slot end,
          rate = case when v_row ? 'needs' then coalesce(v_row #>> '{needs,rate}', '') else rate end,
          unread = case when v_ended then 0 else unread end,
          cancelling = cancelling or p_part ? 'cancelling'
          where n = v_n;
      end if;
      if v_ended then
        delete from ${s}.waits where run = v_n;
        delete from ${s}.inbox where run = v_n;
        for r in delete from ${s}.holds where run = v_n returning key, amount loop
          perform ${s}.count_1(r.key, -r.amount);
        end loop;
      end if;
      -- Last of all, so that a run which lets go in this commit is found free by its own messages (P24).
      for x in select jsonb_array_elements(p_part -> 'messages') loop
        perform ${s}.deliver_1(x ->> 'to', x ->> 'id', x ->> 'kind', x ->> 'name', v_data[(x ->> 'value')::int],
          v_bytes[(x ->> 'value')::int], p_now);
      end loop;
      return jsonb_build_object('kind', 'applied', 'n', v_n, 'children', v_children);
    end $$;`;
}

function partHelpers(s: string): string {
  return `
    create function ${s}.exists_1(p_run text) returns jsonb language sql volatile as $$
      select jsonb_build_object('kind', 'refused', 'why', 'exists', 'holder', to_jsonb(runs)) from ${s}.runs where id = p_run
    $$;

    /*
     * What is acknowledged is on the disk, whatever somebody has set in this session: the SQL of ctx.transaction, or whoever had the connection
     * of a pooler before (I1). What the database or the role says for all sessions is the owner's choice, and so is a transaction of the user's.
     */
    create function ${s}.sync_1() returns void language plpgsql as $$
    begin
      if current_setting('synchronous_commit') in ('off', 'local') and coalesce(current_setting('pawl.enlisted', true), '') = '' then
        perform set_config('synchronous_commit', (select reset_val from pg_settings where name = 'synchronous_commit'), true);
      end if;
    end $$;

    /*
     * Limits how long locks are waited for, and says how it was before. In a transaction of the user's nobody else waits. A migration that has the
     * tables for itself is waited for in any case: nobody is in the way there.
     */
    create function ${s}.hurry_1() returns text language plpgsql as $$
    declare
      v_before text := current_setting('lock_timeout');
    begin
      if coalesce(current_setting('pawl.enlisted', true), '') = '' and coalesce(current_setting('pawl.transaction', true), '') = '' then
        lock table ${s}.runs, ${s}.keys, ${s}.tags in row exclusive mode;
        perform set_config('lock_timeout', '${CREATE_LOCK_LIMIT}', true);
      end if;
      return v_before;
    end $$;

    /* Changes a counter under its lock and says what it is then; one that is back at zero goes. */
    create function ${s}.count_1(p_key text, p_by double precision, p_at_least boolean default false) returns double precision
    language plpgsql as $$
    declare
      v_value double precision;
    begin
      insert into ${s}.counters as counter (key, value) values (p_key, case when p_at_least then greatest(p_by, 0) else p_by end)
        on conflict (key) do update
        set value = case when p_at_least then greatest(counter.value, excluded.value) else counter.value + excluded.value end
        returning value into v_value;
      if v_value <= 0 then delete from ${s}.counters where key = p_key; end if;
      return v_value;
    end $$;

    /* False if the run would hold less than nothing. */
    create function ${s}.hold_1(p_run bigint, p_key text, p_by double precision) returns boolean language plpgsql as $$
    declare
      v_amount double precision;
    begin
      insert into ${s}.holds as hold (run, key, amount) values (p_run, p_key, p_by)
        on conflict (run, key) do update set amount = hold.amount + excluded.amount returning amount into v_amount;
      if v_amount <= 0 then delete from ${s}.holds where run = p_run and key = p_key; end if;
      return v_amount >= 0;
    end $$;

    /* Creates a child with its first entry unless it exists; a pass that is repeated asks again. */
    create function ${s}.insert_child_1(p_worker text, p_now double precision, p_child jsonb, v_data text[], v_bytes bytea[])
    returns bigint language plpgsql as $$
    declare
      v_n bigint;
      v_value int := (p_child #>> '{entry,value}')::int;
    begin
      select number into v_n from ${s}.insert_runs_1(p_worker, p_now, jsonb_build_array(p_child -> 'create'));
      if v_n is not null then
        insert into ${s}.journal (run, seq, at, type, key, data, bytes, hash)
          values (v_n, 0, (p_child #>> '{entry,at}')::double precision, p_child #>> '{entry,type}', p_child #>> '{entry,key}',
            v_data[v_value], v_bytes[v_value], p_child #>> '{entry,hash}');
      end if;
      return v_n;
    end $$;`;
}

const END = `part int, n bigint, state text, head bigint, head_hash text, claims bigint, ended_at double precision, stop_reason text`;

function commit(s: string): string {
  return `
    create function ${s}.commit_1(
      p_worker text, p_lane int, p_now double precision, p_numbers bigint[],
      e_part int[], e_seq bigint[], e_at double precision[], e_type text[], e_key text[], e_data text[], e_bytes bytea[], e_hash text[],
      p_creates jsonb, p_ends jsonb, p_parts jsonb, p_locks text[], v_data text[], v_bytes bytea[])
    returns jsonb language plpgsql as $$
    declare
      numbers bigint[] := p_numbers;
      answers jsonb := '{}';
      v_now double precision;
      v_answer jsonb;
      v_limit text;
      x jsonb;
      r record;
    begin
      perform ${s}.sync_1();
      if p_worker is not null then
        perform 1 from ${s}.fences where worker = p_worker and lane = p_lane and server = pg_postmaster_start_time() for key share;
        if not found then return null; end if;
      end if;
      v_now := ${s}.time_1(p_now);
      -- All in one go, ends as well: in two, two commits could each have what the other one waits for (K2). One by one, here and below: while there are
      -- no statistics, PostgreSQL would plan to walk all runs for a list of them, and keep to that.
      if p_locks is not null then
        for r in select (select n from ${s}.runs where id = lock) as n from unnest(p_locks) as lock
          union all select (e ->> 'n')::bigint from jsonb_array_elements(p_ends) as e order by n
        loop
          perform 1 from ${s}.runs where n = r.n for no key update;
        end loop;
      end if;
      -- So are counters, by the order of their keys.
      if p_parts -> 0 ? 'locks' then
        for r in select value as key from jsonb_array_elements_text(p_parts #> '{0,locks}') loop
          perform 1 from ${s}.counters where key = r.key for no key update;
        end loop;
      end if;
      for r in select * from jsonb_to_recordset(p_ends) as e (${END}) loop
        update ${s}.runs set state = r.state, head = r.head, head_hash = r.head_hash, claims = r.claims, ended_at = r.ended_at,
          stop_reason = r.stop_reason, owner = null
          where n = r.n and owner is not distinct from p_worker and wake = 0 and cancel is null;
        if not found then
          numbers[r.part] := null;
          answers := answers || jsonb_build_object(r.part, '{"kind":"again"}'::jsonb);
        end if;
      end loop;
      if p_creates is not null then
        v_limit := ${s}.hurry_1();
        for r in ${insertion(s, "v_now", "p_creates")} loop
          numbers[r.part] := r.number;
        end loop;
        perform set_config('lock_timeout', v_limit, true);
        for r in select part, id from jsonb_to_recordset(p_creates) as run (part int, id text) where numbers[part] is null loop
          answers := answers || jsonb_build_object(r.part, ${s}.exists_1(r.id));
        end loop;
      end if;
      for x in select jsonb_array_elements(p_parts) loop
        if x ? 'create' then v_limit := ${s}.hurry_1(); end if;
        if x ? 'keys' or x ? 'counters' then
          begin
            v_answer := ${s}.commit_part_1(p_worker, v_now, x, v_data, v_bytes);
          exception when sqlstate 'PAWL1' then
            v_answer := sqlerrm::jsonb;
          end;
        else
          v_answer := ${s}.commit_part_1(p_worker, v_now, x, v_data, v_bytes);
        end if;
        if x ? 'create' then perform set_config('lock_timeout', v_limit, true); end if;
        numbers[(x ->> 'part')::int] := (v_answer ->> 'n')::bigint;
        if v_answer ->> 'kind' <> 'applied' or x ? 'children' then
          answers := answers || jsonb_build_object(x ->> 'part', v_answer);
        end if;
      end loop;
      insert into ${s}.journal (run, seq, at, type, key, data, bytes, hash)
        select numbers[e.part], e.seq, e.at, e.type, e.key, e.data, e.bytes, e.hash
        from unnest(e_part, e_seq, e_at, e_type, e_key, e_data, e_bytes, e_hash) as e (part, seq, at, type, key, data, bytes, hash)
        where numbers[e.part] is not null;
      return jsonb_build_object('numbers', numbers, 'answers', answers);
    end $$;`;
}

export function commitFunctions(s: string): string {
  return [partHelpers, insertRuns, commitPart, commit].map((part) => part(s)).join("\n");
}
