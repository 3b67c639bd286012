import type { PublicStatus, RunState } from "../core/transition.ts";
import type { Colors } from "./output.ts";

interface Stated {
  readonly status: PublicStatus;
  readonly state: RunState;
}

/** The public word, with the engine's own where it says more: "waiting (parked)". */
export function statusText({ status, state }: Stated): string {
  return status === state ? status : `${status} (${state})`;
}

export function paintStatus(color: Colors, status: PublicStatus, state: RunState): (text: string) => string {
  if (state === "parked") return color.magenta;
  switch (status) {
    case "succeeded":
      return color.green;
    case "failed":
      return color.red;
    case "cancelled":
      return color.yellow;
    case "waiting":
      return color.blue;
    case "running":
      return color.cyan;
  }
}
