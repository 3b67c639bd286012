// `pawl test --detectors FILE`: each look of a detector, and the effect itself, in a process of its own. What they share is the folder in
// which fakes remember, and nothing else; whatever changes in it while a detector looks was written by the detector.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { PawlError } from "../base/errors.ts";
import { ownFile } from "../stores/own-file.ts";
import { type DetectorLook, type DetectorReport, type DetectorTest, judgeDetector } from "../testing/check-detector.ts";
import { FOLDER_VARIABLE } from "../testing/outside-memory.ts";
import type { DetectorTask } from "./detector-life.ts";
import type { Output } from "./output.ts";
import { clean, countOf } from "./printable.ts";
import { CACHE_VARIABLE } from "./ts-hook.ts";

const LONGEST_LIFE_MS = 30_000;

export interface NamedDetectorTest extends DetectorTest {
  readonly name: string;
}

/** The checks that a file exports, or the one of this name. */
export function chooseDetectors(exported: object, file: string, name: string | null): NamedDetectorTest[] {
  const tests = Object.entries(exported).flatMap(([key, value]: [string, unknown]) =>
    isDetectorTest(value) ? [{ ...value, name: key }] : [],
  );
  const chosen = tests.filter((test) => name === null || test.name === name);
  if (chosen.length > 0) return chosen;
  const has = tests.length === 0 ? "none" : tests.map((test) => test.name).join(", ");
  throw new PawlError(
    "invalid_argument",
    `${file} exports no check of a detector${name === null ? "" : ` called ${JSON.stringify(name)}`}; it has: ${has}. Export one: export const refunds = detectorTest({ effect: () => refund(order) });`,
    { fields: { file, test: name } },
  );
}

function isDetectorTest(value: unknown): value is DetectorTest {
  return typeof value === "object" && value !== null && "effect" in value && typeof value.effect === "function";
}

export async function checkInProcesses(task: Omit<DetectorTask, "what">): Promise<DetectorReport> {
  const folder = mkdtempSync(join(tmpdir(), "pawl-test-"));
  const [world, code] = [join(folder, "world"), join(folder, "code")];
  for (const one of [world, code]) mkdirSync(one);
  const live = (what: DetectorTask["what"]) => lifeOf({ ...task, what }, { world, code });
  try {
    return await judgeDetector({
      async look() {
        const before = filesIn(world);
        const look = (await live("look")) as DetectorLook;
        return { ...look, wrote: [...look.wrote, ...changed(before, filesIn(world))] };
      },
      act: async () => (await live("act")) as string,
    });
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

export function printDetector(out: Output, name: string, { ok, failures }: DetectorReport): void {
  const { color } = out;
  out.print(color.bold(clean(name)));
  for (const { message } of failures) out.print(`\n  ${color.red("failure")}  ${clean(message)}`);
  out.print(ok ? `  ${color.green("No failure.")}\n` : `\n  ${color.red(`${countOf(failures.length, "failure")}.`)}\n`);
}

interface Folders {
  /** In which fakes remember. */
  readonly world: string;
  /** For compiled code, so that only the first process has to compile it. */
  readonly code: string;
}

async function lifeOf(task: DetectorTask, { world, code }: Folders): Promise<unknown> {
  const child = spawn(process.execPath, ["--no-warnings", ownFile("#detector-life"), JSON.stringify(task)], {
    stdio: ["ignore", "ignore", "pipe", "pipe"],
    // Whoever has a folder for compiled files already has them there.
    env: { [CACHE_VARIABLE]: code, NODE_COMPILE_CACHE: code, ...process.env, [FOLDER_VARIABLE]: world },
    timeout: LONGEST_LIFE_MS,
    killSignal: "SIGKILL",
  });
  const [said, errors] = await Promise.all([
    text(child.stdio[3] as Readable),
    text(child.stderr as Readable),
    once(child, "close"),
  ]);
  if (said !== "") return JSON.parse(said);
  throw new PawlError(
    "invalid_argument",
    `The process that was to ${task.what === "look" ? "ask the detector" : "make the effect"} of "${task.test}" ended without an answer. ${errors.trim()}`,
    { fields: { test: task.test } },
  );
}

/** Every file below the folder, with what it holds. */
function filesIn(folder: string): Map<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const files = names.filter((name) => statSync(join(folder, name)).isFile());
  return new Map(files.map((name) => [name, readFileSync(join(folder, name), "latin1")]));
}

function changed(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names]
    .filter((name) => before.get(name) !== after.get(name))
    .map((name) => `the file ${name} of the fakes`);
}
