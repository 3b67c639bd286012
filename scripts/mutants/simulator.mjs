/** The simulator finds it by itself, in seeds that nobody has chosen. How many it takes changes with every call that the engine makes, so there are plenty. */
export const SIMULATED = { seeds: 3000 };
