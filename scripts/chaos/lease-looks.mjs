// When this process has last looked at the clock that its lease is counted on. Before a step's function begins it must, after the commit of the
// step's mark; what happens between that look and the first word of the function nobody can prevent.
import { monotonic } from "./ledger.mjs";

/** Must be called before the package is loaded, which takes hold of the clock. */
export function leaseLooks() {
  const read = performance.now.bind(performance);
  const offset = monotonic() - read();
  let looked = Number.NEGATIVE_INFINITY;
  let committed = 0;
  performance.now = () => {
    looked = read();
    return looked;
  };
  return {
    /** What the store's driver has come to. */
    reached(point) {
      if (point === "after-commit") committed = read();
    },
    /** `null`: it has not looked since the last commit. */
    last: () => (looked > committed ? looked + offset : null),
  };
}
