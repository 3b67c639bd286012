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

/** An empty memory, or that of the process before. Fakes of one kind are told apart by the order in which they are made. */
export function outsideMemory<T>(kind: string): OutsideMemory<T> {
  const folder = process.env[FOLDER_VARIABLE];
  if (folder === undefined || folder === "")
    return listMemory(
      [],
      () => {},
      () => {},
    );
  const n = (made.get(kind) ?? 0) + 1;
  made.set(kind, n);
  const file = join(folder, `${kind}-${n}.jsonl`);
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
  const add = (item: T) => appendFileSync(file, `${encode(item)}\n`);
  return listMemory(
    lines.map((line) => decode(line) as T),
    add,
    () => rmSync(file, { force: true }),
  );
}

function listMemory<T>(items: T[], added: (item: T) => void, cleared: () => void): OutsideMemory<T> {
  return {
    items,
    add(item) {
      items.push(item);
      added(item);
    },
    clear() {
      items.length = 0;
      cleared();
    },
  };
}
