// What one stored value may hold. Reader and writer share these limits, so that whatever was written can be read.

/** Containers inside containers. Data is rarely ten deep; recursion this shallow can never exhaust the stack (Q8). */
export const MAX_DEPTH = 64;

/** Values inside one value, itself included. Bounds the time and memory a hostile or runaway value can take (Q8). */
export const MAX_NODES = 1_000_000;
