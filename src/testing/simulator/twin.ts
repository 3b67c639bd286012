// The twin of the model on SQLite (I22)
// Gets every call that the model gets, in the same order and at the same virtual time, each process through a connection of its own, as in real
// life. Its answers go nowhere: they are compared with the model's, and so is all that can be read at the end.
//
//   T1. Calls follow each other: each is over before the next begins, as for the one store of the model.
//   T2. No call waits for real time, so all of them are over before the next event: the simulation takes the same way with a twin as without.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { PawlError } from "../../base/errors.ts";
import type { Store } from "../../core/store.ts";
import { sqliteStore } from "../../stores/sqlite/sqlite-store.ts";
import { callStore, type Method, noTimer, type StoreCall } from "./store-call.ts";

/** How much of an answer is shown before the place where two of them differ, and how much at all. */
const AROUND = 100;
const SHOWN = 400;

export class Twin {
  readonly #differs: (what: string) => void;
  readonly #folder = mkdtempSync(join(tmpdir(), "pawl-simulation-"));
  readonly #opened: Store[] = [];
  /** Connections to the present file, by process. */
  readonly #stores = new Map<number, Store>();
  readonly #clock: Clock = {
    now: () => this.#moment.wall,
    monotonic: () => this.#moment.monotonic,
    at: noTimer,
    after: noTimer,
  };
  #moment: Pick<StoreCall, "wall" | "monotonic"> = { wall: 0, monotonic: 0 };
  #last: Promise<void> = Promise.resolve();
  #files = 0;

  constructor(differs: (what: string) => void) {
    this.#differs = differs;
  }

  /** Makes the call here as well, and compares. */
  follow(call: StoreCall, model: Promise<unknown>): void {
    this.#last = this.#last.then(() => this.#compare(call, model));
  }

  /** Goes on with an empty file. */
  startOver(): void {
    this.#last = this.#last.then(() => {
      this.#stores.clear();
      this.#files++;
    });
  }

  async #compare(call: StoreCall, model: Promise<unknown>): Promise<void> {
    const { pid, method, args } = call;
    this.#moment = call;
    const actual = await saidBy(callStore(this.#storeOf(pid), method, args));
    const expected = await saidBy(model);
    if (actual !== expected) this.#tell(`${method}(${args.map(said).join(", ")})`, actual, expected);
  }

  /** Compares everything that can be read. */
  async compareAll(model: Store): Promise<void> {
    await this.#last;
    const expected = await everythingIn(model);
    const actual = await everythingIn(this.#storeOf(0));
    for (const [what, text] of expected)
      if (actual.get(what) !== text) return this.#tell(`in the end ${what}`, actual.get(what) ?? "nothing", text);
  }

  #tell(call: string, actual: string, expected: string): void {
    const at = [...expected].findIndex((letter, i) => letter !== actual[i]);
    const from = Math.max(0, (at < 0 ? expected.length : at) - AROUND);
    const part = (text: string) => `${from > 0 ? "…" : ""}${shortened(text.slice(from))}`;
    this.#differs(`${shortened(call)} gave ${part(actual)} on SQLite and ${part(expected)} on the model`);
  }

  async close(): Promise<void> {
    await this.#last;
    for (const store of this.#opened) await store.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #storeOf(pid: number): Store {
    const known = this.#stores.get(pid);
    if (known !== undefined) return known;
    const clocks = { clock: this.#clock, leaseClock: this.#clock };
    const options = { ...clocks, durability: "process", courtesyMs: 0 } as const;
    const store = sqliteStore(join(this.#folder, `${this.#files}.db`), options);
    // Nobody else has the file, so it is open when this returns; if it cannot be opened, the call after it says so.
    store.open().catch(() => {});
    this.#stores.set(pid, store);
    this.#opened.push(store);
    return store;
  }
}

async function everythingIn(store: Store): Promise<Map<string, string>> {
  const rows = await store.runs({ limit: Number.MAX_SAFE_INTEGER });
  const found = new Map([["runs()", said(rows)]]);
  const read = async (method: Method, ...args: readonly unknown[]) =>
    void found.set(`${method}(${args.map(said).join(", ")})`, await saidBy(callStore(store, method, args)));
  for (const { id } of rows) for (const method of ["journal", "inbox", "state"] as const) await read(method, id);
  await read("waits", {});
  await read("counters", "");
  await read("orphans");
  await read("nextWake");
  return found;
}

/** An answer as text; of an error the code alone, since its words differ by right. */
function saidBy(answer: Promise<unknown>): Promise<string> {
  return answer.then(said, (error: unknown) => (error instanceof PawlError ? `error ${error.code}` : `${error}`));
}

function shortened(text: string): string {
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}

function said(value: unknown): string {
  return JSON.stringify(value, comparable) ?? "nothing";
}

/** Fields in the order of their names. */
function comparable(_key: string, value: unknown): unknown {
  if (value instanceof PawlError) return { code: value.code };
  if (value instanceof Uint8Array) return { bytes: Buffer.from(value).toString("hex") };
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const names = Object.keys(value).sort();
  return Object.fromEntries(names.map((name) => [name, (value as Record<string, unknown>)[name]]));
}
