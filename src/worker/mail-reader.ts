import type { Pass } from "../core/pass.ts";
import type { Store } from "../core/store.ts";
import type { PassTable } from "./pass-table.ts";

/** Brings passes what has reached their runs from outside: read when hinted, when asked for, and by polling. */
export class MailReader {
  readonly #store: Store;
  readonly #passes: PassTable;
  readonly #again: () => void;
  readonly #wanted = new Set<Pass>();
  readonly #seen = new Map<string, string>();

  /** `again` has `read` called once more. */
  constructor(store: Store, passes: PassTable, again: () => void) {
    this.#store = store;
    this.#passes = passes;
    this.#again = again;
  }

  get isWanted(): boolean {
    return this.#wanted.size > 0;
  }

  /** This pass needs to know its inbox as it is from now on. */
  want(pass: Pass): void {
    this.#wanted.add(pass);
  }

  /** What a pass had to write is durable: if it asked before its run was in the store, it can be told now. */
  landed(pass: Pass): void {
    if (this.#wanted.has(pass)) this.#again();
  }

  forget(pass: Pass): void {
    this.#wanted.delete(pass);
    this.#seen.delete(pass.id);
  }

  async read(worker: string): Promise<void> {
    if (this.#passes.size === 0) return;
    const wanted = [...this.#wanted];
    this.#wanted.clear();
    try {
      await this.#readFor(worker, wanted);
    } catch (error) {
      // They are still waiting: the next round tries again.
      for (const pass of wanted) this.#wanted.add(pass);
      throw error;
    }
  }

  async #readFor(worker: string, wanted: readonly Pass[]): Promise<void> {
    const readAt = this.#store.clock.now();
    const told = new Set<Pass>();
    for (const mail of await this.#store.owned(worker, { news: true })) {
      const pass = this.#passes.get(mail.run);
      if (pass === undefined) continue;
      const version = `${mail.wake} ${mail.cancel}`;
      const isNew = this.#seen.get(mail.run) !== version;
      this.#seen.set(mail.run, version);
      if (!isNew && !wanted.includes(pass)) continue;
      told.add(pass);
      pass.mail(mail, readAt);
    }
    const rest = wanted.filter((pass) => !told.has(pass) && !pass.isOver);
    if (rest.length > 0) await this.#readQuiet(worker, rest, readAt);
  }

  /** Passes that asked and have nothing new: they still need to know the counter as it is now. */
  async #readQuiet(worker: string, passes: readonly Pass[], readAt: number): Promise<void> {
    const early = new Set(passes.filter((pass) => pass.durableHead === 0));
    const owned = new Map((await this.#store.owned(worker, { news: false })).map((mail) => [mail.run, mail]));
    for (const pass of passes) {
      const mail = owned.get(pass.id);
      if (mail !== undefined) pass.mail(mail, readAt);
      else if (!pass.isOver) {
        // Not in the store yet: its first commit is still on the way, and the question stays; or it has landed meanwhile.
        this.#wanted.add(pass);
        if (early.has(pass) && pass.durableHead > 0) this.#again();
      }
    }
  }
}
