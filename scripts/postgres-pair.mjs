// A primary and its streaming standby, for failover: the first standby is a copy of the stopped primary, later ones are base backups of the new one.
// Like scripts/postgres-server.mjs, a guard owns both and takes them away when whoever opened them is gone.

import { spawnSync } from "node:child_process";
import { appendFileSync, chownSync, cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { monotonic } from "./chaos/ledger.mjs";
import {
  createCluster,
  openGuard,
  serverUser,
  startServer,
  stopServer,
  systemBinaries,
  usableFolder,
} from "./postgres-server.mjs";

const SELF = fileURLToPath(import.meta.url);
const PASSWORD = "pair";
const ALIKE = { hot_standby: "on", wal_keep_size: "1GB" };
/** What only one of the two has, and not for good: in a file of its own, to be read again. */
const CHANGING = "pair.conf";

const pause = (ms) =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

/**
 * Opens a pair. `kill(lagMs)` ends every process of the primary with SIGKILL, `lagMs` after it has stopped sending to the standby, and resolves with the
 * moment; `promote()` makes the standby the primary and resolves with its address; `renew()` gives it a standby again.
 */
export async function openPair({ isSynchronous, settings = {} }) {
  const binaries = systemBinaries();
  if (binaries === null || !existsSync(join(binaries, "pg_basebackup")))
    throw new Error(
      "Failover needs PostgreSQL on this machine, with pg_basebackup. Install it, as with apt-get install postgresql.",
    );
  const { url, ask, stop } = await openGuard(SELF, { binaries, isSynchronous, settings });
  return {
    url,
    source: binaries,
    stop,
    kill: async (lagMs = 0) => (await ask(`kill ${lagMs}`)).killedAt,
    promote: async () => (await ask("promote")).url,
    renew: () => ask("renew"),
  };
}

async function guard(request) {
  const user = serverUser();
  const home = mkdtempSync(join(usableFolder(tmpdir(), user), "pawl-pair-"));
  const pair = new Pair(home, user, request);
  try {
    say({ url: await pair.open() });
    for await (const line of createInterface({ input: process.stdin })) {
      const [command, argument] = line.split(" ");
      say((await pair[command](Number(argument))) ?? {});
    }
  } catch (error) {
    say({ error: error.message });
  } finally {
    await pair.close();
    rmSync(home, { recursive: true, force: true });
  }
  process.exit(0);
}

const say = (answer) => console.log(JSON.stringify(answer));
const urlOf = ({ port }) => `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`;

class Pair {
  #home;
  #user;
  #bin;
  #settings;
  #isSynchronous;
  #made = 0;
  #primary = null;
  #standby = null;

  constructor(home, user, { binaries, isSynchronous, settings }) {
    this.#home = home;
    this.#user = user;
    this.#bin = binaries;
    this.#settings = { ...ALIKE, ...settings };
    this.#isSynchronous = isSynchronous;
  }

  async open() {
    const data = createCluster({ bin: this.#bin, home: this.#home, user: this.#user, password: PASSWORD });
    appendFileSync(join(data, "postgresql.conf"), `\ninclude_if_exists = '${CHANGING}'\n`);
    const copy = join(this.#home, "copy");
    cpSync(data, copy, { recursive: true });
    if (this.#user !== null) spawnSync("chown", ["-R", `${this.#user.uid}:${this.#user.gid}`, copy]);
    spawnSync("chmod", ["-R", "go-rwx", copy]);
    this.#primary = await this.#start(data, {});
    await this.#follow(copy);
    return urlOf(this.#primary);
  }

  /** SIGKILL for all of them at once: nobody gets to write or send anything any more. */
  async kill(lagMs) {
    if (lagMs > 0) await this.#stopSending(lagMs);
    const { server } = this.#primary;
    const exited = new Promise((resolve) => {
      server.once("exit", resolve);
    });
    process.kill(server.pid, "SIGSTOP");
    const all = [...childrenOf(server.pid), server.pid];
    const killedAt = monotonic();
    for (const pid of all) process.kill(pid, "SIGKILL");
    await exited;
    return { killedAt };
  }

  async promote() {
    rmSync(this.#primary.data, { recursive: true, force: true });
    this.#primary = this.#standby;
    this.#standby = null;
    this.#change(this.#primary, "");
    await ask(this.#primary, "select pg_promote(true, 60)");
    return { url: urlOf(this.#primary) };
  }

  async renew() {
    const data = join(this.#home, `standby-${++this.#made}`);
    const args = ["-D", data, "-X", "stream", "-c", "fast", "-h", "127.0.0.1", "-U", "postgres"];
    const { status, stderr } = spawnSync(
      join(this.#bin, "pg_basebackup"),
      [...args, "-p", String(this.#primary.port)],
      {
        ...this.#user,
        cwd: this.#home,
        env: { ...process.env, PGPASSWORD: PASSWORD },
        encoding: "utf8",
      },
    );
    if (status !== 0) throw new Error(`pg_basebackup failed: ${stderr}`);
    await this.#follow(data);
  }

  async close() {
    for (const one of [this.#standby, this.#primary]) if (one !== null) await stopServer(one.server, "SIGQUIT");
  }

  /** Makes the copy in `data` the standby of the primary, and waits until it has all there is. */
  async #follow(data) {
    this.#own(data, "standby.signal", "");
    const from = `host=127.0.0.1 port=${this.#primary.port} user=postgres password=${PASSWORD}`;
    this.#standby = await this.#start(data, { primary_conninfo: from });
    if (this.#isSynchronous) this.#change(this.#primary, "synchronous_standby_names = '*'\n");
    const wanted = this.#isSynchronous ? "sync" : "async";
    const states = "select sync_state from pg_stat_replication where state = 'streaming'";
    while ((await ask(this.#primary, states))[0]?.sync_state !== wanted) await pause(50);
  }

  async #start(data, more) {
    const how = { bin: this.#bin, data, home: this.#home, user: this.#user, settings: { ...this.#settings, ...more } };
    return { ...(await startServer(how)), data };
  }

  #change({ server, data }, text) {
    this.#own(data, CHANGING, text);
    process.kill(server.pid, "SIGHUP");
  }

  #own(data, name, text) {
    writeFileSync(join(data, name), text);
    if (this.#user !== null) chownSync(join(data, name), this.#user.uid, this.#user.gid);
  }

  /** A standby that lags behind, as over a network that is slow. */
  async #stopSending(lagMs) {
    for (const { pid } of await ask(this.#primary, "select pid from pg_stat_replication")) process.kill(pid, "SIGSTOP");
    await pause(lagMs);
  }
}

async function ask(server, text) {
  const client = new pg.Client({ connectionString: urlOf(server) });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

function childrenOf(parent) {
  const { stdout } = spawnSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" });
  const pairs = stdout
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number));
  return pairs.filter(([, ppid]) => ppid === parent).map(([pid]) => pid);
}

if (process.argv[1] === SELF) await guard(JSON.parse(process.argv[2]));
