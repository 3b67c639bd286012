// Commits, from this side of the wire
//
//   CM1. Each statement names a run at most once, and has only so many bytes; a commit with more is sent in several.
//   CM2. An error that only one run can have caused must not hurt its neighbours (P16): nothing of the statement was applied, so its parts are sent
//        again one by one, and the culprit's verdict carries the error. If runs have outrun the partitions of the journal, these are made first.
//        So it is with a new run whose id or key is taken in a transaction that is still open (K5).
//   CM3. Once a part of a commit was applied, an error says nothing about the whole of it any more: the outcome is unknown (P17, I2).
import { hasCode, messageOf, PawlError } from "../../base/errors.ts";
import type { Commit, RunCommit, RunRow, Verdict } from "../../core/store.ts";
import { commitFault } from "../commit-fault.ts";
import { type OwnedRuns, staysBare } from "../owned-runs.ts";
import { CommitStatement } from "./commit-statement.ts";
import { isLockLimit, isMissingPartition, isStatementFault } from "./database-error.ts";
import type { Row } from "./driver.ts";
import type { Link } from "./link.ts";
import { runRow } from "./rows.ts";

export interface Committing {
  readonly schema: string;
  readonly owned: OwnedRuns;
  link(lane: number): Link;
  /** What a test gives as the time, or null. */
  now(): number | null;
  /** A run was created, and has this number. */
  created(n: number): void;
}

/** Of a statement; one run's part may be larger. Together with what it takes to send bytes as text, it must fit into one string. */
export const STATEMENT_BYTES = 67_108_864;

export type Answer =
  | { readonly kind: "applied"; readonly n: number; readonly children: readonly (number | null)[] }
  | { readonly kind: "again" }
  | { readonly kind: "conflict"; readonly head: number }
  | { readonly kind: "refused"; readonly why: string; readonly holder?: Row };

/** What `commit_1` says: the number of each run, and of which part there is more to say. */
interface Done {
  readonly numbers: readonly (number | null)[];
  readonly answers: Readonly<Record<string, Answer>>;
}

/** Who writes, and through which lane. */
interface Writer {
  readonly worker: string | null;
  readonly lane: number;
  /** Something of the commit may have been applied. */
  hasWritten: boolean;
}

export async function commit(to: Committing, { worker, lane = 0, runs }: Commit): Promise<Verdict[]> {
  const verdicts = new Map<RunCommit, Verdict>();
  const sound: RunCommit[] = [];
  for (const part of runs) {
    const fault = commitFault(part);
    if (fault === null) sound.push(part);
    else verdicts.set(part, { run: part.run, kind: "failed", error: fault });
  }
  const writer: Writer = { worker, lane, hasWritten: false };
  for (const parts of inStatements(sound)) {
    const answered = await commitParts(to, writer, parts).catch((error: unknown) => {
      throw writer.hasWritten ? halfDone(error) : error;
    });
    for (const [i, part] of parts.entries()) verdicts.set(part, answered[i] as Verdict);
  }
  return runs.map((part) => verdicts.get(part) as Verdict);
}

/** About how much there is to send of it. */
export function bytesOf({ entries, state = [], messages = [], children = [] }: RunCommit): number {
  let bytes = 0;
  for (const { data } of entries) bytes += data?.length ?? 0;
  for (const { data } of state) bytes += data.length;
  for (const { data } of messages) bytes += data?.length ?? 0;
  for (const { entry } of children) bytes += entry.data?.length ?? 0;
  return bytes;
}

function halfDone(error: unknown): unknown {
  if (!hasCode(error, "storage_unavailable")) return error;
  return new PawlError(
    "unknown_outcome",
    `Of this commit a part was applied, and then the store was away (${messageOf(error)}). Pawl reads it again before it goes on.`,
    { cause: error },
  );
}

/** Cuts the list where a run comes up a second time, or a statement would become too large (CM1). */
function inStatements(parts: readonly RunCommit[]): RunCommit[][] {
  const lists: RunCommit[][] = [];
  let named = new Set<string>();
  let bytes = 0;
  for (const part of parts) {
    bytes += bytesOf(part);
    if (lists.length === 0 || named.has(part.run) || bytes > STATEMENT_BYTES) {
      lists.push([]);
      named = new Set();
      bytes = bytesOf(part);
    }
    lists.at(-1)?.push(part);
    named.add(part.run);
  }
  return lists;
}

async function commitParts(to: Committing, writer: Writer, parts: readonly RunCommit[]): Promise<Verdict[]> {
  try {
    return await send(to, writer, parts, concernEachOther(parts));
  } catch (error) {
    to.owned.forgetAll();
    if (!isStatementFault(error) && !(isLockLimit(error) && parts.some(isCreation))) throw error;
    if (isMissingPartition(error)) await to.link(writer.lane).query(`select ${to.schema}.partition_1()`);
    const verdicts: Verdict[] = [];
    for (const part of parts) verdicts.push(await commitAlone(to, writer, part));
    return verdicts;
  }
}

