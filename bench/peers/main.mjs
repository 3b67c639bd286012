// Measures Pawl beside other durable execution engines: `npm run bench:peers`.
// `--quick`: small counts and one round, to see that it works; `--only pawl,dbos`: these peers; `--with vercel`: also those that are left out
// by default. A full run writes its section of bench/RESULTS.md, and bench/peers.svg.
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { openPostgres } from "../../scripts/postgres-server.mjs";
import { readOptions } from "../../scripts/read-options.mjs";
import { writeSection } from "../results.mjs";
import { DATA } from "./driver.mjs";
import { benchNode, install, versionOf } from "./install.mjs";
import { crash, plan, rates, resume, sleeping } from "./measures.mjs";
import { PEERS } from "./peers.mjs";
import { chart, rowsOf, section } from "./report.mjs";

const LIMIT_MS = 30 * 60_000;
// `row` is the one that says so if a measure fails as a whole; `inner` rounds are made within one call. What differs most from round to round comes first:
// what a slow machine has no time for is then another round of the rates.
const SCHEDULE = [
  { measure: crash, rounds: 3, row: "recovery" },
  { measure: sleeping, rounds: 2, row: "sleeping" },
  { measure: resume, rounds: 1, inner: 3, row: "resume" },
  { measure: rates, rounds: 3, row: "rate-1" },
];

const values = readOptions(import.meta.url, {
  quick: { type: "boolean", default: false },
  only: { type: "string" },
  with: { type: "string" },
  measure: { type: "string" },
});
const started = performance.now();
const samples = new Map();
const remarks = new Map();
const skipped = {};
const sizes = plan(values.quick);
const chosen = choosePeers();
const peers = chosen.filter(canInstall);
const bench = { node: benchNode(), postgres: await openStore() };
try {
  await measureAll();
} finally {
  await bench.postgres?.stop();
}
report();

function choosePeers() {
  const known = Object.keys(PEERS);
  const byDefault = known.filter((name) => !PEERS[name].isOptIn);
  const names = values.only?.split(",") ?? [...byDefault, ...(values.with?.split(",") ?? [])];
  const unknown = names.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    console.error(`There is no peer "${unknown}". Choose from: ${known.join(", ")}.`);
    process.exit(2);
  }
  return names.map((name) => ({ name, ...PEERS[name] }));
}

function canInstall(peer) {
  try {
    install(peer);
    peer.version = versionOf(peer);
    return true;
  } catch (error) {
    skip(peer, error.message);
    return false;
  }
}

async function openStore() {
  const users = peers.filter(({ store }) => store === "postgres");
  if (users.length === 0) return null;
  try {
    return await openPostgres({ folder: DATA, settings: { max_connections: 200 } });
  } catch (error) {
    for (const peer of users) {
      skip(peer, error.message);
      peers.splice(peers.indexOf(peer), 1);
    }
    return null;
  }
}

function skip(peer, reason) {
  skipped[peer.title] = reason;
  console.error(`${peer.title} is left out: ${reason}`);
}

/** Round by round, and in each round peer by peer. A later round is left out for all peers if it would not fit into the time. */
async function measureAll() {
  const lasted = new Map();
  const schedule = SCHEDULE.filter(({ measure }) => values.measure === undefined || values.measure === measure.name);
  const most = values.quick ? 1 : Math.max(...schedule.map(({ rounds }) => rounds));
  for (let round = 1; round <= most; round++) {
    for (const entry of schedule.filter(({ rounds }) => rounds >= round)) {
      const { measure } = entry;
      const begin = performance.now();
      if (begin - started + (lasted.get(measure) ?? 0) > LIMIT_MS) {
        console.error(`round ${round}: ${measure.name} is left out, the time is over`);
        continue;
      }
      for (const peer of peers) await measureOne(entry, peer, round);
      lasted.set(measure, performance.now() - begin);
    }
  }
}

async function measureOne({ measure, inner, row }, peer, round) {
  const begin = performance.now();
  const record = (row, sample) => addTo(samples, `${peer.name} ${row}`, sample);
  const remark = (row, ...texts) => {
    for (const text of texts) addTo(remarks, `${peer.name} ${row}`, text);
  };
  const attempt = async (row, body) => {
    try {
      await body();
    } catch (error) {
      console.error(`round ${round}: ${peer.title}, ${row} failed: ${error.message}`);
      remark(row, `round ${round} failed: ${error.message.split("\n")[0]}`);
    }
  };
  const context = { sizes, bench, record, remark, attempt, rounds: values.quick ? 1 : inner };
  await attempt(row, () => measure(peer, context));
  const seconds = ((performance.now() - begin) / 1000).toFixed(1);
  console.error(`round ${round}: ${peer.title}, ${measure.name}: ${seconds} s`);
}

function addTo(map, key, value) {
  map.set(key, [...(map.get(key) ?? []), value]);
}

function report() {
  const rows = rowsOf(sizes);
  const node = spawnSync(bench.node, ["--version"], { encoding: "utf8" }).stdout.trim();
  const circumstances = {
    node,
    postgres: bench.postgres === null ? "no PostgreSQL" : `PostgreSQL from ${bench.postgres.source}`,
    minutes: Math.ceil((performance.now() - started) / 60_000),
  };
  const text = section({ sizes, rows, peers, samples, remarks, skipped, circumstances });
  console.log(text);
  if (values.quick || values.only !== undefined || values.measure !== undefined) return;
  writeSection("peers", text);
  const svg = chart({ peers, samples });
  if (svg !== null) writeFileSync(new URL("../peers.svg", import.meta.url), svg);
  console.log("Written to bench/RESULTS.md and bench/peers.svg.");
}
