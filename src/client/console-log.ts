import type { Log } from "../core/context.ts";

/** Warnings and errors to stderr, the rest nowhere: a library speaks up only when somebody should act. */
export const consoleLog: Log = {
  debug: () => {},
  info: () => {},
  warn: (message) => console.warn(`pawl: ${message}`),
  error: (message) => console.error(`pawl: ${message}`),
};

/** A log that is closed, full or broken must not stop what it reports. */
export function harmless(log: Log): Log {
  const write =
    (level: keyof Log): Log[keyof Log] =>
    (message, fields) => {
      try {
        const written: unknown = log[level](message, fields);
        if (written instanceof Promise) written.catch(() => {});
      } catch {
        // There is nobody left to tell.
      }
    };
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}
