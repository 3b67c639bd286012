// Lines: runs that are ready and need a slot (I18)
// Those with the same slot and rate stand in one line, by priority and age. A claim looks at the lines, never at everybody who stands in them:
// behind a slot that is full there may be a hundred thousand.
//
//   L1. A slot is held by whoever owns a run that needs it. So every way in which a run loses its owner frees its slot, and nothing can leak.
//   L2. Whoever lets runs in holds one lock, over all lines: it counts, and takes, while nobody else can. Whoever frees a slot needs no lock.
//   L3. That lock is waited for with rows locked, so nobody waits for a row while holding it: rows that are locked are passed over.
import { LIMITS } from "../../core/limits.ts";
import { ASK, ASKED, CLAIM, type Generation, IN_LINE, NO_LINE, ready, SOUND, SUSPECT } from "./claim-functions.ts";

/** A limit of the last handle of the workflow that a slot or a rate names first. */
const limitOf = (
  limits: string,
  need: string,
) => `(select handle.value from unnest(p_workflows, ${limits}) with ordinality
  as handle (workflow, value, place) where handle.workflow = split_part(${need}, '/', 1) order by place desc limit 1)`;

const THIS_LINE = "slot = q.slot and rate = q.rate and slot <> ''";

function lined(s: string, g: Generation): string {
  return `
    /* Who may be let in, from each line as many as it has room for. A row without a number: there are more lines, and this look ended here. */
    create function ${s}.lined_${g}(p_now double precision, ${ASKED})
    returns table (number bigint, priority double precision, since double precision, slot text, rate text, is_suspect boolean,
      slot_room double precision, rate_room double precision, span double precision) language plpgsql as $$
    #variable_conflict use_column
    declare
      q record;
      v_slot text := p_slot;
      v_rate text := p_rate;
      v_round int := case when p_slot = '' then 2 else 1 end;
      v_slots double precision;
      v_rates double precision;
      v_span double precision;
    begin
      for v_seen in 0 .. ${LIMITS.linesPerClaim} loop
        select slot, rate into q from ${s}.runs where ${IN_LINE} and (slot, rate) > (v_slot, v_rate) order by slot, rate limit 1;
        if not found and v_round = 1 then
          v_round := 2;
          select slot, rate into q from ${s}.runs where ${IN_LINE} order by slot, rate limit 1;
        end if;
        exit when q.slot is null or (v_round = 2 and p_slot <> '' and (q.slot, q.rate) > (p_slot, p_rate));
        if v_seen = ${LIMITS.linesPerClaim} then
          return query select null::bigint, null::double precision, null::double precision, v_slot, v_rate, null::boolean,
            null::double precision, null::double precision, null::double precision;
          exit;
        end if;
        v_slot := q.slot;
        v_rate := q.rate;
        v_slots := ${limitOf("p_slots", "v_slot")};
        if v_slots is not null then
          v_slots := v_slots - (select count(*) from ${s}.runs where slot = v_slot and slot <> '' and owner is not null);
        end if;
        continue when v_slots <= 0;
        v_rates := null;
        v_span := null;
        if v_rate <> '' then
          v_rates := ${limitOf("p_rates", "v_rate")};
          v_span := ${limitOf("p_spans", "v_rate")};
        end if;
        if v_rates is not null then
          /* Those of any span of this length around now: what began under a longer one, or by a clock that was set back, does not count for longer. */
          v_rates := v_rates - (select count(*) from ${s}.starts where rate = v_rate and until > p_now and abs(at - p_now) < v_span);
        end if;
        continue when v_rates <= 0;
        return query
          select l.n, l.priority, l.ready_at, v_slot, v_rate, l.is_suspect, v_slots, v_rates, v_span from (
            (select n, priority, ready_at, false as is_suspect from (${ready(s, SOUND, THIS_LINE, g)} limit least(p_limit, v_slots, v_rates)::bigint) as sound)
            union all
            (select n, priority, ready_at, true from (${ready(s, SUSPECT, THIS_LINE, g)} limit case when p_suspect then 1 else 0 end) as suspect)
          ) as l;
      end loop;
    end $$;`;
}

