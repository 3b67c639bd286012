// Chunks of streams: a table of their own, and how they get there. Nothing waits for the disk: what an outcome that follows makes durable, it makes
// durable with them, since they are earlier in the same log. They go with their run, whichever release deletes it.

export function streams(s: string): string {
  return `
    create table ${s}.chunks (
      run bigint not null,
      start text collate "C" not null,
      n bigint not null,
      data text,
      bytes bytea,
      primary key (run, start, n)
    );

    create function ${s}.emit_1(p_run text[], p_start text[], p_n bigint[], p_data text[], p_bytes bytea[]) returns void language plpgsql as $$
    begin
      perform set_config('synchronous_commit', 'off', true);
      insert into ${s}.chunks (run, start, n, data, bytes)
        select runs.n, given.start, given.n, given.data, case when p_bytes is null then null else p_bytes[given.i] end
        from unnest(p_run, p_start, p_n, p_data) with ordinality as given (run, start, n, data, i)
        join ${s}.runs on runs.id = given.run
        order by runs.n, given.start, given.n, given.i
        on conflict (run, start, n) do nothing;
    end $$;

    create function ${s}.forget_chunks_1() returns trigger language plpgsql as $$
    begin
      delete from ${s}.chunks using gone where chunks.run = gone.n;
      return null;
    end $$;
    create trigger forget_chunks after delete on ${s}.runs
      referencing old table as gone for each statement execute function ${s}.forget_chunks_1();`;
}
