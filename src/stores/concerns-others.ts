import type { RunCommit } from "../core/store.ts";

/** Whether a part gives somebody else something to claim or to read. */
export function concernsOthers({ create, children, messages, row }: RunCommit): boolean {
  const isForAnyone = (run: { claimed: boolean } | undefined) => run?.claimed === false;
  if (isForAnyone(create) || children?.some((child) => isForAnyone(child.create))) return true;
  return (messages?.length ?? 0) > 0 || typeof row?.readyAt === "number" || row?.frees === true;
}
