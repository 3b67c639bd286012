// Counts a finished vitest run. Whatever is red counts as a failure, even where no test carries it: a file that does
// not load, a hook that throws, an error nobody handled, a test that never got to run.

/**
 * @param {ReadonlyArray<import("vitest/node").TestModule>} modules
 * @param {ReadonlyArray<unknown>} unhandledErrors
 */
export function countTests(modules, unhandledErrors) {
  const counts = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
  for (const module of modules) {
    if (module.errors().length > 0) counts.failed += 1;
    for (const suite of module.children.allSuites()) if (suite.errors().length > 0) counts.failed += 1;
    for (const test of module.children.allTests()) counts[outcomeOf(test)] += 1;
  }
  return counts;
}

/** @param {{ passed: number, failed: number, skipped: number }} counts */
export function plainLine({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`;
}

function outcomeOf(test) {
  const { state } = test.result();
  return state === "pending" ? "failed" : state;
}
