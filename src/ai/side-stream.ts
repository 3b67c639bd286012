import type { StepInfo } from "../core/context.ts";

/**
 * Tells readers of `run.stream()` what is being said. Nothing depends on it: what is too large for them, or cannot be stored, they find in the step's
 * result.
 */
export function tell(info: StepInfo, chunk: unknown): void {
  try {
    info.emit(chunk);
  } catch {}
}
