import { PawlError } from "../../base/errors.ts";
import { OK } from "../answers.ts";
import { type Route, route } from "../route.ts";

export const healthRoutes: readonly Route[] = [
  route(
    { method: "GET", path: "/api/health", role: "public", summary: "Says that the server is there.", answer: OK },
    () => ({ ok: true }),
  ),
  route(
    {
      method: "GET",
      path: "/api/ready",
      role: "public",
      summary: "Says that every store answers.",
      answer: OK,
    },
    async ({ server }) => {
      await Promise.all([...server.tenants.values()].map(async (pawl) => answers(pawl.store.runs({ limit: 1 }))));
      return { ok: true };
    },
  ),
];

/** What is wrong with a store is for those who run it, not for everybody who asks. */
async function answers(asked: Promise<unknown>): Promise<void> {
  try {
    await asked;
  } catch (cause) {
    throw new PawlError("storage_unavailable", "A store does not answer. Look at the server's log.", { cause });
  }
}
