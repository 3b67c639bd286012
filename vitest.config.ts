import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const source = (path: string): string => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

/** They come first, so that none of them is left to run alone on one core at the end. */
const LONGEST = ["simulation/fresh-seeds", "crash/every-point", "cli-test", "cli-run", "cli-fleet", "docs"];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const found = LONGEST.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return found < 0 ? LONGEST.length : found;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  resolve: {
    // In-process tests see one copy of the package: the sources. Child processes run dist.
    alias: [
      { find: /^pawl$/, replacement: source("index.ts") },
      { find: /^pawl\/notify$/, replacement: source("notify/index.ts") },
      { find: /^pawl\/guards$/, replacement: source("guards/index.ts") },
      { find: /^pawl\/testing$/, replacement: source("testing/index.ts") },
    ],
  },
  test: {
    globalSetup: ["test/cold-start-report.ts", "test/postgres-setup.ts"],
    setupFiles: ["test/cold-start-setup.ts"],
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    pool: "forks",
    maxWorkers: "100%",
    sequence: { sequencer: LongestFirst },
    testTimeout: 30_000,
    hookTimeout: 30_000,
    teardownTimeout: 10_000,
  },
});
