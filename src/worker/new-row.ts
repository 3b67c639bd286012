import type { Chain } from "../core/draft.ts";
import type { Entry } from "../core/journal.ts";
import type { PassInput } from "../core/pass-ports.ts";
import type { NewRun, RunRow } from "../core/store.ts";
import type { Workflow } from "../core/workflow.ts";

/** What the first pass of a run begins with that was just created and claimed here. */
export function firstInput(
  run: string,
  workflow: Workflow,
  create: NewRun,
  started: Entry,
  chain: Chain,
  owner: string | null,
): PassInput {
  const row = newRow(run, create, chain, started.at, owner);
  const mail = { wake: 0, cancel: null, inbox: [] };
  return { row, workflow, entries: [started], generation: 0, chain, mail, readAt: row.createdAt };
}

/** The row of that run, as the store would show it. */
function newRow(id: string, create: NewRun, chain: Chain, createdAt: number, owner: string | null): RunRow {
  const { workflow, version, traceId, key, tags, priority, parent, origin, deadline, codec } = create;
  return {
    id,
    workflow,
    version,
    state: "running",
    traceId,
    key,
    tags,
    priority,
    parent,
    origin,
    createdAt,
    endedAt: null,
    deadline,
    head: chain.head,
    headHash: chain.hash,
    owner,
    readyAt: null,
    wakeAt: null,
    wake: 0,
    cancel: null,
    claims: 1,
    stopReason: null,
    progress: null,
    cost: null,
    codec,
    slot: create.needs?.slot ?? null,
    rate: null,
  };
}
