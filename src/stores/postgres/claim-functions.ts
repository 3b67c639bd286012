// Claiming
// An idle worker asks every second, so the question is put without a lock first; only if there is an answer does anything get written.
// Runs that need a slot are claimed by functions of their own, in `line-functions.ts`.
import { LIMITS } from "../../core/limits.ts";
import { isClaimedSql } from "../version-line.ts";
import { BY_INDEX } from "./by-index.ts";

/** How many due runs one claim makes ready: a million timers of one moment must not hold their locks for seconds. */
const WAKE_AT_ONCE = 1000;

const IS_ALARM = "wake_at is not null and owner is null and state <> 'parked'";

export const NO_LINE = "slot = ''";

/** Ready, and in need of a slot. */
export const IN_LINE = "ready_at is not null and slot <> ''";

/** Whether anybody stands in line. Asked in the order of the index, or PostgreSQL might walk the table to find one of many. */
const anyInLine = (s: string) =>
  `(select slot from ${s}.runs where ${IN_LINE} order by slot, rate limit 1) is not null`;

/** The functions of the first schema know lines of versions alone; those that follow, what else a handle may say. */
export type Generation = 1 | 2;

const COVERS: Readonly<Record<Generation, string>> = {
  1: "handle.line = runs.line and runs.patch <= handle.patch",
  2: isClaimedSql("handle"),
};

/** By priority and age, only what the asking worker has. Each kind has an index of its own, so that looking for one never walks the other. */
export const ready = (
  s: string,
  claims: string,
  line: string = NO_LINE,
  g: Generation = 1,
): string => `select n, priority, ready_at from ${s}.runs
  where ready_at is not null and ${claims} and ${line} and owner is null and state not in ('succeeded', 'failed', 'cancelled')
    and exists (select 1 from unnest(p_workflows, p_lines, p_patches) as handle (workflow, line, patch)
      where handle.workflow = runs.workflow and ${COVERS[g]})
  order by priority desc, ready_at, n`;

/** When the next timer of a run that may be woken is due. Also asked in order: with a time that it does not know, PostgreSQL would expect many. */
const nextAlarm = (s: string) => `(select wake_at from ${s}.runs where ${IS_ALARM} order by wake_at limit 1)`;

/** For the same reason no `exists`, which forgets the order. */
const anyReady = (s: string, claims: string, g: Generation) =>
  `(select n from (${ready(s, claims, NO_LINE, g)} limit 1) as first) is not null`;

export const SOUND: string = `claims < ${LIMITS.deathsAmongOthers}`;
export const SUSPECT: string = `claims >= ${LIMITS.deathsAmongOthers}`;

/** What claiming does to a row; a position is counted as progress from here on (P28). */
const OWN = "owner = p_worker, ready_at = null, wake_at = null";
export const CLAIM = (s: string): string => `${OWN}, state = 'running', claims = claims + 1, rate = '',
  claimed_head = (select coalesce(max(seq) + 1, 0) from ${s}.journal where run = runs.n)`;

/** True for a worker whose fence row of the claims' own lane stands; the row stays locked (P21). */
export const HOLDS_FENCE = (s: string): string =>
  `(select true from ${s}.fences where worker = p_worker and lane = -1 and server = pg_postmaster_start_time() for key share) is true`;

/** What the functions of a claim are given: who can do what, how many are wanted, which limits hold, and where the last look at lines ended. */
export const ASKED = `p_workflows text[], p_lines text[], p_patches bigint[], p_limit int, p_suspect boolean,
  p_slots double precision[], p_rates double precision[], p_spans double precision[], p_slot text, p_rate text`;
export const ASK = "p_workflows, p_lines, p_patches, p_limit, p_suspect, p_slots, p_rates, p_spans, p_slot, p_rate";

