// Power loss
// Records every write and sync of a real worker process, rebuilds the files that a power cut could leave at many moments, and goes on from
// each: is everything there that was acknowledged, is the file sound, does every run end with its answer? Needs strace (Linux).
//
//   npm run powerloss                        300 cuts for each durability and model
//   npm run powerloss -- --cuts 50 --seed 7 --rounds 4
//   npm run powerloss -- --write             the section of docs/reliability.md, as Markdown
//   npm run powerloss -- --cold-start        each run must also be reproduced by its code, its end withheld (I5)
//   npm run powerloss -- --lying-disk        syncs do nothing: shows that this harness finds what there is to find
//
// Exit code 1 if anything acknowledged is lost under "power", or anything is corrupt or ends wrong under either.

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { seededRandom } from "../dist/base/random.js";
import { Disk, MODELS } from "./power-loss/disk.mjs";
import { recover } from "./power-loss/recover.mjs";
import { readTrace, TRACED } from "./power-loss/trace.mjs";
import { plan } from "./power-loss/work.mjs";
import { readOptions } from "./read-options.mjs";

const WORKER = fileURLToPath(new URL("./power-loss/worker.mjs", import.meta.url));
const LARGEST_WRITE = 1 << 20;

const options = readOptions(import.meta.url, {
  cuts: { type: "string", default: "300" },
  rounds: { type: "string", default: "8" },
  seed: { type: "string", default: String(Date.now() % 1_000_000) },
  durability: { type: "string", multiple: true, default: ["power", "process"] },
  "lying-disk": { type: "boolean", default: false },
  "cold-start": { type: "boolean", default: false },
  write: { type: "boolean", default: false },
  json: { type: "boolean", default: false },
});
const isReport = options.write || options.json;
const say = (text) => (isReport ? process.stderr : process.stdout).write(`${text}\n`);
const runs = plan(Number(options.rounds));
const root = realpathSync(mkdtempSync(join(tmpdir(), "pawl-power-")));
// What is rebuilt is a model already: the syncs of those who go on from it may cost nothing.
const memory = existsSync("/dev/shm") ? mkdtempSync("/dev/shm/pawl-power-") : root;

/** Runs the worker to its end and reads what it did to the disk. */
function record(durability) {
  const folder = join(root, durability);
  mkdirSync(folder);
  const trace = join(root, `${durability}.trace`);
  // The kernel passes on the calls that are traced alone: otherwise each call of the process stops it.
  const tracing = ["-f", "--seccomp-bpf", "-y", "-xx", "-s", String(LARGEST_WRITE), "-o", trace];
  const { signal, error, stderr } = spawnSync("strace", [
    ...tracing,
    "-e",
    `trace=${TRACED}`,
    process.execPath,
    WORKER,
    folder,
    durability,
    options.rounds,
  ]);
  if (error !== undefined) throw new Error(`strace could not be started (${error.message}). Install it, on Linux.`);
  if (signal !== "SIGKILL") throw new Error(`The recorded process did not get to its end:\n${stderr}`);
  const events = readTrace(readFileSync(trace, "latin1"), folder);
  rmSync(trace);
  return events;
}

function figuresOf(events) {
  const of = (kind, file) =>
    events.filter((event) => event.kind === kind && (file ?? event.file) === event.file).length;
  const syncs = of("sync") + of("sync-folder");
  return { writes: of("write"), checkpointed: of("write", "pawl.db"), syncs, acks: of("ack") };
}

/** Tries cuts at random moments of the recorded run, each in every model. */
async function tryCuts(durability, events) {
  const random = seededRandom(`${options.seed}/${durability}`);
  const next = () => random.next();
  const moments = momentsOf(events, next);
  const rows = new Map(MODELS.map((model) => [model, emptyRow(durability, model)]));
  const disk = new Disk({ isLying: options["lying-disk"] });
  const acknowledged = [];
  let done = 0;
  for (const moment of moments) {
    for (; done < moment; done++) {
      const event = events[done];
      if (event.kind === "ack") acknowledged.push(...event.facts);
      disk.apply(event);
    }
    for (const model of MODELS)
      count(rows.get(model), moment, await tryCut(disk.cut(model, next), durability, acknowledged));
  }
  return [...rows.values()];
}

