/** Closes on the first stop signal; with no other listener the signal then has its usual effect. */
export function onStopSignals(close: () => Promise<void>): () => void {
  const signals = ["SIGINT", "SIGTERM"] as const;
  const undo = () => {
    for (const signal of signals) process.off(signal, stop);
  };
  const stop = (signal: NodeJS.Signals) => {
    void close().finally(() => {
      undo();
      if (process.listenerCount(signal) === 0) process.kill(process.pid, signal);
    });
  };
  for (const signal of signals) process.on(signal, stop);
  return undo;
}
