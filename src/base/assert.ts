/** A broken promise of the code itself, never of its input or surroundings: nothing should catch it and go on. */
export class AssertionError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "AssertionError";
  }
}

/** Throws unless `condition` holds. For what only a bug can break; bad input and bad weather get a `PawlError`. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

/** The `default` of an exhaustive `switch`: the compiler refuses it while a case is missing. */
export function unreachable(value: never): never {
  throw new AssertionError(`Unreachable case: ${describe(value)}`);
}

function describe(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}
