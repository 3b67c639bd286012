// SIGKILL in the window of an effect: behind the bank's doing and before anything of it is recorded, and just before the bank is asked. For
// every way of recovery there is a run; one process begins all of them and dies with all of them, this one finds what it has left.
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { Pawl, type Workflow } from "../../src/index.ts";
import { postgresUrl } from "../fixtures/cli/postgres-url.ts";
import { live } from "./child.ts";
import { compiled } from "./compiled.ts";
import { World } from "./world.ts";

// Other work may slow the machine down.
vi.setConfig({ testTimeout: 60_000 });

const CHARGES = fileURLToPath(new URL("./charges.mjs", import.meta.url));
const { charging } = (await import(/* @vite-ignore */ CHARGES)) as { charging: Workflow<undefined, string> };

const CHOICES = ["happened", "did-not-happen", "compensate", "abort"];
const RUNS = ["rerun", "detect", "compensate", "fail", ...CHOICES.map((choice) => `ask-${choice}`)];

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

/** What became of a run, and what the bank was asked for it: `charge` did something, `charge again` was recognised by its key. */
interface Account {
  readonly end: unknown;
  readonly effect: string | undefined;
  readonly bank: readonly string[];
}

class Window {
  readonly #world = new World();
  readonly #store: string;

  constructor(store: "sqlite" | "postgres") {
    this.#store = store === "sqlite" ? this.#world.store() : postgresUrl();
  }

  /** A process begins all runs and is killed once the last of them has come to the point. */
  async kill(point: "call" | "effect"): Promise<void> {
    const runs = RUNS.map((id) => ({ workflow: "charging", id, input: null }));
    const env = { ...this.#world.env, FAKES: compiled("fakes.ts"), HOLD: point, FAKES_LATENCY_MS: "600000" };
    const kill = { point, n: runs.length };
    const child = await live({ engines: [{ store: this.#store, runs }], files: [CHARGES], kill }, { env });
    expect(await child.exited, child.report()).toEqual({ code: null, signal: "SIGKILL" });
  }

  /** Goes on with what is left, and has a person decide where one is asked. */
  async recover(): Promise<Readonly<Record<string, Account>>> {
    vi.stubEnv("LEDGER", this.#world.env["LEDGER"]);
    vi.stubEnv("FAKES", compiled("fakes.ts"));
    onTestFinished(() => void vi.unstubAllEnvs());
    const pawl = await Pawl.open(this.#store, { workflows: [charging], logger: SILENT });
    try {
      const accounts = await Promise.all(RUNS.map(async (id) => [id, await this.#account(pawl, id)] as const));
      expect(await pawl.store.orphans()).toEqual([]);
      return Object.fromEntries(accounts);
    } finally {
      await pawl.close();
    }
  }

  async #account(pawl: Pawl, id: string): Promise<Account> {
    const [, choice] = /^ask-(.+)/.exec(id) ?? [];
    if (choice !== undefined) await this.#decide(pawl, id, choice);
    const run = pawl.get(id);
    const end = await run.result().catch(({ code }: { code: unknown }) => code);
    const [effect] = await run.effects();
    return { end, effect: effect?.status, bank: this.#asked(id) };
  }

  /** The run waits for a person, whom it tells what to look for; nobody else has asked the bank again. */
  async #decide(pawl: Pawl, id: string, choice: string): Promise<void> {
    const before = this.#asked(id);
    for await (const { type } of pawl.get(id).events()) if (type === "run.parked") break;
    const { parked } = await pawl.get(id).status();
    expect(parked).toMatchObject({ reason: "unknown_outcome", choices: CHOICES });
    expect(parked?.message).toContain(`${id}/charge`);
    expect(await pawl.get(id).effects()).toMatchObject([{ status: "unknown", attempts: 1 }]);
    expect(this.#asked(id)).toEqual(before);
    await pawl.resolve(id, { choice, value: { payment: "what the person saw" } });
  }

  #asked(id: string): string[] {
    const isAbout = (about: string) => [id, `pay-${id}`, `${id}/charge`].includes(about);
    const lines = this.#world.ledger().filter(({ about }) => isAbout(about));
    return lines.map(({ action, did }) => (did ? action : `${action} again`));
  }
}

describe.each(["sqlite", "postgres"] as const)("killed in the window of an effect, on %s", (store) => {
  it("C-3 I6 S2-36 S2-49 after the bank has charged: there is one charge under every policy, or none that was not paid back, and whoever cannot tell asks", async () => {
    const window = new Window(store);
    await window.kill("effect");
    expect(await window.recover()).toEqual({
      rerun: { end: "pay-rerun", effect: "executed", bank: ["charge", "charge again"] },
      detect: { end: "pay-detect", effect: "executed", bank: ["charge"] },
      compensate: { end: "step_interrupted", effect: "compensated", bank: ["charge", "pay back"] },
      fail: { end: "step_interrupted", effect: "unknown", bank: ["charge"] },
      "ask-happened": { end: "what the person saw", effect: "executed", bank: ["charge"] },
      // The person is mistaken: the key is the same, so this bank does not charge twice.
      "ask-did-not-happen": { end: "pay-ask-did-not-happen", effect: "executed", bank: ["charge", "charge again"] },
      "ask-compensate": { end: "cancelled", effect: "compensated", bank: ["charge", "pay back"] },
      "ask-abort": { end: "cancelled", effect: "unknown", bank: ["charge"] },
    });
  });

  it("C-3 I6 S2-36 before the bank was asked: whoever can tell charges once, or not at all, and whoever cannot asks", async () => {
    const window = new Window(store);
    await window.kill("call");
    expect(await window.recover()).toEqual({
      rerun: { end: "pay-rerun", effect: "executed", bank: ["charge"] },
      detect: { end: "pay-detect", effect: "executed", bank: ["charge"] },
      compensate: { end: "step_interrupted", effect: "compensated", bank: [] },
      fail: { end: "step_interrupted", effect: "unknown", bank: [] },
      "ask-happened": { end: "what the person saw", effect: "executed", bank: [] },
      "ask-did-not-happen": { end: "pay-ask-did-not-happen", effect: "executed", bank: ["charge"] },
      // Nobody can tell whether there is anything to pay back: the bank is asked to, by the key of the charge.
      "ask-compensate": { end: "cancelled", effect: "compensated", bank: ["pay back"] },
      "ask-abort": { end: "cancelled", effect: "unknown", bank: [] },
    });
  });
});
