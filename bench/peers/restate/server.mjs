import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../../../scripts/free-port.mjs";

const GUARD = fileURLToPath(new URL("../guard.mjs", import.meta.url));
const MODULES = new URL("./node_modules/@restatedev/", import.meta.url);
const START_LIMIT_MS = 60_000;

/**
 * A Restate server with its data in `folder`, with the defaults of its package: the log is synced. Only the number of invocations that may run at
 * once, 1,000 by default, is raised above what the bench has in flight.
 */
export async function startRestate(folder) {
  const name = `restate-server-${process.platform}-${process.arch}/bin/restate-server`;
  const binary = fileURLToPath(new URL(name, MODULES));
  const [node, admin, ingress, service] = [await freePort(), await freePort(), await freePort(), await freePort()];
  const environment = {
    RESTATE_BIND_ADDRESS: `127.0.0.1:${node}`,
    RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
    RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
    RESTATE_LISTEN_MODE: "tcp",
    RESTATE_DISABLE_TELEMETRY: "true",
    RESTATE_LOG_FILTER: "error",
    RESTATE_WORKER__INVOKER__CONCURRENT_INVOCATIONS_LIMIT: "4096",
  };
  const args = [GUARD, binary, "--no-logo", "--base-dir", join(folder, "restate")];
  const guard = spawn(process.execPath, args, {
    cwd: folder,
    env: { ...process.env, ...environment },
    stdio: ["pipe", "ignore", "ignore", "ipc"],
  });
  const exited = once(guard, "exit");
  const [pid] = await once(guard, "message");
  guard.disconnect();
  const stop = async () => {
    guard.stdin.end();
    await exited;
  };
  const place = { admin: `http://127.0.0.1:${admin}`, ingress: `http://127.0.0.1:${ingress}`, port: service };
  await untilHealthy([`${place.admin}/health`, `${place.ingress}/restate/health`], guard);
  return { place, pid, stop };
}

async function untilHealthy(addresses, guard) {
  const end = performance.now() + START_LIMIT_MS;
  for (const address of addresses) {
    while (!(await isHealthy(address))) {
      if (guard.exitCode !== null) throw new Error(`the Restate server ended with ${guard.exitCode}`);
      if (performance.now() > end) throw new Error("the Restate server was not healthy within a minute");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

async function isHealthy(address) {
  try {
    return (await fetch(address)).ok;
  } catch {
    return false;
  }
}
