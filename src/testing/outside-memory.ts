// What a fake of the outside world remembers
// The world outlives a process, so its fakes must, too, where a crash test kills real processes: there every fake of this process has a
// file, and the fake of the next process that is made at the same place goes on with it. Everywhere else it is a list.
import { appendFileSync, existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { decode, encode } from "../base/codec.ts";

/** Names the folder of a crash test whose processes are killed for real; `pawl test` sets it, and gives each test another one. */
export const FOLDER_VARIABLE = "PAWL_TEST_FOLDER";

export interface OutsideMemory<T> {
  readonly items: readonly T[];
  add(item: T): void;
  clear(): void;
}

const made = new Map<string, number>();

/** An empty memory, or what was left by the process before. */
export function outsideMemory<T>(kind: string): OutsideMemory<T> {
  return outsideFile(kind) ?? memoryOf([]);
}

/** The same, where it outlives this process; elsewhere `null`. Fakes of one kind are told apart by the order in which they are made. */
export function outsideFile<T>(kind: string): OutsideMemory<T> | null {
  const folder = process.env[FOLDER_VARIABLE];
  if (folder === undefined || folder === "") return null;
  const n = (made.get(kind) ?? 0) + 1;
  made.set(kind, n);
  const file = join(folder, `${kind}-${n}.jsonl`);
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
  const memory = memoryOf<T>(lines.map((line) => decode(line) as T));
  return {
    items: memory.items,
    add(item) {
      memory.add(item);
      appendFileSync(file, `${encode(item)}\n`);
    },
    clear() {
      memory.clear();
      rmSync(file, { force: true });
    },
  };
}

function memoryOf<T>(items: T[]): OutsideMemory<T> {
  return {
    items,
    add: (item) => void items.push(item),
    clear: () => void items.splice(0),
  };
}
