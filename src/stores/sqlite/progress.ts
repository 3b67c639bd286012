import { FINAL_FAILURE, PROGRESS_TYPES } from "../progress.ts";

const TYPES = PROGRESS_TYPES.filter((type) => type !== "step.failed")
  .map((type) => `'${type}'`)
  .join(", ");

/** An outcome since the last claim of a row of `runs` (P28), in the words of `isProgress`. */
export const HAS_PROGRESSED: string = `exists (select 1 from journal where run = runs.n and seq >= claimed_head and (type in (${TYPES})
  or (type = 'step.failed' and (typeof(data) <> 'text' or instr(data, '${FINAL_FAILURE}') > 0))))`;
