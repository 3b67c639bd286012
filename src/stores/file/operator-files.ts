// What operators leave in a directory
// `operators/` has the holds, the audit log and what workers have said about their workflows. Operators give their commands beside a worker that has
// the directory, so any process may write here: each for a moment, under a lock of its own, and from what is on the disk then.
//
//   OF1. Everything is read again under the lock before it is changed; nothing is kept in memory.
//   OF2. A purge has this lock from its look at the holds until its last run is gone: a run is held in time, or it is found to be gone.
//   OF3. A record of the audit log is a line, synced before the head is moved to it: the log is never shorter than its head says (AU2). Lines behind
//        the head were written by somebody who was killed before the answer, and count.
import { closeSync, fstatSync, openSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";
import { PawlError, readProperty } from "../../base/errors.ts";
import { type AuditHead, type AuditQuery, type AuditRecord, type NewAudit, NO_AUDITS } from "../../core/audit.ts";
import type { WorkflowFacts, WorkflowRow } from "../../core/catalogue.ts";
import type { HoldQuery, HoldRow, NewHold } from "../../core/holds.ts";
import {
  addFacts,
  addHold,
  listAudits,
  listFacts,
  listHolds,
  nextAudit,
  type Operators,
  removeHold,
} from "../memory/operators.ts";
import type { Directory } from "./directory.ts";
import { unavailable } from "./disk.ts";
import { tryLock } from "./lock.ts";
import { checkFile } from "./read-document.ts";
import { count, list, number, record, type Shape, text } from "./shape.ts";

const TRIES = 200;
const BETWEEN_MS = 10;

// Captured at load: the determinism guard replaces the globals later.
const { setTimeout: startTimer } = globalThis;
const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    startTimer(resolve, ms);
  });

/** The head, and where its line ends: what is behind it is read on from there. */
interface Head extends AuditHead {
  readonly bytes: number;
}

const NO_HEAD: Head = { ...NO_AUDITS, bytes: 0 };

const headShape = record({ n: count, hash: text, bytes: count });
const holdsShape = record({ holds: list(record({ run: text, who: text, why: text, at: number })) });
const workflowsShape = record({ workflows: list(record({ name: text, version: text, facts: text, at: number })) });

export class OperatorFiles {
  readonly #directory: Directory;

  constructor(directory: Directory) {
    this.#directory = directory;
  }

  get #folder(): string {
    return join(this.#directory.path, "operators");
  }

  /** Does what must not happen beside another process that writes here, or beside a purge. */
  async alone<T>(work: () => T): Promise<T> {
    this.#directory.check();
    this.#directory.disk.makeFolder(this.#folder);
    const path = join(this.#folder, "lock");
    for (let left = TRIES; left > 0; left--) {
      const lock = tryLock(path, "begin exclusive");
      if (lock === null) {
        await pause(BETWEEN_MS);
        continue;
      }
      try {
        return work();
      } finally {
        lock.close();
      }
    }
    throw new PawlError(
      "storage_unavailable",
      `Another process has had ${path} for ${(TRIES * BETWEEN_MS) / 1000} s. Try again; nothing was changed.`,
      { fields: { path } },
    );
  }

  // Holds

  hold(run: string, hold: NewHold, now: number, isThere: () => boolean): Promise<HoldRow | null> {
    return this.alone(() => {
      if (!isThere()) return null;
      const holds = this.allHolds();
      const isNew = !holds.has(run);
      const kept = addHold(holds, run, hold, now);
      if (isNew) this.#writeHolds(holds);
      return kept;
    });
  }

  releaseHold(run: string): Promise<HoldRow | null> {
    return this.alone(() => {
      const holds = this.allHolds();
      const released = removeHold(holds, run);
      if (released !== null) this.#writeHolds(holds);
      return released;
    });
  }

  holds(query: HoldQuery): HoldRow[] {
    return listHolds(this.allHolds(), query);
  }

  allHolds(): Operators["holds"] {
    const { holds } = this.#read<{ readonly holds: readonly HoldRow[] }>("holds.json", holdsShape) ?? { holds: [] };
    return new Map(holds.map((hold) => [hold.run, hold]));
  }

  #writeHolds(holds: Operators["holds"]): void {
    this.#write("holds.json", { holds: [...holds.values()] });
  }

  // The audit log

  record(entry: NewAudit, now: number): Promise<AuditRecord> {
    return this.alone(() => {
      const head = this.#head();
      const behind = recordsOf(textFrom(this.#log, head.bytes));
      const added = nextAudit(behind.at(-1) ?? head, entry, now);
      this.#directory.disk.append(this.#log, `${JSON.stringify(added)}\n`, true);
      this.#write("audit-head.json", { n: added.n, hash: added.hash, bytes: sizeOf(this.#log) } satisfies Head);
      return added;
    });
  }

  audits(query: AuditQuery): AuditRecord[] {
    return listAudits(recordsOf(textFrom(this.#log, 0)), query);
  }

  auditHead(): AuditHead {
    const { n, hash } = this.#head();
    return { n, hash };
  }

  #head(): Head {
    return this.#read<Head>("audit-head.json", headShape) ?? NO_HEAD;
  }

  get #log(): string {
    return join(this.#folder, "audit.jsonl");
  }

  // What workers say of workflows

  describe(workflows: readonly WorkflowFacts[], now: number): Promise<void> {
    return this.alone(() => {
      const rows: Operators["workflows"] = new Map();
      for (const row of this.workflows()) addFacts(rows, [row], row.at);
      addFacts(rows, workflows, now);
      this.#write("workflows.json", { workflows: listFacts(rows) });
    });
  }

  workflows(): WorkflowRow[] {
    const found = this.#read<{ readonly workflows: WorkflowRow[] }>("workflows.json", workflowsShape);
    return found?.workflows ?? [];
  }

  /** `null`: there is no such file. */
  #read<T>(name: string, shape: Shape): T | null {
    const file = join(this.#folder, name);
    const found = textOf(file);
    return found === null ? null : (checkFile(file, found, shape) as unknown as T);
  }

  #write(name: string, value: object): void {
    this.#directory.disk.replace([{ path: join(this.#folder, name), text: `${JSON.stringify(value, null, 2)}\n` }]);
  }
}

/** A line that is none is left out; whoever checks the log finds its number missing. */
function recordsOf(lines: string): AuditRecord[] {
  return lines.split("\n").flatMap((line) => {
    try {
      const found = JSON.parse(line) as AuditRecord;
      return Number.isSafeInteger(found?.n) && typeof found.hash === "string" ? [found] : [];
    } catch {
      return [];
    }
  });
}

function textOf(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (readProperty(error, "code") === "ENOENT") return null;
    throw unavailable(error);
  }
}

function textFrom(file: string, from: number): string {
  if (from === 0) return textOf(file) ?? "";
  return withFile(file, "", (handle) => {
    const bytes = Buffer.alloc(Math.max(0, fstatSync(handle).size - from));
    return bytes.subarray(0, readSync(handle, bytes, 0, bytes.length, from)).toString("utf8");
  });
}

function sizeOf(file: string): number {
  return withFile(file, 0, (handle) => fstatSync(handle).size);
}

function withFile<T>(file: string, missing: T, look: (handle: number) => T): T {
  let handle: number | null = null;
  try {
    handle = openSync(file, "r");
    return look(handle);
  } catch (error) {
    if (readProperty(error, "code") === "ENOENT") return missing;
    throw unavailable(error);
  } finally {
    if (handle !== null) closeSync(handle);
  }
}
