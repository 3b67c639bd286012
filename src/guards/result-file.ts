// Result files
// What came of an execution, as JSON beside its output: `{ "passed": true, … }`. Only a file that says so counts; whatever else is there,
// also half of a file that another tool was writing when it died, means that it has to be executed (S0-29).
import { decode, encode } from "../base/codec.ts";
import type { StepInfo } from "../core/context.ts";
import { contentOf, replaceFile } from "../files/atomic-file.ts";

export interface ResultFile {
  readonly passed: boolean;
  readonly [fact: string]: unknown;
}

/** `null`: there is none, or it does not say that it passed. */
export async function readPassed(path: string): Promise<ResultFile | null> {
  const content = await contentOf(path);
  const result = content === null ? null : parsed(Buffer.from(content).toString("utf8"));
  return isResult(result) && result.passed ? result : null;
}

export async function writeResult(path: string, result: ResultFile, info: StepInfo): Promise<void> {
  await replaceFile(path, `${encode(result)}\n`, info);
}

function parsed(text: string): unknown {
  try {
    return decode(text);
  } catch {
    return null;
  }
}

function isResult(value: unknown): value is ResultFile {
  return typeof value === "object" && value !== null && "passed" in value && typeof value.passed === "boolean";
}
