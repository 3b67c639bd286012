// Notes
// What a body says about itself: state, cost, notes, patch marks. Recorded once, whatever the number of replays (P9).
import type { Cost } from "./context.ts";
import { decodePayload, encodePayload } from "./draft.ts";
import type { Continued, NoteType } from "./journal.ts";
import type { Pass } from "./pass.ts";
import type { Replay } from "./replay.ts";

export class Notes {
  readonly #pass: Pass;
  readonly #replay: Replay;
  // Made on demand: most runs say nothing about themselves.
  #stateMap: Map<string, unknown> | null = null;
  #costMap: Map<string, number> | null = null;

  constructor(pass: Pass, replay: Replay) {
    this.#pass = pass;
    this.#replay = replay;
    replay.notes = this;
  }

  get #state(): Map<string, unknown> {
    this.#stateMap ??= new Map();
    return this.#stateMap;
  }

  get #costs(): Map<string, number> {
    this.#costMap ??= new Map();
    return this.#costMap;
  }

  /** Takes over what an earlier generation had. */
  inherit({ state, cost }: Continued): void {
    for (const [key, value] of Object.entries(state)) this.#state.set(key, value);
    for (const [unit, amount] of Object.entries(cost)) this.#costs.set(unit, amount);
  }

  get state(): Record<string, unknown> {
    return Object.fromEntries(this.#state);
  }

  get costs(): Record<string, number> {
    return Object.fromEntries(this.#costs);
  }

  get(key: string): unknown {
    return this.#state.get(key);
  }

  set(key: string, value: unknown): void {
    const given = encodePayload(value, `state "${key}"`);
    const text = this.#pass.redactor === null ? given : this.#pass.redactor.value(given, key);
    // The body sees what the next generation and everybody else will: the value as it was recorded (I21).
    this.#state.set(key, decodePayload(text));
    if (this.#record("state.patched", key, `{"value":${text}}`) !== "new") return;
    const at = { run: this.#pass.id, seq: -1, field: `state:${key}` };
    this.#pass.draft.state({ key, data: this.#pass.ports.codec.seal(text, at) });
  }

  addCost(amounts: Cost): void {
    const recorded = this.#record("cost", null, encodePayload(amounts, "cost"));
    if (recorded === "ignored") return;
    this.addSpent(amounts, recorded === "new");
  }

  /** What a step has spent is recorded with its outcome, and part of what the run costs. */
  addSpent(amounts: Cost, isNew: boolean): void {
    const units = Object.entries(amounts);
    for (const [unit, amount] of units) this.#costs.set(unit, (this.#costs.get(unit) ?? 0) + amount);
    if (isNew && units.length > 0) this.#pass.draft.row({ cost: JSON.stringify(this.costs) });
  }

  note(text: string): void {
    this.#record("note", null, `{"text":${encodePayload(text, "note")}}`);
  }

  /** True where new code is reached for the first time, false where older code has gone past. */
  patched(id: string): boolean {
    if (this.#isRecorded("patched", id)) return true;
    if (this.#isPast(id) || this.#pass.isClosed) return false;
    this.#append("patched", id, null);
    return true;
  }

  #isPast(id: string): boolean {
    return !this.#pass.hasProgressed && this.#replay.cursor.isPast(id);
  }

  /** Ignored is what belongs to a turn before the last recorded one and is not in it: new code would repeat it on every pass. */
  #record(type: NoteType, key: string | null, text: string): "new" | "known" | "ignored" {
    if (this.#pass.isClosed) return "ignored";
    if (this.#isRecorded(type)) return "known";
    if (!this.#pass.isLive && !this.#replay.cursor.isLastTurn) return "ignored";
    this.#append(type, key, text);
    return "new";
  }

  /** Notes are matched by their order; a patch by its id, which is what it is about. */
  #isRecorded(type: NoteType, id: string | null = null): boolean {
    const { lenient } = this.#replay;
    if (lenient !== null) return lenient.takeNote(type, id);
    // The last recorded turn is not over before the first new outcome: a foreign await may still separate its parts.
    return !this.#pass.hasProgressed && this.#replay.cursor.takeNote(type, id) !== undefined;
  }

  #append(type: NoteType, key: string | null, text: string | null): void {
    this.#pass.draft.appendText(this.#pass.ports.clock.now(), type, key, text);
    this.#pass.ports.dirty(this.#pass);
  }
}