export function claimFunctions(s: string): string {
  return `
    create function ${s}.next_wake_1(p_now double precision) returns double precision language sql volatile as $$
      select least(${nextAlarm(s)},
        case when (select until from ${s}.starts order by until limit 1) is not null then ${s}.next_start_1(${s}.time_1(p_now)) end)
    $$;

${claimFunction(s, 1)}

${takeFunction(s, 1)}`;
}

/** What came with handles that say more than a line, and with writing to runs that need a slot. */
export function laterClaimFunctions(s: string): string {
  return `${claimFunction(s, 2)}

${takeFunction(s, 2)}`;
}

function claimFunction(s: string, g: Generation): string {
  return `    /* A row without a number says where the next look at lines begins. */
    create function ${s}.claim_${g}(p_worker text, p_now double precision, ${ASKED})
    returns table (number bigint, line_slot text, line_rate text) language plpgsql ${BY_INDEX} as $$
    declare
      v_now double precision := ${s}.time_1(p_now);
      v_due boolean := coalesce(${nextAlarm(s)} <= v_now, false);
      v_lined boolean := ${anyInLine(s)};
    begin
      if v_lined and not v_due then
        select coalesce(bool_or(l.number is not null), false), max(l.slot) filter (where l.number is null),
          max(l.rate) filter (where l.number is null) into v_lined, line_slot, line_rate from ${s}.lined_${g}(v_now, ${ASK}) as l;
      end if;
      if not v_due and not v_lined and not ${anyReady(s, SOUND, g)}
        and not (p_suspect and ${anyReady(s, SUSPECT, g)})
      then
        if line_slot is not null then return next; end if;
        return;
      end if;
      if not ${HOLDS_FENCE(s)} then return; end if;
      if v_due then
        update ${s}.runs set ready_at = least(coalesce(ready_at, wake_at), wake_at), wake_at = null where n = any (array(
          select n from ${s}.runs where ${IS_ALARM} and wake_at <= v_now order by wake_at limit ${WAKE_AT_ONCE} for no key update skip locked
        ));
        v_lined := ${anyInLine(s)};
      end if;
      if v_lined then
        return query select * from ${s}.claim_lined_${g}(p_worker, v_now, ${ASK});
        return;
      end if;
      return query
      with sound as (${ready(s, SOUND, NO_LINE, g)} limit p_limit for no key update skip locked),
      suspect as (${ready(s, SUSPECT, NO_LINE, g)} limit case when p_suspect then 1 else 0 end for no key update skip locked),
      chosen as (
        select n, row_number() over (order by priority desc, ready_at, n) as place
        from (select * from sound union all select * from suspect) as ready order by place limit p_limit
      ), claimed as (
        update ${s}.runs set ${CLAIM(s)}
        from chosen where runs.n = chosen.n
        returning runs.n, place
      ) select n, null::text, null::text from claimed order by place;
    end $$;`;
}

/** The later one also takes a run that needs a slot and has begun, if it is asked to: nothing of it will run. */
function takeFunction(s: string, g: Generation): string {
  return `    /* Loads a run of this worker, or takes one that nobody owns without counting it as a claim: no body will run (P19). */
    create function ${s}.take_${g}(p_worker text, p_run text${g === 1 ? "" : ", p_slotless boolean"}) returns bigint language plpgsql as $$
    declare
      r record;
    begin
      -- Before the run, as everywhere: whoever fences takes the fence first and the runs after it.
      if not ${HOLDS_FENCE(s)} then return null; end if;
      select n, owner, state in ('succeeded', 'failed', 'cancelled') as has_ended, slot <> '' and cancel is null and state <> 'accepted'${g === 1 ? "" : " and not p_slotless"} as needs_slot
        into r
        from ${s}.runs where id = p_run for no key update;
      if r.n is null or r.has_ended or (r.owner is not null and r.owner <> p_worker) then return null; end if;
      if r.owner is null and r.needs_slot then return null; end if;
      if r.owner is null then update ${s}.runs set ${OWN} where n = r.n; end if;
      return r.n;
    end $$;`;
}
