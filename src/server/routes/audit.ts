import { LIMITS } from "../../core/limits.ts";
import { type Route, route } from "../route.ts";
import { listOf, moment, nullable, object, oneOf, optional, text, whole } from "../shape.ts";

const RECORD = object("What somebody did.", {
  n: whole("Its number, from 1 without a gap.", 1),
  at: moment("When."),
  who: text("Who did it."),
  action: text("What was done."),
  subject: nullable(text("To what.")),
  from: nullable(text("From where.")),
  outcome: oneOf("What became of it.", ["begun", "done", "refused", "failed"]),
  payload: nullable(text("SHA-256 of what was given.")),
  detail: nullable(object("What else is known.", {}, { open: true })),
  hash: text("Over this record and the hash of the one before."),
});

/** What cannot be opened here is shown as it is kept: one record keeps nobody from the others. */
function detailOf(detail: string | null): unknown {
  if (detail === null) return null;
  try {
    return JSON.parse(detail);
  } catch {
    return { unreadable: detail };
  }
}

export const auditRoutes: readonly Route[] = [
  route(
    {
      method: "GET",
      path: "/api/audit",
      role: "admin",
      summary: "Lists the audit log, oldest first.",
      query: {
        cursor: optional(whole("The number of the last record of the page before.", 0)),
        limit: optional(whole("How many on a page.", 1, LIMITS.listPageMax)),
      },
      answer: object("A page of the log.", {
        records: listOf("Oldest first.", RECORD),
        cursor: nullable(whole("For the next page; null at the end.", 0)),
      }),
    },
    async ({ pawl, query: { cursor = 0, limit = LIMITS.listPage } }) => {
      const records = await pawl.store.audits({ after: cursor, limit: limit + 1 });
      const shown = records.slice(0, limit).map(({ at, detail, ...record }) => ({
        ...record,
        at: new Date(at),
        detail: detailOf(detail),
      }));
      return { records: shown, cursor: records.length > limit ? (shown.at(-1)?.n ?? null) : null };
    },
  ),
  route(
    {
      method: "GET",
      path: "/api/audit/check",
      role: "admin",
      summary: "Walks the whole audit log and says which record, if any, is not what was recorded.",
      answer: object("How it stands.", {
        records: whole("How many were read, and are sound.", 0),
        fault: nullable(
          object("The first that is not.", {
            n: whole("Its number.", 1),
            what: oneOf("What is wrong with it.", ["edited", "missing"]),
          }),
        ),
      }),
    },
    ({ pawl }) => pawl.operations.checkAudit(),
  ),
];
