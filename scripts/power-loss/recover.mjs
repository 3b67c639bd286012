// Opens what a power cut has left, looks it over, compares it with what was acknowledged, and brings every run to its end.
import { join } from "node:path";
import { doctor } from "../../dist/client/doctor.js";
import { Pawl, sqliteStore } from "../../dist/index.js";
import { exportRun, replay } from "../../dist/testing/index.js";
import { begun, finish, workflows } from "./work.mjs";

const LIMIT_MS = 30_000;
const QUIET_MS = 10_000;

/**
 * `lost`: acknowledged commits and messages that are not there. `faults`: what SQLite's integrity check and Pawl's doctor say of the file.
 * `repeated`: steps that began again although their outcome was acknowledged. `wrong`: runs that did not end with their answer or, with
 * `hasColdStart`, do not come to it again when they are replayed without their end; `replayed`: how many were.
 */
export async function recover(folder, durability, acknowledged, runs, { hasColdStart = false } = {}) {
  const path = join(folder, "pawl.db");
  const store = sqliteStore(path, { durability });
  const faults = [];
  try {
    await store.open();
    faults.push(...(await faultsOf(store)));
    const lost = await countLost(store, acknowledged);
    const { wrong, repeated } = await goOn(store, runs, acknowledged);
    const cold = hasColdStart ? await coldStart(store) : { wrong: [], replayed: 0 };
    faults.push(...(await faultsOf(store)));
    return { faults, lost, repeated, wrong: [...new Set([...wrong, ...cold.wrong])], replayed: cold.replayed };
  } catch (error) {
    return {
      faults: [...faults, error.message],
      lost: acknowledged.length,
      repeated: 0,
      replayed: 0,
      wrong: runs.map(({ id }) => id),
    };
  } finally {
    await Promise.resolve(store.close()).catch(() => {});
  }
}

/** Workers that are gone are no fault here: their process was cut off. */
async function faultsOf(store) {
  const { findings } = await doctor(store);
  return findings
    .filter(({ severity, about }) => severity === "fault" && about !== "workers" && about !== "stranded")
    .map(({ message }) => message);
}

async function countLost(store, acknowledged) {
  let lost = 0;
  const found = new Map();
  for (const { run, head, message } of acknowledged) {
    if (!found.has(run)) found.set(run, await look(store, run));
    const { length, messages } = found.get(run);
    if (message === undefined ? length < head : !messages.has(message)) lost++;
  }
  return lost;
}

async function look(store, run) {
  const journal = await store.journal(run);
  const received = journal.filter(({ type }) => type === "signal.received" || type === "child.ended");
  const unread = await store.inbox(run);
  const texts = received.map(({ data }) => String(data)).join();
  const has = (id) => unread.some((row) => row.id === id) || texts.includes(id);
  return { length: journal.length, messages: { has } };
}

async function goOn(store, runs, acknowledged) {
  begun.length = 0;
  const pawl = await Pawl.open(store, { workflows, guard: "off", handleSignals: false, logger: SILENT });
  try {
    const outputs = await within(finish(pawl, runs));
    const wrong = runs.filter(({ expected }, i) => outputs?.[i] !== expected).map(({ id }) => id);
    const recorded = new Set(acknowledged.flatMap(({ run, steps = [] }) => steps.map((key) => `${run}/${key}`)));
    return { wrong, repeated: begun.filter((key) => recorded.has(key)).length };
  } finally {
    await pawl.close({ drain: 0 });
  }
}

/** Replays every run of the store. A child that its code does not lead to stands for the run that has called it. */
async function coldStart(store) {
  const pawl = await Pawl.open(store, { handleSignals: false, logger: SILENT });
  try {
    const rows = await store.runs({ limit: 10_000 });
    const wrong = [];
    for (const { id, workflow: name, parent } of rows) {
      const code = workflows.find((one) => one.name === name);
      // The engine's own runs have no code of users.
      if (code === undefined && name.startsWith("pawl.")) continue;
      const { ok } = await replay(code, await exportRun(pawl, id), { quiet: QUIET_MS });
      if (!ok) wrong.push(parent?.run ?? id);
    }
    return { wrong, replayed: rows.length };
  } finally {
    await pawl.close();
  }
}

const SILENT = { debug() {}, info() {}, warn() {}, error() {} };

/** What a promise gives, or `null` if it gives nothing in time. */
async function within(promise) {
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, LIMIT_MS, null);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
