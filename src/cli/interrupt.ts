import { EXIT } from "./exit-codes.ts";

export interface Interrupt {
  /** Resolves at the first SIGINT or SIGTERM. A second one ends the process at once. */
  readonly asked: Promise<NodeJS.Signals>;
  forget(): void;
}

/** `atOnce` is called before the process ends at a second signal. */
export function onInterrupt(atOnce: () => void = () => {}): Interrupt {
  const signals = ["SIGINT", "SIGTERM"] as const;
  let isAsked = false;
  let resolve: (signal: NodeJS.Signals) => void = () => {};
  const asked = new Promise<NodeJS.Signals>((yes) => {
    resolve = yes;
  });
  const listener = (signal: NodeJS.Signals) => {
    if (isAsked) {
      atOnce();
      process.exit(EXIT.interrupted);
    }
    isAsked = true;
    resolve(signal);
  };
  for (const signal of signals) process.on(signal, listener);
  return {
    asked,
    forget: () => {
      for (const signal of signals) process.off(signal, listener);
    },
  };
}
