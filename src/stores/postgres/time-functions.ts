/**
 * The one seam through which the database sees time, in milliseconds: its own clock, or what a test gives instead. It is the clock of the moment,
 * not of the transaction: a lock may have been waited for (P29).
 */
export function timeFunctions(s: string): string {
  return `
    create function ${s}.time_1(p_given double precision) returns double precision language sql volatile as
      $$ select coalesce(p_given, floor(extract(epoch from clock_timestamp()) * 1000)::double precision) $$;`;
}
