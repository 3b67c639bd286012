import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const source = (path: string): string => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

export default defineConfig({
  resolve: {
    // In-process tests see one copy of the package: the sources. Child processes run dist.
    alias: [
      { find: /^pawl$/, replacement: source("index.ts") },
      { find: /^pawl\/testing$/, replacement: source("testing/index.ts") },
    ],
  },
  test: {
    globalSetup: ["test/cold-start-report.ts", "test/postgres-setup.ts"],
    setupFiles: ["test/cold-start-setup.ts"],
    include: ["src/**/*.test.ts", "test/**/*.test.ts"],
    pool: "forks",
    maxWorkers: "100%",
    testTimeout: 30_000,
    hookTimeout: 30_000,
    teardownTimeout: 10_000,
  },
});
