// Claiming
// An idle worker asks every second, so the question is put without a lock first; only if there is an answer does anything get written.
import { LIMITS } from "../../core/limits.ts";

/** How many due runs one claim makes ready: a million timers of one moment must not hold their locks for seconds. */
const WAKE_AT_ONCE = 1000;

const IS_ALARM = "wake_at is not null and owner is null and state <> 'parked'";

/** By priority and age, only what the asking worker has. Each kind has an index of its own, so that looking for one never walks the other. */
const ready = (s: string, claims: string) => `select n, priority, ready_at from ${s}.runs
  where ready_at is not null and ${claims} and owner is null and state not in ('succeeded', 'failed', 'cancelled')
    and exists (select 1 from unnest(p_workflows, p_lines, p_patches) as handle (workflow, line, patch)
      where handle.workflow = runs.workflow and handle.line = runs.line and runs.patch <= handle.patch)
  order by priority desc, ready_at, n`;

const SOUND = `claims < ${LIMITS.deathsAmongOthers}`;
const SUSPECT = `claims >= ${LIMITS.deathsAmongOthers}`;

/** What claiming does to a row; a position is counted as progress from here on (P28). */
const OWN = "owner = p_worker, ready_at = null, wake_at = null";

/** True for a worker whose fence row of the claims' own lane stands; the row stays locked (P21). */
export const HOLDS_FENCE = (s: string): string =>
  `(select true from ${s}.fences where worker = p_worker and lane = -1 and server = pg_postmaster_start_time() for key share) is true`;

export function claimFunctions(s: string): string {
  return `
    create function ${s}.next_wake_1() returns double precision language sql stable as $$
      select wake_at from ${s}.runs where ${IS_ALARM} order by wake_at limit 1
    $$;

    create function ${s}.claim_1(p_worker text, p_now double precision, p_workflows text[], p_lines text[], p_patches bigint[], p_limit int,
      p_suspect boolean)
    returns setof bigint language plpgsql as $$
    declare
      v_now double precision := ${s}.time_1(p_now);
      v_due boolean := exists (select 1 from ${s}.runs where ${IS_ALARM} and wake_at <= v_now);
    begin
      if not v_due and not exists (${ready(s, SOUND)} limit 1)
        and not (p_suspect and exists (${ready(s, SUSPECT)} limit 1)) then return; end if;
      if not ${HOLDS_FENCE(s)} then return; end if;
      if v_due then
        with due as (
          select n from ${s}.runs where ${IS_ALARM} and wake_at <= v_now order by wake_at limit ${WAKE_AT_ONCE} for no key update skip locked
        ) update ${s}.runs set ready_at = least(coalesce(ready_at, wake_at), wake_at), wake_at = null from due where runs.n = due.n;
      end if;
      return query
      with sound as (${ready(s, SOUND)} limit p_limit for no key update skip locked),
      suspect as (${ready(s, SUSPECT)} limit case when p_suspect then 1 else 0 end for no key update skip locked),
      chosen as (
        select n, row_number() over (order by priority desc, ready_at, n) as place
        from (select * from sound union all select * from suspect) as ready order by place limit p_limit
      ), claimed as (
        update ${s}.runs set ${OWN}, state = 'running', claims = claims + 1,
          claimed_head = (select coalesce(max(seq) + 1, 0) from ${s}.journal where run = runs.n)
        from chosen where runs.n = chosen.n
        returning runs.n, place
      ) select n from claimed order by place;
    end $$;

    /* Loads a run of this worker, or takes one that nobody owns without counting it as a claim: no body will run (P19). */
    create function ${s}.take_1(p_worker text, p_run text) returns bigint language plpgsql as $$
    declare
      r record;
    begin
      -- Before the run, as everywhere: whoever fences takes the fence first and the runs after it.
      if not ${HOLDS_FENCE(s)} then return null; end if;
      select n, owner, state in ('succeeded', 'failed', 'cancelled') as has_ended into r from ${s}.runs where id = p_run for no key update;
      if r.n is null or r.has_ended or (r.owner is not null and r.owner <> p_worker) then return null; end if;
      if r.owner is null then update ${s}.runs set ${OWN} where n = r.n; end if;
      return r.n;
    end $$;`;
}
