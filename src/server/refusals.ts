// Refusals of nobody
// Who has no credential may be refused as often as they like, and the audit log must not grow with it.
//
//   RF1. The first refusals of an address are recorded one by one, and of all addresses together no more than a bound; the rest are counted.
//   RF2. What was counted is recorded as one line for each store, once a minute and when the server stops.
import type { Clock } from "../base/clock.ts";
import { type Deed, recordRefusal } from "../client/audited.ts";
import type { Log } from "../core/context.ts";
import type { Store } from "../core/store.ts";
import { networkOf } from "./network.ts";
import { RateLimit } from "./rate-limits.ts";
import type { ServerLimits } from "./server-limits.ts";

type Limits = Pick<ServerLimits, "refusals" | "refusalsPerAddress">;

/** Who asks for something that nobody has shown a credential for. */
export const NOBODY = "nobody";

const TELL_MS = 60_000;
/** So many addresses are named; more are not of use to anybody. */
const MAX_NAMED = 20;

interface Counted {
  more: number;
  readonly since: number;
  readonly networks: Set<string>;
}

export class Refusals {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #perAddress: RateLimit;
  readonly #inAll: RateLimit;
  readonly #counted = new Map<Store, Counted>();
  #forget: (() => void) | null = null;
  #isStopped = false;

  constructor(clock: Clock, { refusals, refusalsPerAddress }: Limits, log: Log) {
    this.#clock = clock;
    this.#log = log;
    this.#perAddress = new RateLimit(clock, refusalsPerAddress);
    this.#inAll = new RateLimit(clock, refusals);
  }

  /** Records that nobody from this address was refused, or counts it. It never throws: who is refused is refused all the same. */
  async add(store: Store, address: string, deed: Omit<Deed, "who">, error: unknown): Promise<void> {
    const network = networkOf(address);
    // Who has used up their own has none of the others'.
    const isRecorded = this.#perAddress.take(network) === null && this.#inAll.take("") === null;
    if (isRecorded) await this.#record(store, { ...deed, who: NOBODY }, error);
    else this.#count(store, network);
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#tell();
  }

  #count(store: Store, network: string): void {
    const counted = this.#counted.get(store) ?? { more: 0, since: this.#clock.now(), networks: new Set() };
    counted.more += 1;
    if (counted.networks.size < MAX_NAMED) counted.networks.add(network);
    this.#counted.set(store, counted);
    if (!this.#isStopped) this.#forget ??= this.#clock.after(TELL_MS, () => void this.#tell());
  }

  async #tell(): Promise<void> {
    this.#forget?.();
    this.#forget = null;
    const all = [...this.#counted];
    this.#counted.clear();
    for (const [store, { more, since, networks }] of all) {
      const detail = { more, since: new Date(since).toISOString(), addresses: [...networks] };
      const deed = { who: NOBODY, action: "refused requests", subject: null, from: null, payload: null, detail };
      await this.#record(store, deed, `${more} more were refused.`);
    }
  }

  async #record(store: Store, deed: Deed, error: unknown): Promise<void> {
    try {
      await recordRefusal(store, deed, error);
    } catch (fault) {
      this.#log.error(`A refusal of "${deed.action}" could not be recorded`, { error: fault });
    }
  }
}