function claimLined(s: string, g: Generation): string {
  return `
    create function ${s}.claim_lined_${g}(p_worker text, p_now double precision, ${ASKED})
    returns table (number bigint, line_slot text, line_rate text) language plpgsql as $$
    declare
      r record;
      v_chosen bigint[] := '{}';
      v_suspects int := case when p_suspect then 1 else 0 end;
      v_room jsonb := '{}';
      v_slots double precision;
      v_rates double precision;
    begin
      perform pg_advisory_xact_lock(hashtextextended('${s}.lines', 0));
      for r in
        with sound as (${ready(s, SOUND, NO_LINE, g)} limit p_limit for no key update skip locked),
        suspect as (${ready(s, SUSPECT, NO_LINE, g)} limit case when p_suspect then 1 else 0 end for no key update skip locked),
        found as (
          select n, priority, ready_at, '' as slot, '' as rate, false as is_suspect, null::double precision as slot_room,
            null::double precision as rate_room, null::double precision as span from sound
          union all select n, priority, ready_at, '', '', true, null, null, null from suspect
          union all select * from ${s}.lined_${g}(p_now, ${ASK})
        ) select * from found order by priority desc nulls last, ready_at, n
      loop
        if r.n is null then
          line_slot := r.slot;
          line_rate := r.rate;
          return next;
          continue;
        end if;
        continue when cardinality(v_chosen) >= p_limit or (r.is_suspect and v_suspects = 0);
        if r.slot <> '' then
          v_slots := coalesce((v_room ->> ('slot ' || r.slot))::double precision, r.slot_room);
          v_rates := coalesce((v_room ->> ('rate ' || r.rate))::double precision, r.rate_room);
          continue when v_slots <= 0 or v_rates <= 0;
          perform 1 from ${s}.runs where n = r.n and ${IN_LINE} and slot = r.slot and rate = r.rate and owner is null
            for no key update skip locked;
          continue when not found;
          v_room := v_room || jsonb_build_object('slot ' || r.slot, v_slots - 1, 'rate ' || r.rate, v_rates - 1);
          if r.span is not null then
            delete from ${s}.starts where rate = r.rate and until <= p_now;
            insert into ${s}.starts (rate, until, run, at) values (r.rate, p_now + r.span, r.n, p_now);
          end if;
        end if;
        if r.is_suspect then v_suspects := v_suspects - 1; end if;
        v_chosen := v_chosen || r.n;
      end loop;
      update ${s}.runs set ${CLAIM(s)} where n = any (v_chosen);
      return query select chosen.n, null::text, null::text from unnest(v_chosen) with ordinality as chosen (n, place) order by place;
    end $$;`;
}

function nextStart(s: string): string {
  return `
    /* When a start that a line may be waiting for no longer counts. */
    create function ${s}.next_start_1(p_now double precision) returns double precision language plpgsql as $$
    declare
      q record;
      v_slot text := '';
      v_rate text := '';
      v_first double precision;
    begin
      for v_seen in 1 .. ${LIMITS.linesPerClaim} loop
        select slot, rate into q from ${s}.runs where ${IN_LINE} and (slot, rate) > (v_slot, v_rate) order by slot, rate limit 1;
        exit when not found;
        v_slot := q.slot;
        v_rate := q.rate;
        continue when v_rate = '';
        v_first := least(v_first, (select until from ${s}.starts where rate = v_rate and until > p_now order by until limit 1));
      end loop;
      return v_first;
    end $$;`;
}

export function lineFunctions(s: string): string {
  return [lined(s, 1), claimLined(s, 1), nextStart(s)].join("\n");
}

/** What came with handles that say more than a line. */
export function laterLineFunctions(s: string): string {
  return [lined(s, 2), claimLined(s, 2)].join("\n");
}
