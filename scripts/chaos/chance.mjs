// Chance that follows from a seed. What is drawn repeats; when processes get to run does not, so no two trials are the same in full.
import { seededRandom } from "../../dist/base/random.js";

export function chanceOf(seed) {
  const { next } = seededRandom(seed);
  return {
    hits: (share) => next() < share,
    between: (from, to) => from + next() * (to - from),
    whole: (from, to) => from + Math.floor(next() * (to - from + 1)),
    pick: (items) => items[Math.floor(next() * items.length)],
    /** Takes [weight, item] pairs. */
    weighed(pairs) {
      let left = next() * pairs.reduce((sum, [weight]) => sum + weight, 0);
      for (const [weight, item] of pairs) {
        left -= weight;
        if (left < 0) return item;
      }
      return pairs.at(-1)[1];
    },
  };
}
