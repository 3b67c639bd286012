// Phase by phase
// A run that was started so stands before each phase until it is told to begin it. One call, one phase.
import { PawlError } from "../base/errors.ts";
import { ADVANCE_SIGNAL, ADVANCE_TAG, type AdvanceMessage, GATE, type Gate } from "../core/outline.ts";
import type { StateDocument } from "../core/state-document.ts";
import { isTerminal } from "../core/transition.ts";
import { blockOf } from "./block.ts";
import { blockedError } from "./block-text.ts";
import { type SendPorts, sendOnce, stateOf } from "./own-signals.ts";
import { documentOf, resultOf, rowOf } from "./run.ts";

export interface AdvanceOptions {
  /** How far to go: one phase, or all that are left. Default "phase". */
  readonly to?: "phase" | "end";
  /** Stops waiting for it; the run goes on as it was told. */
  readonly signal?: AbortSignal;
}

export interface Advanced {
  readonly run: string;
  /** The phase that was executed last; `null` if there was none left. */
  readonly phase: string | null;
  readonly isEnded: boolean;
  readonly document: StateDocument;
}

/** Executes one phase of a run, or all that are left. Throws `phase_blocked` if one has failed, and the error of a run that has ended with one. */
export async function advanceRun(
  ports: SendPorts,
  run: string,
  { to = "phase", signal }: AdvanceOptions = {},
): Promise<Advanced> {
  if (to !== "phase" && to !== "end")
    throw new PawlError("invalid_argument", `\`to\` is "${String(to)}". Give "phase" or "end".`, { fields: { to } });
  const isStepwise = (await rowOf(run, ports.store)).tags.includes(ADVANCE_TAG);
  if (!isStepwise && to === "phase") throw runsToItsEnd(run);
  const listener = ports.changes.listen(run);
  try {
    for (let sent: Gate | null = null; ; ) {
      ports.assertOpen();
      const { state } = await rowOf(run, ports.store);
      if (isTerminal(state)) return await ended(ports, run, sent !== null || !isStepwise);
      const block = await blockOf(ports, run);
      if (block !== null) throw blockedError(run, block);
      const gate = isStepwise ? await gateOf(ports, run) : null;
      if (gate !== null && gate.ticket !== sent?.ticket) {
        if (sent !== null) return { run, phase: gate.after, isEnded: false, document: await documentOf(run, ports) };
        sent = gate;
        const message: AdvanceMessage = { ticket: gate.ticket, to };
        await sendOnce(ports, run, ADVANCE_SIGNAL, `advance-${gate.ticket}`, message);
      }
      await listener.next({ polls: true });
      signal?.throwIfAborted();
    }
  } finally {
    listener.stop();
  }
}

async function ended(ports: SendPorts, run: string, hasMoved: boolean): Promise<Advanced> {
  // Whoever goes phase by phase learns of a failure as whoever waits for the result does.
  await resultOf(() => run, ports);
  const document = await documentOf(run, ports);
  return { run, phase: hasMoved ? lastOf(document) : null, isEnded: true, document };
}

function lastOf({ phases, phase_order }: StateDocument): string | null {
  return phase_order.findLast((name) => phases[name]?.skipped === undefined) ?? null;
}

async function gateOf(ports: SendPorts, run: string): Promise<Gate | null> {
  return ((await stateOf(ports, run))[GATE] as Gate | null | undefined) ?? null;
}

function runsToItsEnd(run: string): PawlError {
  return new PawlError(
    "invalid_argument",
    `Run ${run} goes on to its end by itself. Start runs with { advance: true } to execute them phase by phase.`,
    { fields: { run } },
  );
}
