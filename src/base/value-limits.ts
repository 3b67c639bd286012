// What one stored value may hold. Reader and writer share these limits, so that whatever was written can be read.

/** Containers inside containers. Data is rarely ten deep; recursion this shallow can never exhaust the stack (Q8). */
export const MAX_DEPTH = 64;

/** Levels and values that stay free for what wraps a value when it is recorded. Whoever takes a value in leaves them. */
export const WRAP_DEPTH = 2;
export const WRAP_NODES = 1000;

/** Characters of one text: twice what any value may take, so that a stored one cannot ask for gigabytes (Q8). */
export const MAX_TEXT: number = 2 ** 27;

/** Values inside one value, itself included. Bounds the time and memory a hostile or runaway value can take (Q8). */
export const MAX_NODES = 1_000_000;
