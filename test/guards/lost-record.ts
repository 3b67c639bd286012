// An effect that was made and not recorded, as a process leaves it that dies in between.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { StepInfo } from "../../src/core/context.ts";
import type { EffectSpec } from "../../src/core/effect.ts";
import type { UndoInfo } from "../../src/core/undoable-call.ts";

export function infoOf(key: string, attempt = 1, signal: AbortSignal = new AbortController().signal): StepInfo {
  return {
    key,
    attempt,
    signal,
    heartbeat() {},
    spent() {},
    async save() {},
    saved: undefined,
    emit() {},
    secret: async () => "",
  };
}

/** What undoes the effect of this key is given. */
export function undoInfoOf(undoes: string, attempt = 1): UndoInfo {
  return { ...infoOf(`${undoes}/undo`, attempt), undoes };
}

/** Makes the effect, forgets that, and recovers by the engine's rules: ask the detector, if there is one, and do it again if need be. */
export async function loseRecord<T>(make: () => EffectSpec<T>, key = "run-1/effect"): Promise<readonly [T, T]> {
  const first = await make().do(infoOf(key));
  const spec = make();
  const known = (await spec.detect?.(infoOf(key, 2))) ?? { found: false };
  return [first, known.found ? known.value : await spec.do(infoOf(key, 2))];
}

/** The same where nobody asks the detector. */
export async function doTwice<T>(make: () => EffectSpec<T>, key = "run-1/effect"): Promise<readonly [T, T]> {
  return [await make().do(infoOf(key)), await make().do(infoOf(key, 2))];
}

/** A folder that is gone when the test is over. */
export function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "pawl-guards-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
  return folder;
}
