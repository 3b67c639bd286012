import { EXIT } from "./exit-codes.ts";

export interface Interrupt {
  /** Resolves at the first SIGINT or SIGTERM. A second one ends the process at once. */
  readonly asked: Promise<NodeJS.Signals>;
  forget(): void;
}

export function onInterrupt(): Interrupt {
  const signals = ["SIGINT", "SIGTERM"] as const;
  let isAsked = false;
  let resolve: (signal: NodeJS.Signals) => void = () => {};
  const asked = new Promise<NodeJS.Signals>((yes) => {
    resolve = yes;
  });
  const listener = (signal: NodeJS.Signals) => {
    if (isAsked) process.exit(EXIT.interrupted);
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
