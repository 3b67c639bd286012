// Foreign calls
// A call issued while no turn is open proves that the body awaited something that is not ours. In replay it is held until the journal reaches
// it; live it passes alone, and beside pending calls it is refused: its place among them could not be replayed (P4).
import { type Call, rejectCall } from "./call.ts";
import { callSite } from "./call-site.ts";
import { describeCall, foreignAwait } from "./divergence.ts";
import type { Pass } from "./pass.ts";
import type { HeldCall } from "./replay.ts";

/** Holds, refuses or places a call that was issued outside a turn. */
export function issueOutsideTurn(pass: Pass, call: Call): void {
  const site = callSite();
  const { replay } = pass;
  if (replay.cursor.peek() !== null) {
    replay.hold({ call, site, burst: replay.burst(pass.ports.host) });
    pass.replayOn();
  } else if (isAnythingPending(pass)) refuse(pass, { call, site });
  else pass.inBurst(() => pass.place(call, site));
}

/** Calls that were made together pass together. */
export function placeTogether(pass: Pass, held: readonly HeldCall[]): void {
  pass.inBurst(() => {
    for (const { call, site } of held) if (!pass.isClosed) pass.place(call, site);
  });
}

/** Lets held calls go that the journal has nothing of: the first that were made together pass, what was made elsewhere meets them as pending. */
export function releaseHeld(pass: Pass): void {
  if (!isAnythingPending(pass)) placeTogether(pass, pass.replay.takeBurst());
  const [next] = pass.isClosed ? [] : pass.replay.takeBurst();
  if (next !== undefined) refuse(pass, next);
}

/** Only a foreign await in a parallel branch can outlast a suspension: what it leads to is lost, and somebody should know. */
export function tellOfLostCall(pass: Pass, call: Call): void {
  const { parked } = foreignAwait(pass.id, describeCall(call), pass.calls.all(), callSite());
  pass.ports.log.error(`${parked.message} The run was suspended meanwhile, and the call is lost.`, { run: pass.id });
}

/**
 * What is no call may count on its order as well: a draw changes what every later one gives, a map what later ones are called, and a note is known by its
 * place. Outside a turn and beside pending calls, where that could not be replayed, it is refused as a call is.
 */
export function assertInOrder(pass: Pass, what: string): void {
  if (pass.isInTurn || pass.isClosed || pass.cancelling !== null || !isAnythingPending(pass)) return;
  const { error, parked } = foreignAwait(pass.id, what, pass.calls.all(), callSite());
  pass.park(parked);
  throw error;
}

function isAnythingPending({ calls, steps }: Pass): boolean {
  return calls.size > 0 || steps.hasOutcome;
}

function refuse(pass: Pass, { call, site }: Pick<HeldCall, "call" | "site">): void {
  const { error, parked } = foreignAwait(pass.id, describeCall(call), pass.calls.all(), site);
  rejectCall(call, error);
  pass.park(parked);
}
