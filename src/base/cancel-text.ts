// A cancel, as stores keep it: its reason, and in front of it a mark if what was done is to be undone.
const COMPENSATE = "\u0002";

export interface Cancel {
  readonly reason: string;
  readonly compensate: boolean;
}

export function cancelText({ reason, compensate }: Cancel): string {
  const text = reason.startsWith(COMPENSATE) ? reason.slice(1) : reason;
  return compensate ? COMPENSATE + text : text;
}

/** What is stored may have got there past every check: what is no text is a cancel without a reason (I20). */
export function readCancel(stored: string | null): Cancel {
  const text = typeof stored === "string" ? stored : "";
  const compensate = text.startsWith(COMPENSATE);
  return { compensate, reason: compensate ? text.slice(1) : text };
}
