// Who is measured, in the order of the table. Pawl is first; the others follow by store.
import { startRestate } from "./restate/server.mjs";

/**
 * `folder` holds the adapter, and unless the peer is this repository also a package.json; `main` is the package whose version is shown; `store`
 * is what a place of its own needs. `longest` is the longest run that is resumed, where it is not the common one.
 */
export const PEERS = {
  pawl: { title: "Pawl, SQLite", folder: "pawl", main: null, store: "sqlite" },
  "pawl-postgres": { title: "Pawl, PostgreSQL", folder: "pawl", main: null, store: "postgres" },
  "openworkflow-sqlite": {
    title: "OpenWorkflow, SQLite",
    folder: "openworkflow",
    main: "openworkflow",
    store: "sqlite",
    longest: { steps: 900, why: "it allows 1,000" },
  },
  "openworkflow-postgres": {
    title: "OpenWorkflow, PostgreSQL",
    folder: "openworkflow",
    main: "openworkflow",
    store: "postgres",
    longest: { steps: 900, why: "it allows 1,000" },
  },
  dbos: { title: "DBOS, PostgreSQL", folder: "dbos", main: "@dbos-inc/dbos-sdk", store: "postgres" },
  restate: {
    title: "Restate",
    folder: "restate",
    main: "@restatedev/restate-server",
    store: "server",
    startServer: startRestate,
  },
  vercel: {
    title: "Vercel Workflow, PostgreSQL",
    folder: "vercel",
    main: "workflow",
    store: "postgres",
    longest: { steps: 200, why: "more would take too long" },
    isOptIn: true,
  },
};

/** What a reader must know to judge the figures of a peer. */
export const NOTES = {
  pawl: "SQLite in WAL with `synchronous=FULL`; client and worker in one process, `concurrency: 4096`.",
  "pawl-postgres":
    "As on SQLite; one lane of commits, so that at most one is under way, with whatever has come together meanwhile.",
  "openworkflow-sqlite":
    "`node:sqlite` in WAL, `synchronous` at SQLite's default, FULL; client and worker in one process, its `concurrency` what is in flight, as every free place costs a query at each look. The worker looks for new runs every 100 to 1,000 ms when it has found none, and takes over a dead worker's runs when their lease of 30 s has run out; neither can be set. A run may have 1,000 steps.",
  "openworkflow-postgres":
    "As on SQLite, with the backend's own pool of connections. On both, results are read as soon as the function has returned; the handle's own `result()` looks once a second.",
  dbos: "Workflows are started directly, without a queue, which is its quickest way; `systemDatabasePoolSize: 20`. A sleeping run stays in memory. Its TypeScript library has no SQLite mode.",
  restate:
    "The single-node server of its npm package at its defaults, with synced log and 24 partitions; only the limit of invocations at a time is raised. The service that is killed is a process of its own; the server lives on, as PostgreSQL does.",
  vercel:
    "Self-hosted: standalone bundles behind HTTP in the worker process, and its PostgreSQL world with 50 jobs at a time. Results are read as soon as the last step has run; `returnValue` looks once a second.",
};

/** What is not measured, and why. */
export const LEFT_OUT = {
  Absurd:
    "its npm package `absurd-sdk` has no schema; that comes with `absurdctl`, which is not on npm, so the bench cannot set it up by itself",
};
