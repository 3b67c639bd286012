import type { Pass } from "./pass.ts";

/** A run that ends takes steps with it that nobody awaited: somebody should know which (P12). */
export function tellOfUnfinished({ id, calls, steps, ports }: Pass): void {
  if (calls.size === 0) return;
  const { running, notBegun } = steps;
  if (running.length > 0) {
    const message = `Run ${id} ended while steps were still running: ${running.join(", ")}. Their results are dropped; await them.`;
    ports.log.warn(message, { run: id });
  }
  if (notBegun.length > 0) {
    const message = `Run ${id} ended before these steps had begun, or begun again: ${notBegun.join(", ")}. They are dropped; await them.`;
    ports.log.warn(message, { run: id });
  }
}
