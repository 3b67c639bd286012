// Reading along while steps run. What steps emit goes to stdout as it is; what becomes of it, for people, to stderr.
import type { Command } from "commander";
import { jsonable } from "../base/jsonable.ts";
import type { StreamEvent, StreamOptions } from "../client/stream.ts";
import { action, addCommand, type Call, withClient } from "./command.ts";
import { EXIT, type ExitCode } from "./exit-codes.ts";
import { onInterrupt } from "./interrupt.ts";
import type { Output } from "./output.ts";
import { clean } from "./printable.ts";
import { findRun } from "./run-id.ts";
import { storeFlag } from "./store-url.ts";

interface StreamCommandOptions {
  readonly key?: string;
  readonly after?: string;
}

export function addStream(program: Command): void {
  addCommand(program, "stream <run>", "print what a run's steps emit, as it comes, until the run ends", [
    "pawl stream 0193a7c2",
    "pawl stream 0193a7c2 --key write --json",
  ])
    .option("--key <step>", "only what this step emits")
    .option("--after <cursor>", "go on behind the event that had this cursor")
    .addHelpText(
      "after",
      `
Texts are printed as they are, other values as a line of JSON. Where an attempt failed or was given up, stderr says that what came of it is void.
With --json each line is an event: a chunk, a retract or an end, with the cursor to go on from.`,
    )
    .action(
      action<StreamCommandOptions, [string]>((call, text) =>
        withClient(call, async (pawl) => {
          const run = await findRun(pawl, text);
          const { key, after } = call.options;
          const options = { ...(key !== undefined && { key }), ...(after !== undefined && { after }) };
          return print(call, run, options, pawl.get(run).stream(options));
        }),
      ),
    );
}

async function print(
  { out, url }: Call<unknown>,
  run: string,
  { key, after }: StreamOptions,
  events: AsyncIterable<StreamEvent>,
): Promise<ExitCode> {
  const printer = new StreamPrinter(out);
  const interrupt = onInterrupt();
  const all = events[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await Promise.race([all.next(), interrupt.asked]);
      if (typeof next === "string") break;
      if (next.done === true) return EXIT.ok;
      printer.show(next.value);
    }
  } finally {
    interrupt.forget();
    printer.endLine();
  }
  const cursor = printer.cursor ?? after;
  const flags = `${key === undefined ? "" : ` --key ${key}`}${cursor === undefined ? "" : ` --after ${cursor}`}`;
  out.note(`Go on with: pawl stream ${run}${flags}${storeFlag(url)}`);
  return EXIT.interrupted;
}

class StreamPrinter {
  readonly #out: Output;
  #isInLine = false;
  cursor: string | null = null;

  constructor(out: Output) {
    this.#out = out;
  }

  show(event: StreamEvent): void {
    this.cursor = event.cursor;
    if (this.#out.isJson) return this.#out.json(event);
    const step = `${clean(event.key)}, attempt ${event.attempt}`;
    if (event.type === "chunk") this.#chunk(event.value);
    else if (event.type === "retract") this.#note(`What came of ${step}, is void.`);
    else if (!event.ok) this.#note(`${step} has failed.`);
    else if (!event.isComplete) this.#note(`Not all that ${step}, has emitted is here. Its result is in the journal.`);
    else this.endLine();
  }

  #chunk(value: unknown): void {
    if (typeof value === "string") return this.#write(process.stdout.isTTY ? harmless(value) : value);
    this.endLine();
    this.#write(`${JSON.stringify(jsonable(value) ?? null)}\n`);
  }

  #write(text: string): void {
    if (text === "") return;
    process.stdout.write(text);
    this.#isInLine = !text.endsWith("\n");
  }

  #note(text: string): void {
    this.endLine();
    this.#out.note(this.#out.noteColor.dim(text));
  }

  /** What comes next begins on a line of its own. */
  endLine(): void {
    if (this.#isInLine && !this.#out.isJson) this.#write("\n");
  }
}

/** What a model says may do nothing to a terminal but break lines. */
function harmless(text: string): string {
  return text
    .split(/([\n\t])/)
    .map((part) => (part === "\n" || part === "\t" ? part : clean(part)))
    .join("");
}
