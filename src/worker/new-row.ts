import type { Chain } from "../core/draft.ts";
import type { NewRun, RunRow } from "../core/store.ts";

/** The row of a run that was just created and claimed here, as the store would show it. */
export function newRow(id: string, create: NewRun, chain: Chain, createdAt: number, owner: string | null): RunRow {
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
