// Example 04, cancelled with compensate at every write of its run.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { refund } from "../../examples/04-refund/workflow.ts";
import { type LedgerLine, wayBack } from "../../examples/fakes.ts";
import { cancelText } from "../../src/base/cancel-text.ts";
import type { Pawl } from "../../src/client/pawl.ts";
import type { ApprovalRequested } from "../../src/core/approval-request.ts";
import type { Commit, Store } from "../../src/core/store.ts";
import { errorOf, HOUR, openWorld, STORES, type StoreKind } from "./harness.ts";

let ledger = "";

beforeEach(() => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-refund-"));
  ledger = join(folder, "ledger.jsonl");
  vi.stubEnv("LEDGER", ledger);
  vi.spyOn(wayBack, "travel").mockResolvedValue();
  onTestFinished(() => {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
    rmSync(folder, { recursive: true, force: true });
  });
});

/** What has happened outside to an order, in order. */
function happenedTo(order: string): string[] {
  const lines = readFileSync(ledger, "utf8").split("\n").filter(Boolean);
  const seen = lines.map((line) => JSON.parse(line) as LedgerLine);
  return seen.filter(({ did, key }) => did && key.startsWith(`${order}/`)).map(({ action }) => action);
}

const requestOf = (order: string) => ({ order, cents: 4200, email: "ada@example.org", agent: "bot-1" });

/** Somebody else approves as soon as the run asks, if it comes to that. */
async function approveWhenAsked(pawl: Pawl, id: string): Promise<void> {
  for await (const { type, payload } of pawl.get(id).events()) {
    if (type !== "approval.requested") continue;
    const decision = { decision: "approved", by: "grace", roles: ["support-lead"] } as const;
    // It may be cancelled by then.
    await pawl.approvals.decide((payload as ApprovalRequested).id, decision).catch(() => {});
    return;
  }
}

/** What takes back which effect. */
const UNDO: Readonly<Record<string, string>> = { draft: "withdraw", issue: "reverse" };

interface Point {
  readonly n: number;
  readonly when: "before" | "after";
}

/** An engine whose runs somebody else cancels around their n-th write. */
class Office {
  readonly pawl: Pawl;
  readonly #store: Store;
  #writes = 0;
  #point: Point = { n: 0, when: "after" };

  static async open(kind: StoreKind): Promise<Office> {
    const world = await openWorld(kind);
    const office = new Office(world.store, await world.open([refund]));
    const commit = world.store.commit.bind(world.store);
    vi.spyOn(world.store, "commit").mockImplementation(async (batch) => {
      await office.#cancelAt("before", batch);
      const verdicts = await commit(batch);
      await office.#cancelAt("after", batch);
      return verdicts;
    });
    return office;
  }

  constructor(store: Store, pawl: Pawl) {
    this.#store = store;
    this.pawl = pawl;
  }

  /** Plays a refund that is approved, and cancelled at this point; whether it came to the point. */
  async refund(id: string, point: Point): Promise<boolean> {
    this.#writes = 0;
    this.#point = point;
    const run = await this.pawl.start(refund, requestOf(id), { id });
    await Promise.all([run.result().catch(() => {}), approveWhenAsked(this.pawl, id)]);
    return this.#writes >= point.n;
  }

  /** Before the first write, which creates the run, there is nothing to cancel. */
  async #cancelAt(when: Point["when"], { runs: [part] }: Commit): Promise<void> {
    if (part === undefined) return;
    if (when === "before") this.#writes++;
    if (this.#writes !== this.#point.n || this.#point.when !== when) return;
    const data = cancelText({ reason: "found fraud", compensate: true });
    await this.#store.deliver({ to: part.run, id: "cancel", kind: "cancel", name: "", data });
  }
}

describe.each(STORES)("a refund that is cancelled, on %s", (store) => {
  it("D-10 C-15 I16 P19 at every point: what was done is taken back, the last first, once, and the ledger says so", async () => {
    const office = await Office.open(store);
    const undone = new Set<string>();
    for (let n = 1, isPoint = true; isPoint; n++) {
      for (const when of ["before", "after"] as const) {
        const id = `${when}-${n}`;
        isPoint = await office.refund(id, { n, when });
        const { state } = await office.pawl.get(id).status();
        const actions = happenedTo(id);
        const takenBack = actions.filter((action) => Object.values(UNDO).includes(action));
        if (state === "succeeded") {
          expect(takenBack, id).toEqual([]);
          continue;
        }
        expect(state, id).toBe("cancelled");
        // One that was planned may have happened: it is taken back as well.
        const ledger = (await office.pawl.get(id).effects()).filter(({ undo }) => undo);
        for (const { status } of ledger) expect(status, id).toBe("compensated");
        expect(takenBack, id).toEqual(ledger.map(({ effect }) => UNDO[effect]).reverse());
        const done = actions.filter((action) => action in UNDO);
        expect(
          ledger.map(({ effect }) => effect),
          id,
        ).toEqual(expect.arrayContaining(done));
        undone.add(takenBack.join());
      }
    }
    expect([...undone]).toEqual(["withdraw", "reverse,withdraw"]);
  });

  it("C-15 E-15 S2-58 with a bank that takes nothing back, it is compensation_incomplete and lists the refund; the draft is withdrawn", async () => {
    vi.spyOn(wayBack, "travel").mockImplementation(async ({ action }) => {
      if (action === "mail") await new Promise(() => {});
      if (action === "reverse") throw new Error("the bank takes nothing back");
    });
    const world = await openWorld(store);
    const pawl = await world.open([refund]);
    const run = await pawl.start(refund, requestOf("order-7"), { id: "order-7" });
    await approveWhenAsked(pawl, run.id);
    await world.settle();
    await run.cancel({ compensate: true });
    await world.advance(HOUR);
    expect(await errorOf(run.result())).toMatchObject({
      code: "compensation_incomplete",
      fields: { remaining: [{ effect: "issue", error: expect.stringContaining("retries are used up") }] },
    });
    expect((await run.status()).stopReason).toBe("compensation_incomplete");
    expect(happenedTo("order-7").filter((action) => action === "withdraw")).toHaveLength(1);
  });
});
