/** The fixed seeds of the simulator, which no mutant was looked at for: named where they find it by themselves. */
export const FIXED_SEEDS = { file: "test/simulation/simulation.test.ts", title: "hold in fixed seeds, which" };
/** Those whose runs act outside, ask for leave and spend. */
export const ACTING_SEEDS = {
  file: "test/simulation/simulation.test.ts",
  title: "hold in fixed seeds that act outside",
};
