// A PgBouncer in transaction mode, in front of a PostgreSQL server: each transaction may get another of the server's connections.
import { spawn } from "node:child_process";
import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { freePort } from "./free-port.mjs";
import { serverUser } from "./postgres-server.mjs";

const START_LIMIT_MS = 20_000;

function findProgram() {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin"];
  const found = folders.map((folder) => join(folder, "pgbouncer")).find((file) => existsSync(file));
  if (found !== undefined) return found;
  throw new Error(
    "There is no PgBouncer on this machine. Install it, as with apt-get install pgbouncer or brew install pgbouncer.",
  );
}

/** Opens one before the server at `url`: its address, and how to stop it. `connections` is how many it has to the server. */
export async function openPgBouncer(url, { connections = 20 } = {}) {
  const program = findProgram();
  const { hostname, port: serverPort, username, password, pathname } = new URL(url);
  const user = serverUser();
  const folder = mkdtempSync(join(tmpdir(), "pawl-pgbouncer-"));
  const port = await freePort();
  const settings = {
    listen_addr: "127.0.0.1",
    listen_port: port,
    unix_socket_dir: "",
    auth_type: "plain",
    auth_file: join(folder, "users.txt"),
    pool_mode: "transaction",
    default_pool_size: connections,
    // Seconds until it tries again to reach a server that was not there.
    server_login_retry: 1,
    max_client_conn: 1000,
    log_connections: 0,
    log_disconnections: 0,
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
  const database = pathname.slice(1);
  const target = `${database} = host=${hostname} port=${serverPort} dbname=${database}`;
  writeFileSync(join(folder, "users.txt"), `"${username}" "${decodeURIComponent(password)}"\n`);
  writeFileSync(join(folder, "pgbouncer.ini"), ["[databases]", target, "[pgbouncer]", ...lines, ""].join("\n"));
  if (user !== null)
    for (const name of ["", "users.txt", "pgbouncer.ini"]) chownSync(join(folder, name), user.uid, user.gid);
  chmodSync(folder, 0o755);
  const child = spawn(program, [join(folder, "pgbouncer.ini")], {
    ...user,
    cwd: "/",
    stdio: ["ignore", "ignore", "pipe"],
  });
  const exited = new Promise((resolve) => {
    child.once("exit", resolve);
  });
  process.once("exit", () => child.kill("SIGKILL"));
  await readiness(child);
  const stop = async () => {
    child.kill("SIGKILL");
    await exited;
    rmSync(folder, { recursive: true, force: true });
  };
  const address = new URL(url);
  address.hostname = "127.0.0.1";
  address.port = String(port);
  return { url: address.href, stop };
}

function readiness(child) {
  return new Promise((resolve, reject) => {
    let log = "";
    const fail = () => reject(new Error(`PgBouncer did not start: ${log || "it said nothing"}`));
    const timer = setTimeout(fail, START_LIMIT_MS);
    child.once("exit", fail);
    child.once("error", fail);
    child.stderr.setEncoding("utf8").on("data", (text) => {
      log = (log + text).slice(-4000);
      if (!/process up/.test(log)) return;
      clearTimeout(timer);
      resolve();
    });
  });
}
