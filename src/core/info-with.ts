import type { StepInfo } from "./context.ts";

// Whoever adds a field to `StepInfo` is told here.
const FIELDS: Readonly<Record<keyof StepInfo, true>> = {
  signal: true,
  key: true,
  attempt: true,
  heartbeat: true,
  spent: true,
  save: true,
  saved: true,
  emit: true,
  secret: true,
};

/**
 * What a step's function receives, with some fields more or others instead. Each is asked for on demand, as in the original: some cost something, and
 * whether a function has used its key can be told.
 */
export function infoWith<T extends object>(info: StepInfo, fields: T): Omit<StepInfo, keyof T> & T {
  const copy = {};
  for (const name of Object.keys(FIELDS) as (keyof StepInfo)[])
    Object.defineProperty(copy, name, { get: () => info[name], enumerable: true, configurable: true });
  return Object.defineProperties(copy, Object.getOwnPropertyDescriptors(fields)) as Omit<StepInfo, keyof T> & T;
}