function isCreation({ create }: RunCommit): boolean {
  return create !== undefined;
}

/** Looks at everything before it writes. */
async function commitAlone(to: Committing, writer: Writer, part: RunCommit): Promise<Verdict> {
  try {
    const [verdict] = await send(to, writer, [part], true);
    return verdict as Verdict;
  } catch (error) {
    to.owned.forgetAll();
    if (!isStatementFault(error) && !(isLockLimit(error) && isCreation(part))) throw error;
    return { run: part.run, kind: "failed", error };
  }
}

async function send(
  to: Committing,
  writer: Writer,
  parts: readonly RunCommit[],
  areOrdered: boolean,
): Promise<Verdict[]> {
  const { schema, owned } = to;
  const { worker, lane } = writer;
  const statement = new CommitStatement(parts, areOrdered, { worker, lane, now: to.now(), owned });
  const values = statement.arguments();
  const marks = values.map((_value, i) => `$${i + 1}`).join(", ");
  const bytes = parts.reduce((sum, part) => sum + bytesOf(part), 0);
  // Not in FROM: PostgreSQL takes longer to plan that than to do it.
  const [row] = await to.link(lane).query(`select ${schema}.commit_1(${marks}) as done`, values, bytes);
  const { done } = row as { done: Done | null };
  if (done === null) {
    owned.forgetAll();
    return parts.map(({ run }) => ({ run, kind: "refused", why: "fenced" }));
  }
  const { numbers, answers } = done;
  writer.hasWritten = true;
  const verdicts: Verdict[] = [];
  for (const [i, part] of parts.entries()) {
    const n = numbers[i] ?? null;
    const answer = answers[i + 1] ?? { kind: "applied", n: n as number, children: [] };
    if (answer.kind === "applied") remember(to, worker, part, answer);
    // What was known of it is forgotten, so that it goes the careful way.
    else owned.forget(part.run);
    if (answer.kind === "again") verdicts.push(await commitAlone(to, writer, part));
    else verdicts.push(verdictOf(part, answer));
  }
  return verdicts;
}

/** The answer to a commit of one run that was applied. */
export function readAnswer(to: Committing, worker: string | null, part: RunCommit, row: Row | undefined): Verdict {
  const { numbers, answers } = (row as { done: Done }).done;
  const answer = answers[1] ?? { kind: "applied", n: numbers[0] as number, children: [] };
  if (answer.kind === "applied") remember(to, worker, part, answer);
  return { run: part.run, kind: "applied" };
}

/** Whether a part has to do with another one's run: then their order counts (P24). */
function concernEachOther(parts: readonly RunCommit[]): boolean {
  const isSpeaking = parts.some(({ messages, children }) => messages !== undefined || children !== undefined);
  if (!isSpeaking) return false;
  const named = new Set(parts.map(({ run }) => run));
  return parts.some(
    ({ messages, children }) =>
      messages?.some(({ to }) => named.has(to)) === true || children?.some(({ run }) => named.has(run)) === true,
  );
}

export function verdictOf({ run }: RunCommit, answer: Exclude<Answer, { kind: "again" }>): Verdict {
  if (answer.kind === "applied") return { run, kind: "applied" };
  if (answer.kind === "conflict") return { run, kind: "conflict", head: answer.head };
  const { why, holder } = answer;
  if (why === "exists") return { run, kind: "refused", why, holder: runRow(holder as Row) as RunRow };
  return { run, ...answer } as Verdict;
}

function remember(
  { owned, created }: Committing,
  worker: string | null,
  part: RunCommit,
  { n, children }: Extract<Answer, { kind: "applied" }>,
): void {
  if (part.create !== undefined) created(n);
  for (const number of children) if (number !== null) created(number);
  if (worker === null) return;
  const before = part.create === undefined ? owned.find(part.run, worker, part.head) : null;
  const isBare = (part.create !== undefined || before?.isBare === true) && staysBare(part);
  const isKept = part.create?.claimed !== false && part.row?.release !== true && part.row?.ended !== true;
  if (isKept) owned.remember(part.run, { n, owner: worker, head: part.head + part.entries.length, isBare });
  else owned.forget(part.run);
  for (const [i, child] of (part.children ?? []).entries()) {
    const number = children[i] ?? null;
    if (number === null || !child.create.claimed) continue;
    owned.remember(child.run, { n: number, owner: worker, head: 1, isBare: true });
  }
}
