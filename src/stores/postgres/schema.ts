// The schema and its history
// A migration is never edited once released: it is what some database out there has been through. Each runs in one transaction, under an
// advisory lock. Workers of an older release go on meanwhile, so a migration only adds: columns with defaults, tables, indexes, and functions
// under new names; what nobody calls any more goes one release later. `since` says which code can still work with the result.
import { claimFunctions, laterClaimFunctions } from "./claim-functions.ts";
import { commitFunctions } from "./commit-functions.ts";
import { laterLineFunctions, lineFunctions } from "./line-functions.ts";
import { mailFunctions } from "./mail-functions.ts";
import { operators } from "./operator-functions.ts";
import { streams } from "./stream-functions.ts";
import { tables } from "./tables.ts";
import { timeFunctions } from "./time-functions.ts";
import { transactFunctions } from "./transact-functions.ts";
import { unclaimedRuns } from "./unclaimed-function.ts";
import { upkeepFunctions } from "./upkeep-functions.ts";
import { workerFunctions } from "./worker-functions.ts";

export interface Migration {
  readonly version: number;
  /** The oldest schema version whose code works with this one. */
  readonly since: number;
  /** For a schema whose quoted name is given. */
  sql(schema: string): string;
}

const FIRST = [
  tables,
  timeFunctions,
  mailFunctions,
  commitFunctions,
  transactFunctions,
  lineFunctions,
  claimFunctions,
  workerFunctions,
  upkeepFunctions,
  (s: string) => `select ${s}.partition_1();`,
];

/** Versions: which ones runs have that nobody owns, handles with a policy, and writing to runs that need a slot. */
const SECOND = [unclaimedRuns, laterLineFunctions, laterClaimFunctions];

export const MIGRATIONS: readonly Migration[] = [
  { version: 1, since: 1, sql: (schema) => FIRST.map((part) => part(schema)).join("\n") },
  { version: 2, since: 1, sql: (schema) => SECOND.map((part) => part(schema)).join("\n") },
  // What steps emit.
  { version: 3, since: 1, sql: streams },
  // Holds, the audit log, the catalogue of workflows, searches.
  { version: 4, since: 1, sql: operators },
];

export const LATEST_SCHEMA: number = MIGRATIONS.at(-1)?.version ?? 0;
