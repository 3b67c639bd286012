// For operators: runs that retention leaves alone, the audit log with how far it has come, what workers say of workflows,
// searches by key, and counts, which must not read rows.

const PARAMETERS = "p_succeeded double precision, p_failed double precision, p_limit bigint, p_now double precision";

export function operators(s: string): string {
  return `
    create table ${s}.kept (
      run bigint primary key,
      who text not null,
      why text not null,
      at double precision not null
    );

    create table ${s}.audits (
      n bigint primary key,
      at double precision not null,
      who text not null,
      action text not null,
      subject text,
      origin text,
      outcome text not null,
      payload text,
      detail text,
      hash text not null
    );
    create table ${s}.audit_head (
      one boolean primary key default true check (one),
      n bigint not null,
      hash text not null
    );
    insert into ${s}.audit_head (n, hash) values (0, '');

    create table ${s}.workflows (
      name text collate "C" not null,
      version text collate "C" not null,
      facts text not null,
      at double precision not null,
      primary key (name, version)
    );

    create index runs_key on ${s}.runs ((key collate "C")) where key is not null;
    create index runs_counted on ${s}.runs (workflow, state);

    /* The run is locked first, so that either its purge finds the hold or the hold finds no run. */
    create function ${s}.hold_1(p_run text, p_who text, p_why text, p_now double precision) returns setof ${s}.kept language plpgsql as $$
    declare
      v_run bigint;
    begin
      perform ${s}.sync_1();
      select n into v_run from ${s}.runs where id = p_run for key share;
      if not found then return; end if;
      insert into ${s}.kept (run, who, why, at) values (v_run, p_who, p_why, ${s}.time_1(p_now)) on conflict (run) do nothing;
      return query select * from ${s}.kept where run = v_run;
    end $$;

    create function ${s}.release_hold_1(p_run text) returns setof ${s}.kept language plpgsql as $$
    begin
      perform ${s}.sync_1();
      return query delete from ${s}.kept where run = (select n from ${s}.runs where id = p_run) returning *;
    end $$;

    /* Whoever records has the head until it commits: numbers are dense, and each hash is over the one before it. */
    create function ${s}.record_1(p_digest text, p_at double precision, p_who text, p_action text, p_subject text, p_origin text,
      p_outcome text, p_payload text, p_detail text) returns table (n bigint, hash text) language plpgsql as $$
    #variable_conflict use_column
    declare
      v_n bigint;
      v_hash text;
    begin
      perform ${s}.sync_1();
      update ${s}.audit_head set n = n + 1, hash = encode(sha256(convert_to(hash || chr(10) || (n + 1) || chr(10) || p_digest, 'UTF8')), 'hex')
        returning n, hash into strict v_n, v_hash;
      insert into ${s}.audits (n, at, who, action, subject, origin, outcome, payload, detail, hash)
        values (v_n, p_at, p_who, p_action, p_subject, p_origin, p_outcome, p_payload, p_detail, v_hash);
      return query select v_n, v_hash;
    end $$;

    create function ${s}.describe_1(p_name text[], p_version text[], p_facts text[], p_now double precision) returns void language plpgsql as $$
    begin
      insert into ${s}.workflows (name, version, facts, at)
        select distinct on (name, version) name, version, facts, ${s}.time_1(p_now)
        from unnest(p_name, p_version, p_facts) with ordinality as given (name, version, facts, i) order by name, version, i desc
        on conflict (name, version) do update set facts = excluded.facts, at = excluded.at;
    end $$;

    /* Deletes the runs that ended first and that nobody holds, with all that is still kept of them. */
    create function ${s}.purge_2(${PARAMETERS}, p_workflow text, p_except text[], p_dry boolean) returns bigint
    language plpgsql as $$
    declare
      v_gone bigint[];
      v_run text;
    begin
      select array_agg(n) into v_gone from (
        select n from ${s}.runs where ended_at is not null and ended_at < greatest(p_succeeded, p_failed)
          and ((state = 'succeeded' and ended_at < p_succeeded) or (state in ('failed', 'cancelled') and ended_at < p_failed))
          and (p_workflow is null or workflow = p_workflow) and workflow <> all (p_except)
          and not exists (select 1 from ${s}.kept where kept.run = runs.n)
        order by ended_at, n limit p_limit for update skip locked) as gone;
      -- One may have been held while its lock was waited for.
      select array_agg(n) into v_gone from unnest(v_gone) as n where not exists (select 1 from ${s}.kept where kept.run = n);
      if p_dry then return coalesce(cardinality(v_gone), 0); end if;
      delete from ${s}.starts where until <= ${s}.time_1(p_now);
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

    /* Workers of an older release must leave alone what is held, too. */
    create or replace function ${s}.purge_1(${PARAMETERS}) returns bigint language sql as $$
      select ${s}.purge_2(p_succeeded, p_failed, p_limit, p_now, null, '{}', false)
    $$;`;
}
