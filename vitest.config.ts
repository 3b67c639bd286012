import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { joinedSources } from "./test/joined-sources.ts";

const source = (path: string): string => fileURLToPath(new URL(`./src/${path}`, import.meta.url));

/** They come first, so that none of them is left to run alone on one core at the end. */
const LONGEST = [
  "simulation/fresh-seeds",
  "crash/every-point",
  "crash/planning-agent",
  "cli-test",
  "crash/bugfix",
  "explorer/examples",
  "browser/dashboard",
  "cli-run",
  "cli-fleet",
  "docs",
  "crash/zombie",
];

/** Those that share a process come last, one after the other: it ends when one of the others is next. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification) => {
      // The explorer waits for whatever its process has under way: it goes before others have left something there. Long ones must not be last.
      if (!project.config.isolate)
        return LONGEST.length + (/\/test\/(explorer\/|behaviour\/styles|evals\/families)/.test(moduleId) ? 1 : 2);
      const found = LONGEST.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return found < 0 ? LONGEST.length : found;
    };
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b));
  }
}

// In-process tests see one copy of the package: the sources. Child processes run dist.
const alias = [
  { find: /^pawl$/, replacement: source("index.ts") },
  { find: /^pawl\/notify$/, replacement: source("notify/index.ts") },
  { find: /^pawl\/otel$/, replacement: source("otel/index.ts") },
  { find: /^pawl\/guards$/, replacement: source("guards/index.ts") },
  { find: /^pawl\/agent$/, replacement: source("agent/index.ts") },
  { find: /^pawl\/ai$/, replacement: source("ai/index.ts") },
  { find: /^pawl\/server\/client$/, replacement: source("server/client.ts") },
  { find: /^pawl\/server$/, replacement: source("server/index.ts") },
  { find: /^pawl\/testing$/, replacement: source("testing/index.ts") },
  ...otherAi(process.env["PAWL_TEST_AI"]),
];

/** Another version of the AI SDK than the one that is installed here, by its folder (`npm run test:node24`). */
function otherAi(folder: string | undefined): { find: RegExp; replacement: string }[] {
  if (folder === undefined) return [];
  return [
    { find: /^ai$/, replacement: `${folder}/dist/index.js` },
    { find: /^ai\/test$/, replacement: `${folder}/dist/test/index.js` },
  ];
}

const common = {
  // There are more test processes than cores: threads that collect one's garbage take from the others. And most of what is called often enough to be
  // optimized by V8's measure is over before that pays: the budget is three times its own. (More slows down those that compute a lot.)
  execArgv: ["--single-threaded-gc", "--max-semi-space-size=32", "--interrupt-budget=400000"],
  setupFiles: ["test/cold-start-setup.ts"],
  pool: "forks" as const,
  testTimeout: 30_000,
  hookTimeout: 30_000,
};

/** They replace modules, change or kill processes, want a core to themselves, or begin first, unlike the others of their folders. */
const ALONE = [
  "bugfix",
  "crash",
  "disk",
  "every-point",
  "examples",
  "fresh-seeds",
  "git-commit",
  "guard",
  "huge-run",
  "limits",
  "outside-memory",
  "planning-agent",
  "process-identity",
  "resources",
  "user-code",
  "zombie",
];

/** Their neighbours are about processes, packages or disks. */
const NEIGHBOURS = [
  "agent-directory?(-damage|-stores|-writing)",
  "agent-mailbox-workers",
  "ai-!(crashes|example)",
  "cli-!(fleet|postgres|run|test)",
  "deployments",
  "edited-documents",
  "exports",
  "golden",
  "inference",
  "killed-budgets",
  "long-journal",
  "mcp",
  "mutants",
  "playbook",
  "postgres",
  "schedule-zones",
  "store-parity",
  "stores",
  "tidy",
];

const FOLDERS = [
  "attacks",
  "behaviour",
  "check",
  "crash",
  "determinism",
  "evals",
  "explorer",
  "file-store",
  "guards",
  "notify",
  "observe",
  "operators",
  "postgres",
  "replay",
  "sealed",
  "server",
  "server-links",
  "simulation",
  "transactions",
];

/** They leave nothing behind, so they share a process: to load the engine takes longer than most of them. */
const TOGETHER = [
  `{src/**,test/{${FOLDERS.join(",")}}}/!(${ALONE.join("|")}).test.ts`,
  `test/@(${NEIGHBOURS.join("|")}).test.ts`,
];

/** They replace modules of the engine, which must not be joined for that. All are among those that are alone. */
const SOURCES = [
  "src/testing/outside-memory.test.ts",
  "src/worker/process-identity.test.ts",
  "test/behaviour/limits.test.ts",
];

const plugins = [await joinedSources()];

const MODULES = fileURLToPath(new URL("./.cache/test-modules", import.meta.url));

const EVERYTHING = ["src/**/*.test.ts", "test/**/*.test.ts"];

export default defineConfig({
  test: {
    // The last one: the server that all tests share has a disk.
    globalSetup: [
      "test/module-cache-setup.ts",
      "test/cold-start-report.ts",
      "test/postgres-setup.ts",
      "test/scratch-setup.ts",
    ],
    // More than there are cores: tests of processes and disks wait a lot.
    maxWorkers: availableParallelism() + 2,
    sequence: { sequencer: LongestFirst },
    teardownTimeout: 10_000,
    // What is transformed is named by its content: projects share it, and so do the next runs.
    experimental: { fsModuleCache: true, fsModuleCachePath: MODULES },
    projects: [
      {
        resolve: { alias },
        plugins,
        test: { ...common, name: "alone", include: EVERYTHING, exclude: [...TOGETHER, ...SOURCES] },
      },
      { resolve: { alias }, plugins, test: { ...common, name: "together", include: TOGETHER, isolate: false } },
      { resolve: { alias }, test: { ...common, name: "sources", include: SOURCES } },
    ],
  },
});