/** How many events are over at each cut: half of the cuts come anywhere, half right after an acknowledgement or a sync. */
function momentsOf(events, next) {
  const all = events.map((_, i) => i + 1);
  const sharp = all.filter((i) => events[i - 1].kind !== "write");
  const pick = (list) => list[Math.floor(next() * list.length)];
  return Array.from({ length: Number(options.cuts) }, (_, i) => pick(i % 2 === 0 ? all : sharp)).sort((a, b) => a - b);
}

async function tryCut(files, durability, acknowledged) {
  const folder = mkdtempSync(join(memory, "cut-"));
  try {
    for (const [name, content] of files) writeFileSync(join(folder, name), content);
    return await recover(folder, durability, acknowledged, runs, { hasColdStart: options["cold-start"] });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function emptyRow(durability, model) {
  return {
    durability,
    model,
    cuts: 0,
    lossy: 0,
    lost: 0,
    worst: 0,
    corrupt: 0,
    repeated: 0,
    runs: 0,
    right: 0,
    replayed: 0,
  };
}

function count(row, moment, { faults, lost, repeated, wrong, replayed }) {
  row.cuts++;
  row.replayed += replayed;
  row.lossy += lost > 0 ? 1 : 0;
  row.lost += lost;
  row.worst = Math.max(row.worst, lost);
  row.corrupt += faults.length > 0 ? 1 : 0;
  row.repeated += repeated;
  row.runs += runs.length;
  row.right += runs.length - wrong.length;
  if (faults.length > 0 || wrong.length > 0 || (lost > 0 && row.durability === "power"))
    say(
      `${row.durability}, ${row.model}, cut at event ${moment}: ${lost} lost, ${wrong.length} wrong, ${faults.join(" ")}`,
    );
}

function isGood({ durability, lost, corrupt, repeated, runs: tried, right }) {
  return corrupt === 0 && right === tried && (durability !== "power" || (lost === 0 && repeated === 0));
}

function tableOf(rows) {
  const head = [
    "durability",
    "unsynced writes",
    "cuts",
    "cuts that lost",
    "acknowledged commits lost",
    "most at one cut",
    "corrupt files",
    "recorded steps run again",
    "runs that ended right",
  ];
  const lines = rows.map((row) => {
    const { durability, model, cuts, lossy, lost, worst, corrupt, repeated } = row;
    return [durability, model, cuts, lossy, lost, worst, corrupt, repeated, `${row.right} of ${row.runs}`];
  });
  return [head, head.map(() => "---"), ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

const rows = [];
const recorded = [];
try {
  for (const durability of options.durability) {
    const events = record(durability);
    const figures = figuresOf(events);
    const { writes, checkpointed, syncs, acks } = figures;
    const summary = `${writes} writes, ${checkpointed} of them by checkpoints, ${syncs} syncs, ${acks} acknowledgements`;
    recorded.push({ durability, ...figures, summary });
    say(`${durability}: ${runs.length} runs, ${summary} recorded`);
    rows.push(...(await tryCuts(durability, events)));
  }
} finally {
  for (const folder of [root, memory]) rmSync(folder, { recursive: true, force: true });
}

const facts = recorded.map(({ durability, summary }) => `\`${durability}\`: ${summary}`).join("; ");
if (options.json) process.stdout.write(`${JSON.stringify({ seed: options.seed, recorded, rows })}\n`);
else if (options.write) process.stdout.write(sectionOf(tableOf(rows), facts));
else say(`\n${tableOf(rows)}\n\nseed ${options.seed}`);
process.exitCode = rows.every(isGood) ? 0 : 1;

function sectionOf(table, recordedFacts) {
  return `## Power loss

\`npm run powerloss -- --cuts ${options.cuts} --rounds ${options.rounds} --seed ${options.seed}\` records every write and sync of a real worker process with
strace, rebuilds the files that a power cut could leave at that many moments, and goes on from each: SQLite's integrity check,
\`pawl doctor\`, a comparison with every acknowledgement, and all runs to their end. Writes that no sync had covered are dropped, kept at
random (subset), or kept but for sectors of 512 bytes of the last few (torn).

Recorded, with ${runs.length} runs and their children: ${recordedFacts}.

${table}

With \`durability: "power"\`, the default, nothing that was acknowledged is lost. With \`"process"\` a power cut takes the commits since the
last checkpoint; the file stays sound, and every run still ends with its answer, by doing again what was lost. A disk that says it has
synced and has not is beyond any program: \`--lying-disk\` shows what it does.
`;
}
