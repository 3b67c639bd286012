import { PawlError } from "../base/errors.ts";
import type { MapOptions } from "./context.ts";

/** Works on items in order, at most `concurrency` at once. Without `partial` the first failure rejects, and no further item begins. */
export async function mapItems<T, R>(
  items: readonly T[],
  run: (item: T, index: number) => Promise<R>,
  options: MapOptions & { readonly partial?: true },
): Promise<R[] | PromiseSettledResult<R>[]> {
  const concurrency = options.concurrency ?? Math.max(1, items.length);
  if (!Number.isInteger(concurrency) || concurrency < 1) {
    throw new PawlError(
      "invalid_argument",
      `ctx.map: concurrency is ${concurrency}. Give a whole number of at least 1.`,
      { fields: { concurrency } },
    );
  }
  const results = new Array<PromiseSettledResult<R>>(items.length);
  let next = 0;
  let failed = false;
  const work = async () => {
    while (next < items.length && !failed) {
      const index = next++;
      results[index] = await run(items[index] as T, index).then(
        (value) => ({ status: "fulfilled", value }),
        (reason: unknown) => ({ status: "rejected", reason }),
      );
      const { status } = results[index] as PromiseSettledResult<R>;
      if (status === "rejected" && options.partial !== true) {
        failed = true;
        throw (results[index] as PromiseRejectedResult).reason;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, work));
  if (options.partial === true) return results;
  return results.map((result) => (result as PromiseFulfilledResult<R>).value);
}
