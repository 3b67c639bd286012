// Upkeep: runs that nothing will ever wake, or not in time (I10), and what retention takes away.
import { childMessageId } from "../../core/wakeups.ts";
import { WHY_ORPHAN } from "../why-orphan.ts";
import { RUNS_PER_PARTITION } from "./tables.ts";

const ENDED = "('succeeded', 'failed', 'cancelled')";
/** The states in which a run lets go to wait. */
const SUSPENDED = "('running', 'retrying', 'waiting', 'compensating')";

// Of the waits, a timer and a retry have their source in `wake_at`; a child must be unfinished, or its message unread.
const hasSource = (s: string) => `exists (select 1 from ${s}.waits where waits.run = runs.n
  and (kind not in ('timer', 'retry', 'child') or (kind = 'child'
    and (exists (select 1 from ${s}.runs as child where child.id = waits.name and child.state not in ${ENDED})
      or exists (select 1 from ${s}.inbox where inbox.run = runs.n and inbox.id = '${childMessageId("")}' || waits.name and not consumed)))))`;

// Whatever else a run waits for, what falls due and its deadline need an alarm that comes no later.
const hasTime = (s: string) =>
  `(deadline is not null or exists (select 1 from ${s}.waits where waits.run = runs.n and waits.due is not null))`;
const isOverslept = (s: string) =>
  `(wake_at > deadline or exists (select 1 from ${s}.waits where waits.run = runs.n and waits.due < wake_at))`;

const isForsaken = (s: string) =>
  `owner is not null and state not in ${ENDED} and owner not in (select id from ${s}.workers)`;
const isForgotten = (s: string) => `owner is null and ready_at is null and wake_at is null
  and state not in ('parked', 'succeeded', 'failed', 'cancelled') and (not ${hasSource(s)} or (state <> 'accepted' and ${hasTime(s)}))`;
const isLate = (
  s: string,
) => `owner is null and ready_at is null and wake_at is not null and state <> 'succeeded' and state in ${SUSPENDED}
  and ${isOverslept(s)}`;

export function upkeepFunctions(s: string): string {
  return `
    create function ${s}.orphans_1() returns table (n bigint, run text, state text, why text) language sql stable as $$
      select n, id, state, '${WHY_ORPHAN.owner}' from ${s}.runs where ${isForsaken(s)}
      union all
      select n, id, state, case when ${hasSource(s)} then '${WHY_ORPHAN.alarm}' else '${WHY_ORPHAN.source}' end
        from ${s}.runs where ${isForgotten(s)}
      union all
      select n, id, state, '${WHY_ORPHAN.alarm}' from ${s}.runs where ${isLate(s)}
      order by 1
    $$;

    /* Only what is still an orphan is made claimable: the list may be old (B18). It is looked at while its rows are held. */
    create function ${s}.adopt_1(p_runs text[], p_now double precision) returns bigint language plpgsql as $$
    declare
      v_adopted bigint;
    begin
      perform 1 from ${s}.runs where id = any (p_runs) order by n for no key update;
      with adopted as (
        update ${s}.runs set owner = null, ready_at = ${s}.time_1(p_now), wake_at = null
        where id = any (p_runs) and ((${isForsaken(s)}) or (${isForgotten(s)}) or (${isLate(s)})) returning 1
      ) select count(*) into v_adopted from adopted;
      return v_adopted;
    end $$;

    /* Deletes the runs that ended first, with all that is still kept of them. */
    create function ${s}.purge_1(p_succeeded double precision, p_failed double precision, p_limit bigint, p_now double precision) returns bigint
    language plpgsql as $$
    declare
      v_gone bigint[];
      v_run text;
    begin
      delete from ${s}.starts where until <= ${s}.time_1(p_now);
      select array_agg(n) into v_gone from (
        select n from ${s}.runs where ended_at is not null and ended_at < greatest(p_succeeded, p_failed)
          and ((state = 'succeeded' and ended_at < p_succeeded) or (state in ('failed', 'cancelled') and ended_at < p_failed))
        order by ended_at, n limit p_limit for update skip locked) as gone;
      if v_gone is null then return 0; end if;
      delete from ${s}.journal where run = any (v_gone);
      delete from ${s}.state where run = any (v_gone);
      delete from ${s}.keys where run = any (v_gone);
      delete from ${s}.tags using ${s}.runs where runs.n = any (v_gone) and tags.run = runs.n and tags.tag = any (runs.tags);
      for v_run in select id from ${s}.runs where n = any (v_gone) loop
        delete from ${s}.counters where key >= 'of/' || v_run || '/' and key < 'of/' || v_run || '0';
      end loop;
      delete from ${s}.runs where n = any (v_gone);
      return cardinality(v_gone);
    end $$;

    /* Makes sure that the journal has partitions for all runs that can be created before this is called again. */
    create function ${s}.partition_1() returns void language plpgsql as $$
    declare
      v_next bigint := (select last_value from ${s}.runs_n_seq) / ${RUNS_PER_PARTITION};
      v_name text;
    begin
      for i in v_next .. v_next + 2 loop
        v_name := 'journal_' || i;
        if to_regclass(format('%s.%I', '${s}', v_name)) is null then
          perform pg_advisory_xact_lock(hashtext('${s}.partition'));
          if to_regclass(format('%s.%I', '${s}', v_name)) is null then
            -- Attached, not created in place: that would wait for every reader and writer of the journal.
            execute format('create table ${s}.%I (like ${s}.journal including all)', v_name);
            execute format('alter table ${s}.journal attach partition ${s}.%I for values from (%s) to (%s)', v_name,
              i * ${RUNS_PER_PARTITION}, (i + 1) * ${RUNS_PER_PARTITION});
          end if;
        end if;
      end loop;
    end $$;

    /* Old partitions without a run go. That needs the whole journal for a moment: if it cannot be had at once, another time will do. */
    create function ${s}.drop_partitions_1() returns void language plpgsql as $$
    declare
      v_current bigint := (select last_value from ${s}.runs_n_seq) / ${RUNS_PER_PARTITION};
      r record;
    begin
      for r in select relname, substring(relname from 'journal_([0-9]+)$')::bigint as i from pg_inherits
        join pg_class on pg_class.oid = inhrelid where inhparent = '${s}.journal'::regclass
      loop
        continue when r.i >= v_current - 1 or exists (select 1 from ${s}.runs
          where n >= r.i * ${RUNS_PER_PARTITION} and n < (r.i + 1) * ${RUNS_PER_PARTITION});
        begin
          perform set_config('lock_timeout', '100ms', true);
          execute format('drop table ${s}.%I', r.relname);
        exception when lock_not_available then
          return;
        end;
      end loop;
    end $$;`;
}
