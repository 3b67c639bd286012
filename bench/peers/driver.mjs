// Places and worker processes: what the driver makes, asks and kills.
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const WORKER = fileURLToPath(new URL("./worker.mjs", import.meta.url));
// On the disk of the repository, as the folder for temporary files may be in memory.
export const DATA = fileURLToPath(new URL("../../.cache/bench", import.meta.url));
const OPEN_LIMIT_MS = 180_000;
const CLOSE_LIMIT_MS = 10_000;
const KEPT_OUTPUT = 2000;

let schemas = 0;

/** Where one engine keeps its runs: a folder, a schema or a server of its own. It outlives the worker processes. */
export async function openPlace(peer, { node, postgres }) {
  mkdirSync(DATA, { recursive: true });
  const folder = mkdtempSync(join(DATA, "peer-"));
  const server = await serverOf(peer, folder, { node, postgres });
  const close = async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  };
  return { peer, place: { folder, ...server.place }, serverPid: server.pid, workers: [], close };
}

async function serverOf(peer, folder, { node, postgres }) {
  if (peer.store === "server") return peer.startServer(folder);
  if (peer.store !== "postgres") return { place: {}, pid: null, stop: async () => {} };
  const place = { url: postgres.url, schema: `bench_${process.pid}_${++schemas}` };
  const stop = async () => {
    const child = forkWorker({ peer, place }, node, { isLast: true });
    await once(child, "exit");
  };
  return { place, pid: null, stop };
}

/** Starts a worker process on a place; gives it when its engine is open. `options` are those of worker.mjs, `flags` Node's. */
export async function startWorker(home, node, options = {}, flags = []) {
  const worker = new WorkerProcess(forkWorker(home, node, options, flags));
  home.workers.push(worker);
  await worker.answer("ready", OPEN_LIMIT_MS);
  home.place.isRegistered = true;
  return worker;
}

function forkWorker({ peer, place }, node, options, flags = []) {
  const adapter = new URL(`./${peer.folder}/adapter.mjs`, import.meta.url).href;
  return fork(WORKER, [JSON.stringify({ adapter, place, ...options })], {
    execPath: node,
    execArgv: ["--expose-gc", "--disable-warning=ExperimentalWarning", ...flags],
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
}

class WorkerProcess {
  #child;
  #exited;
  #output = "";
  #waiting = new Map();
  #serial = 0;

  constructor(child) {
    this.#child = child;
    this.#exited = once(child, "exit");
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text) => {
        this.#output = (this.#output + text).slice(-KEPT_OUTPUT);
      });
    }
    child.on("message", (message) => this.#receive(message));
    child.once("exit", (code, signal) => this.#failAll(`the worker ended with ${signal ?? code}`));
  }

  /** Asks for one method of worker.mjs. An answer that takes too long ends the process. */
  ask(method, argument, limitMs) {
    const id = ++this.#serial;
    const answer = this.answer(id, limitMs, method);
    this.#child.send({ id, method, argument });
    return answer;
  }

  /** The answer to a question, or a message that the worker sends by itself under a name. */
  answer(id, limitMs, what = id) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        this.#child.kill("SIGKILL");
        reject(new Error(`no answer to "${what}" within ${Math.round(limitMs / 1000)} s`));
      }, limitMs);
      this.#waiting.set(id, {
        settle: (message) => {
          clearTimeout(timer);
          this.#waiting.delete(id);
          if (message.error === undefined) resolve(message.value);
          else reject(new Error(`${what}: ${message.error}`));
        },
      });
    });
  }

  async kill() {
    this.#child.kill("SIGKILL");
    await this.#exited;
  }

  /** Ends the engine in its own way; one that does not end is killed. */
  async close() {
    await this.ask("close", null, CLOSE_LIMIT_MS).catch(() => {});
    await this.kill();
  }

  #receive(message) {
    this.#waiting.get(message.ready ? "ready" : message.id)?.settle(message);
  }

  #failAll(reason) {
    const output = this.#output.trim();
    const error = output === "" ? reason : `${reason}; it wrote: ${output}`;
    for (const { settle } of this.#waiting.values()) settle({ error });
  }
}
