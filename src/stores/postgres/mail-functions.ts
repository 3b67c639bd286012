// Messages to a run: an inbox row, a raised counter, and a run that can be claimed, in one transaction (P18).

// A parked run moves only for a decision or a cancel; one that is to start later starts then, unless it is cancelled.
const WAKES = "(case state when 'parked' then p_kind = 'decision' else state <> 'accepted' end)";

export function mailFunctions(s: string): string {
  return `
    create function ${s}.deliver_1(p_to text, p_id text, p_kind text, p_name text, p_data text, p_bytes bytea, p_now double precision)
    returns text language plpgsql as $$
    declare
      r record;
    begin
      perform ${s}.sync_1();
      select n, state in ('succeeded', 'failed', 'cancelled') as has_ended, cancel into r
        from ${s}.runs where id = p_to for no key update;
      if not found then return 'missing'; end if;
      if r.has_ended then return 'ended'; end if;
      if p_kind = 'cancel' then
        if r.cancel is not null then return 'duplicate'; end if;
        update ${s}.runs set wake = wake + 1, cancel = coalesce(p_data, p_name),
          ready_at = case when owner is null then least(coalesce(ready_at, p_now), p_now) else ready_at end
          where n = r.n;
        return 'delivered';
      end if;
      if exists (select 1 from ${s}.inbox where run = r.n and id = p_id) then return 'duplicate'; end if;
      insert into ${s}.inbox (run, n, id, kind, name, data, bytes, at)
        select r.n, coalesce(max(inbox.n), 0) + 1, p_id, p_kind, p_name, p_data, p_bytes, p_now from ${s}.inbox where run = r.n;
      update ${s}.runs set wake = wake + 1, unread = greatest(unread, 0) + 1,
        ready_at = case when owner is null and ${WAKES} then least(coalesce(ready_at, p_now), p_now) else ready_at end
        where n = r.n;
      return 'delivered';
    end $$;`;
}
