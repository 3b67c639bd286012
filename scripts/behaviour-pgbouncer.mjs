// The PostgreSQL part of the behaviour suite and of the store's contract, through a real PgBouncer in transaction mode. `npm run behaviour:pgbouncer`
// builds first. Arguments go to vitest; without any, test/behaviour and test/stores.test.ts are run.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { openPgBouncer } from "./pgbouncer.mjs";
import { openPostgres } from "./postgres-server.mjs";

const TESTS = fileURLToPath(new URL("./test.mjs", import.meta.url));
const given = process.argv.slice(2);
const what = given.length > 0 ? given : ["test/behaviour", "test/stores.test.ts", "-t", "postgres|PostgreSQL"];

const server = await openPostgres({ settings: { max_connections: 100 } });
const bouncer = await openPgBouncer(server.url);
process.stdout.write(`Through PgBouncer in transaction mode, 20 connections to the server: ${what.join(" ")}\n`);
const tests = spawn(process.execPath, [TESTS, ...what], {
  env: { ...process.env, TEST_PG_URL: bouncer.url },
  stdio: "inherit",
});
const [code] = await once(tests, "exit");
await bouncer.stop();
await server.stop();
process.exitCode = code ?? 1;
