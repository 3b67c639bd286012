// Runs that nobody owns, by version. Of each version only the first is looked for, and some of its runs: a million that sleep cost as much as one.
import { BY_INDEX } from "./by-index.ts";

export const IS_FREE = "owner is null and state not in ('parked', 'succeeded', 'failed', 'cancelled')";
const ORDER = 'line collate "C", patch';

/** The index, in which a run that is claimed on the spot and ends without a wait never is, and the function that steps through it. */
export function unclaimedRuns(s: string): string {
  return `
    create index runs_unclaimed on ${s}.runs (workflow, ${ORDER}, n) where ${IS_FREE};

    create function ${s}.unclaimed_1(p_workflows text[], p_limit bigint)
    returns table (workflow text, version text, runs text[]) language plpgsql ${BY_INDEX} as $$
    #variable_conflict use_column
    declare
      q record;
      v_workflow text;
      v_line text;
      v_patch bigint;
    begin
      foreach v_workflow in array p_workflows loop
        v_line := '';
        v_patch := -1;
        loop
          select r.version, r.line, r.patch into q from ${s}.runs as r
            where ${IS_FREE} and r.workflow = v_workflow and (r.line collate "C", r.patch) > (v_line, v_patch)
            order by ${ORDER} limit 1;
          exit when not found;
          v_line := q.line;
          v_patch := q.patch;
          return query select v_workflow, q.version, array(select r.id::text from ${s}.runs as r
            where ${IS_FREE} and r.workflow = v_workflow and r.line collate "C" = v_line and r.patch = v_patch order by n limit p_limit);
        end loop;
      end loop;
    end $$;`;
}
