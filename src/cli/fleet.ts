// The processes of `pawl worker --processes n`
// Each has a place. Whatever becomes of the process in it, another one follows, until the fleet is stopped.
//
//   FL1. A process that dies is replaced: at once if it has worked for a while, after longer and longer waits if it keeps dying early.
//   FL2. In a rolling restart the new process works before the old one is asked to stop. One that does not come to work ends the restart: the old
//        ones go on.
//   FL3. If the first process cannot begin, none can: the fleet does not start, for the same reason.
import { backoffMs } from "../base/backoff.ts";
import { formatMs } from "../base/duration.ts";
import { DEFAULTS } from "../core/limits.ts";
import { Member, type MemberEnd } from "./member.ts";
import type { Work, WorkingOn } from "./work.ts";

/** A process that has worked for so long did not die of how it began. */
const SOUND_MS = 10_000;
const AGAIN = { baseMs: 100, factor: 2, capMs: 30_000, jitter: false } as const;
/** What is left to do after the steps had their time: write what they returned, and hand the runs back. */
const HAND_BACK_MS = 10_000;

export type FleetEvent =
  | { readonly kind: "working"; readonly place: number; readonly pid: number | undefined }
  | { readonly kind: "ended"; readonly place: number; readonly why: string; readonly againInMs: number }
  | { readonly kind: "killed"; readonly place: number; readonly afterMs: number }
  | { readonly kind: "restarting" }
  | { readonly kind: "restarted" }
  | { readonly kind: "restart-failed"; readonly place: number; readonly why: string };

export interface FleetOptions {
  readonly processes: number;
  readonly isJson: boolean;
  /** The work of the process in a place. */
  work(place: number): Work;
  print(place: number, stream: "stdout" | "stderr", line: string): void;
  tell(event: FleetEvent): void;
  /** A process has come to work, on these. */
  onWorking?(workflows: readonly WorkingOn[]): void;
}

interface Place {
  readonly number: number;
  member: Member | null;
  /** How often its process has died early, in a row. */
  deaths: number;
  /** The wait before the next one is started. */
  again: NodeJS.Timeout | null;
  /** Somebody else sees to it that there is a process. */
  isReplacing: boolean;
}

