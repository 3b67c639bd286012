import { toMs } from "../base/duration.ts";
import type { SignalSpec } from "./call.ts";
import type { WaitOptions } from "./context.ts";
import type { StandardSchema } from "./schema.ts";

/** What `ctx.waitFor` and `ctx.callback` accept, with their defaults. */
export function waitSpec(what: string, name: string, options: WaitOptions<unknown, StandardSchema>): SignalSpec {
  const { timeout, schema } = options;
  return {
    name,
    timeoutMs: timeout === undefined ? null : toMs(timeout, `timeout of ${what} "${name}"`),
    fallback: "default" in options ? { value: options.default } : null,
    schema,
  };
}
