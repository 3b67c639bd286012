// What a reader of streams makes of their events: the text of each step. It takes nothing twice, out of order, or of an attempt that was not begun.
import { expect } from "vitest";
import type { StreamEvent } from "../src/index.ts";

interface Piece {
  attempt: number;
  text: string;
  next: number;
  end: { readonly ok: boolean; readonly isComplete: boolean } | null;
}

export class StreamText {
  readonly events: StreamEvent[] = [];
  /** Of each step, in its order: one for each time that it has ended, and what is under way. */
  readonly #pieces = new Map<string, Piece[]>();

  take(event: StreamEvent): void {
    this.events.push(event);
    const { key, attempt } = event;
    const pieces = this.#pieces.get(key) ?? [];
    this.#pieces.set(key, pieces);
    let piece = pieces.at(-1);
    if (piece === undefined || piece.end !== null) {
      piece = { attempt, text: "", next: 0, end: null };
      pieces.push(piece);
    }
    if (event.type === "chunk") {
      expect(event.n, `chunk of ${key}, attempt ${attempt}`).toBe(piece.next);
      if (event.n > 0) expect(attempt).toBe(piece.attempt);
      piece.next++;
      piece.text += String(event.value);
    }
    if (event.type === "retract") {
      expect(attempt).toBe(piece.attempt);
      expect(piece.next, `something was read of what is void of ${key}`).toBeGreaterThan(0);
      piece.next = 0;
      piece.text = "";
    }
    piece.attempt = attempt;
    if (event.type === "end") piece.end = { ok: event.ok, isComplete: event.isComplete };
  }

  get cursor(): string | undefined {
    return this.events.at(-1)?.cursor;
  }

  /** By step: texts with how they ended. */
  get texts(): Readonly<Record<string, readonly string[]>> {
    const described = ({ text, end }: Piece) =>
      `${text}${end === null ? " …" : `${end.ok ? "" : " failed"}${end.isComplete ? "." : " incomplete."}`}`;
    const named = [...this.#pieces].map(([key, pieces]) => [key, pieces.map(described)] as const);
    return Object.fromEntries(named.sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}

/** One line for each event. */
export function linesOf(events: readonly StreamEvent[]): string[] {
  return events.map((event) => {
    const place = `${event.key}/${event.attempt}`;
    if (event.type === "chunk") return `${place} ${event.n} ${JSON.stringify(event.value)}`;
    if (event.type === "retract") return `${place} retract`;
    return `${place} end${event.ok ? "" : " failed"}${event.isComplete ? "" : " incomplete"}`;
  });
}

export async function readAll(events: AsyncIterable<StreamEvent>): Promise<StreamEvent[]> {
  const all: StreamEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

/** Follows a stream; `until` waits for an event. */
export class Reader {
  readonly text: StreamText = new StreamText();
  readonly done: Promise<void>;
  #listeners = new Set<() => void>();

  constructor(events: AsyncIterable<StreamEvent>) {
    this.done = this.#follow(events);
    this.done.catch(() => {});
  }

  get lines(): string[] {
    return linesOf(this.text.events);
  }

  async #follow(events: AsyncIterable<StreamEvent>): Promise<void> {
    try {
      for await (const event of events) {
        this.text.take(event);
        this.#tell();
      }
    } finally {
      this.#tell();
    }
  }

  /** Resolves when such a line was read. */
  async until(line: string): Promise<void> {
    while (!this.lines.includes(line)) {
      const news = new Promise<"news">((resolve) => this.#listeners.add(() => resolve("news")));
      const over = this.done.then(() => "over" as const);
      if ((await Promise.race([news, over])) === "over" && !this.lines.includes(line))
        throw new Error(`The stream is over without "${line}":\n${this.lines.join("\n")}`);
    }
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
    this.#listeners.clear();
  }
}
