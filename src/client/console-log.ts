import type { Log } from "../core/context.ts";

/** Warnings and errors to stderr, the rest nowhere: a library speaks up only when somebody should act. */
export const consoleLog: Log = {
  debug: () => {},
  info: () => {},
  warn: (message) => console.warn(`pawl: ${message}`),
  error: (message) => console.error(`pawl: ${message}`),
};
