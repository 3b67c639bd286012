// Letters of processes that may not write to the documents: each is a file of its own, durable when its sender is answered, and taken in by the
// owner of the directory before it does anything else. The id of its message keeps it from having an effect twice.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../base/clock.ts";
import type { Message } from "../../core/store.ts";
import { type Disk, DRAFT_SUFFIX, quietly } from "./disk.ts";
import { messageShape } from "./document-shape.ts";
import { checkFile } from "./read-document.ts";
import { readData, type WrittenData, writeData } from "./sealed-data.ts";
import { number, record } from "./shape.ts";

export interface Letter {
  readonly file: string;
  readonly at: number;
  readonly message: Message;
}

/** A letter that cannot be read. */
export interface BadLetter {
  readonly file: string;
  readonly error: unknown;
}

const letterShape = record({ at: number, message: messageShape });

/** A draft that nobody finished for so long was left by a process that died. */
const DEAD_DRAFT_MS = 600_000;

export class Mail {
  readonly #folder: string;
  readonly #disk: Disk;
  #posted = 0;

  constructor(folder: string, disk: Disk) {
    this.#folder = folder;
    this.#disk = disk;
  }

  post(message: Message, at: number): void {
    // Letters of one process keep their order; those of different ones have none.
    const name = `${String(at).padStart(15, "0")}-${process.pid}-${String(++this.#posted).padStart(6, "0")}.json`;
    const letter = { at, message: { ...message, data: writeData(message.data) } };
    this.#disk.replace([{ path: join(this.#folder, name), text: `${JSON.stringify(letter, null, 2)}\n` }]);
  }

  get isEmpty(): boolean {
    return this.#names().length === 0;
  }

  /** In the order in which they were sent, as far as clocks tell. */
  read(): { readonly letters: Letter[]; readonly bad: BadLetter[] } {
    const letters: Letter[] = [];
    const bad: BadLetter[] = [];
    for (const name of this.#names()) {
      const file = join(this.#folder, name);
      try {
        letters.push(letterOf(file, readFileSync(file, "utf8")));
      } catch (error) {
        bad.push({ file, error });
      }
    }
    return { letters, bad };
  }

  /** They are in the documents now. One that stays all the same, by a crash, has no effect any more. */
  drop(letters: readonly Pick<Letter, "file">[]): void {
    for (const { file } of letters) this.#disk.remove(file);
  }

  /** Removes what killed senders have left half written. */
  clean(): void {
    for (const name of this.#all()) {
      if (!name.endsWith(DRAFT_SUFFIX)) continue;
      const file = join(this.#folder, name);
      quietly(() => {
        if (systemClock.now() - statSync(file).mtimeMs > DEAD_DRAFT_MS) this.#disk.remove(file);
      });
    }
  }

  #names(): string[] {
    return this.#all()
      .filter((name) => name.endsWith(".json"))
      .sort();
  }

  #all(): string[] {
    try {
      return readdirSync(this.#folder);
    } catch {
      return [];
    }
  }
}

function letterOf(file: string, text: string): Letter {
  const { at, message } = checkFile(file, text, letterShape) as unknown as {
    readonly at: number;
    readonly message: Omit<Message, "data"> & { readonly data: WrittenData };
  };
  return { file, at, message: { ...message, data: readData(message.data) } };
}
