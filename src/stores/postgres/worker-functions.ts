// Workers: incarnations, their leases and their end
// Fence rows are apart from the row with the lease, so that heartbeats and commits never wait for each other (P21).
//
//   W1. Fence first, release later: what a commit that was waited for has done is seen by the statements after it (P20).
//   W2. A lease is counted on the database's clock alone, which may be set back: a renewal counts from then, not from the latest ever seen (P29).
//       Whoever ends a worker because its lease is over looks while it holds the row (I9).
import { FINAL_FAILURE, PROGRESS_TYPES } from "../progress.ts";
import { BY_INDEX } from "./by-index.ts";

/** How long fencing waits for a commit that hangs, as one does whose standby is away: then it is tried again later (P22). */
const LOCK_LIMIT = "2s";

/** A claim must not wait for the commits of a lane. */
const CLAIMS_LANE = -1;

const TYPES = PROGRESS_TYPES.filter((type) => type !== "step.failed")
  .map((type) => `'${type}'`)
  .join(", ");

/** An outcome since the last claim of a row of `runs` (P28), in the words of `isProgress`. */
const hasProgressed = (
  s: string,
) => `exists (select 1 from ${s}.journal where run = runs.n and seq >= claimed_head and (type in (${TYPES})
  or (type = 'step.failed' and (data is null or strpos(data, '${FINAL_FAILURE}') > 0))))`;

export function workerFunctions(s: string): string {
  return `
    create function ${s}.register_1(p_worker jsonb, p_lanes int, p_now double precision, p_lease double precision) returns void
    language plpgsql as $$
    begin
      insert into ${s}.workers (id, name, process, handles, started_at, lease_ms, renewed_at)
        values (p_worker ->> 'id', p_worker ->> 'name', p_worker ->> 'process', p_worker ->> 'handles', ${s}.time_1(p_now),
          (p_worker ->> 'leaseMs')::double precision, ${s}.time_1(p_lease))
        on conflict (id) do update set name = excluded.name, process = excluded.process, handles = excluded.handles,
          started_at = excluded.started_at, lease_ms = excluded.lease_ms, renewed_at = excluded.renewed_at;
      insert into ${s}.fences (worker, lane, server)
        select p_worker ->> 'id', lane, pg_postmaster_start_time() from generate_series(${CLAIMS_LANE}, p_lanes - 1) as lane
        on conflict (worker, lane) do update set server = excluded.server;
    end $$;

    create function ${s}.heartbeat_1(p_worker text, p_lease double precision, out alive boolean, out others bigint) language plpgsql as $$
    begin
      update ${s}.workers set renewed_at = ${s}.time_1(p_lease)
        where id = p_worker and exists (select 1 from ${s}.fences
          where worker = p_worker and lane = ${CLAIMS_LANE} and server = pg_postmaster_start_time());
      alive := found;
      select count(*) into others from ${s}.workers where id <> p_worker;
    end $$;

    create function ${s}.release_1(p_workers text[], p_now double precision, p_handed_back boolean) returns bigint language plpgsql as $$
    declare
      v_ready bigint;
    begin
      perform 1 from ${s}.runs where owner = any (p_workers) order by n for no key update;
      -- Claimable again, except a parked run that no decision and no unseen cancel concerns. Deaths are counted since the last progress (P28).
      with released as (
        update ${s}.runs set owner = null, claims = case when p_handed_back or ${hasProgressed(s)} then 0 else claims end,
          ready_at = case when state <> 'parked' or (cancel is not null and not cancelling)
            or (select kind from ${s}.inbox where run = runs.n and not consumed and kind = 'decision' limit 1) is not null then p_now end
        where owner = any (p_workers) returning ready_at
      ) select count(ready_at) into v_ready from released;
      return v_ready;
    end $$;

    create function ${s}.fence_1(p_workers text[], p_if_expired boolean, p_successor jsonb, p_lanes int, p_now double precision,
      p_lease double precision)
    returns bigint language plpgsql ${BY_INDEX} as $$
    declare
      v_workers text[] := p_workers;
    begin
      perform set_config('lock_timeout', '${LOCK_LIMIT}', true);
      if p_if_expired then
        perform 1 from ${s}.workers where id = any (p_workers) order by id for update;
        select array_agg(named) into v_workers from unnest(p_workers) as named left join ${s}.workers on id = named
          where id is null or renewed_at + lease_ms < ${s}.time_1(p_lease);
      end if;
      delete from ${s}.fences where worker = any (v_workers);
      delete from ${s}.workers where id = any (v_workers);
      if p_successor is null then return ${s}.release_1(v_workers, ${s}.time_1(p_now), false); end if;
      perform ${s}.register_1(p_successor, p_lanes, p_now, p_lease);
      perform 1 from ${s}.runs where owner = any (v_workers) order by n for no key update;
      update ${s}.runs set owner = p_successor ->> 'id' where owner = any (v_workers);
      return 0;
    end $$;

    create function ${s}.retire_1(p_worker text, p_now double precision) returns void language plpgsql as $$
    begin
      perform set_config('lock_timeout', '${LOCK_LIMIT}', true);
      delete from ${s}.fences where worker = p_worker;
      delete from ${s}.workers where id = p_worker;
      perform ${s}.release_1(array[p_worker], ${s}.time_1(p_now), true);
    end $$;`;
}
