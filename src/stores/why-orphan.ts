/** The reasons for which a run is an orphan, in the words of `OrphanRow.why`. */
export const WHY_ORPHAN = {
  owner: "its owner is gone",
  source: "nothing will wake it",
  alarm: "its alarm is missing or too late",
} as const;