export class Fleet {
  readonly #options: FleetOptions;
  readonly #places: readonly Place[];
  /** All processes that have not ended, also those that are on their way in or out. */
  readonly #members = new Set<Member>();
  #isStopping = false;
  #starting: Promise<readonly WorkingOn[] | MemberEnd> | null = null;
  #rolling: Promise<void> | null = null;
  #isRollWanted = false;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#places = Array.from({ length: options.processes }, (_, i) => ({
      number: i + 1,
      member: null,
      deaths: 0,
      again: null,
      isReplacing: false,
    }));
  }

  /** Resolves with what the fleet works on, or with how its first process failed (FL3). */
  start(): Promise<readonly WorkingOn[] | MemberEnd> {
    this.#starting ??= this.#start();
    return this.#starting;
  }

  async #start(): Promise<readonly WorkingOn[] | MemberEnd> {
    const [first, ...others] = this.#places;
    if (first === undefined) return [];
    const member = this.#newMember(first);
    const workflows = await member.working;
    if (workflows === null) return member.ended;
    this.#settle(first, member);
    if (this.#isStopping) return workflows;
    await Promise.all(others.map((place) => this.#fill(place)));
    return workflows;
  }

  /** Replaces one process after the other (FL2). Asked again meanwhile, it does so once more. */
  async roll(): Promise<void> {
    this.#isRollWanted = true;
    this.#rolling ??= this.#rollOn().finally(() => {
      this.#rolling = null;
    });
    await this.#rolling;
  }

  /** Lets all processes finish their steps and hand their runs back. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const { again } of this.#places) if (again !== null) clearTimeout(again);
    await Promise.all([...this.#members].map((member) => this.#retire(member)));
  }

  /** Ends all processes at once; others take over what they had. */
  kill(): void {
    this.#isStopping = true;
    for (const member of this.#members) member.kill();
  }

  #newMember({ number }: Place): Member {
    const { isJson, print, work } = this.#options;
    const assignment = { work: work(number), place: number, isJson };
    const member = new Member(assignment, (stream, line) => print(number, stream, line));
    this.#members.add(member);
    void member.ended.then(() => this.#members.delete(member));
    void member.working.then((workflows) => workflows !== null && this.#options.onWorking?.(workflows));
    return member;
  }

  /** Starts a process in a place that has none; resolves when it works or has failed. */
  async #fill(place: Place): Promise<void> {
    place.again = null;
    if (this.#isStopping) return;
    const member = this.#newMember(place);
    place.member = member;
    const isWorking = (await member.working) !== null;
    // It may have been replaced before it worked.
    if (place.member !== member) return;
    if (isWorking) this.#settle(place, member);
    else this.#replace(place, await member.ended);
  }

  /** The process in this place works; its end is looked out for. */
  #settle(place: Place, member: Member): void {
    place.member = member;
    this.#options.tell({ kind: "working", place: place.number, pid: member.pid });
    void member.ended.then((end) => {
      if (place.member === member) this.#replace(place, end);
    });
  }

  #replace(place: Place, end: MemberEnd): void {
    place.member = null;
    if (this.#isStopping) return;
    place.deaths = end.workedMs >= SOUND_MS ? 1 : place.deaths + 1;
    if (place.isReplacing) return;
    const longest = backoffMs(Math.min(place.deaths, 20), AGAIN, Math.random);
    const againInMs = Math.round(longest * (0.5 + Math.random() / 2));
    this.#options.tell({ kind: "ended", place: place.number, why: whyEnded(end), againInMs });
    place.again = setTimeout(() => void this.#fill(place), againInMs);
  }

  async #rollOn(): Promise<void> {
    await this.#starting;
    while (this.#isRollWanted && !this.#isStopping) {
      this.#isRollWanted = false;
      this.#options.tell({ kind: "restarting" });
      if (!(await this.#rollOnce())) return;
      if (!this.#isStopping) this.#options.tell({ kind: "restarted" });
    }
  }

  async #rollOnce(): Promise<boolean> {
    for (const place of this.#places) {
      if (this.#isStopping) return true;
      place.isReplacing = true;
      const end = await this.#swap(place);
      place.isReplacing = false;
      if (end === null || this.#isStopping) continue;
      this.#options.tell({ kind: "restart-failed", place: place.number, why: whyEnded(end) });
      // The old one may have died while the new one was tried.
      if (place.member === null) this.#replace(place, end);
      return false;
    }
    return true;
  }

  /** Puts a new process into a place, and then retires the one that was there; or tells how the new one failed. */
  async #swap(place: Place): Promise<MemberEnd | null> {
    if (place.again !== null) clearTimeout(place.again);
    place.again = null;
    const next = this.#newMember(place);
    if ((await next.working) === null) return next.ended;
    const former = place.member;
    // From here on it is looked after like any other: the old one may take its time to stop, and the new one may die before that.
    place.isReplacing = false;
    this.#settle(place, next);
    if (former !== null) await this.#retire(former);
    return null;
  }

  async #retire(member: Member): Promise<void> {
    const drainMs = this.#options.work(member.place).drainMs ?? DEFAULTS.drainMs;
    const afterMs = 2 * drainMs + HAND_BACK_MS;
    if (await member.stop(afterMs)) this.#options.tell({ kind: "killed", place: member.place, afterMs });
  }
}

function whyEnded({ code, signal, failure, workedMs }: MemberEnd): string {
  if (failure !== null) return `could not begin: ${failure.message}`;
  const how = signal === null ? `ended with code ${code ?? "unknown"}` : `was ended by ${signal}`;
  return workedMs === 0 ? `${how} before it worked` : `${how} after ${formatMs(workedMs)}`;
}
