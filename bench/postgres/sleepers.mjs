// What a worker asks again and again, with a thousand and with a million sleeping runs in the same tables.
import { postgresStore } from "pawl";
import { answerOf, startChild } from "../child.mjs";
import { count, elapsed, figure, median } from "../measure.mjs";
import { withSchema } from "./database.mjs";

const FEW = 1000;
const MANY = 1_000_000;
const ROUNDS = 200;
/** How much the RSS of two processes that do the same may differ. */
const NOISE_MB = 16;
const WORKER = new URL("./worker.mjs", import.meta.url);
const HANDLES = [{ workflow: "sleeper", version: "1.0.0" }];

export async function sleepers({ url, quick }) {
  const many = quick ? 20_000 : MANY;
  return withSchema(url, async ({ client, schema }) => {
    const store = postgresStore(url, { schema });
    await store.open();
    const identity = { pid: 1, startedAt: "1", boot: "b", pidNamespace: null };
    await store.register({ id: "w", name: "w", leaseMs: 1e12, process: identity, handles: HANDLES });
    await seed(client, schema, 0, FEW);
    const few = await measureAll(client, schema, store);
    const memoryOfFew = await memoryOf(url, schema);
    await seed(client, schema, FEW, many);
    const lots = await measureAll(client, schema, store);
    const memory = await memoryOf(url, schema);
    await store.close();
    const costs = Object.keys(few).map((what) => ({
      what: `${what}, ${count(many)} sleeping runs`,
      pawl: `${figure(lots[what])} ms`,
      bare: `${figure(few[what])} ms with ${count(FEW)}`,
      ratio: `${(lots[what] / few[what]).toFixed(2)} x`,
      target: "<= 2 x",
      isMet: lots[what] / few[what] <= 2,
      note: `median of ${ROUNDS}, from the call to the answer`,
    }));
    const growth = {
      what: `memory of a worker process, ${count(many)} sleeping runs`,
      pawl: `${memory.toFixed(0)} MB`,
      bare: `${memoryOfFew.toFixed(0)} MB with ${count(FEW)}`,
      ratio: `${(memory / memoryOfFew).toFixed(2)} x`,
      target: `<= ${NOISE_MB} MB more`,
      isMet: memory - memoryOfFew <= NOISE_MB,
      note: "RSS after garbage collection, after 5 s of short runs beside them",
    };
    return [...costs, growth];
  });
}

async function seed(client, schema, from, to) {
  await client.query(`
    insert into "${schema}".runs (id, workflow, version, line, patch, state, trace_id, tags, priority, created_at, deadline, head, head_hash,
      wake_at, claims, claimed_head, codec)
    select 'asleep-' || i, 'sleeper', '1.0.0', '1.0', 0, 'waiting', 't', '{}', 0, 0, 9e12, 2, 'h', 5e12 + i, 0, 0, 'json'
      from generate_series(${from + 1}, ${to}) as i;
    insert into "${schema}".journal (run, seq, at, type, hash) select n, seq, 0, 'note', 'h' from "${schema}".runs, generate_series(0, 1) as seq
      where n not in (select run from "${schema}".journal);
    insert into "${schema}".waits (run, key, kind, name, due) select n, 'timer:sleep', 'timer', 'sleep', wake_at from "${schema}".runs
      where n not in (select run from "${schema}".waits)`);
  await client.query(`vacuum analyze "${schema}".runs, "${schema}".journal, "${schema}".waits`);
}

async function measureAll(client, schema, store) {
  const claim = () => store.claim({ worker: "w", handles: HANDLES, limit: 10, suspect: true });
  const put = (columns) =>
    client.query(`update "${schema}".runs set owner = null, state = 'waiting', ${columns} where id in
      (select 'asleep-' || i from generate_series(1, 10) as i)`);
  const asleep = "ready_at = null, wake_at = 5e12";
  const figures = {
    "a claim that finds nothing": await medianOf(claim),
    "a claim of 10 ready runs": await medianOf(claim, () => put("ready_at = 1, wake_at = null, claims = 0")),
    "a claim of 10 runs whose timers are due": await medianOf(claim, () =>
      put("ready_at = null, wake_at = 1, claims = 0"),
    ),
    "when the next timer is due": await medianOf(() => store.nextWake()),
  };
  await put(asleep);
  return figures;
}

/** Megabytes of a process that works beside them. */
async function memoryOf(url, schema) {
  const child = startChild(WORKER, { url, schema, inFlight: 16, steps: 2 }, ["--expose-gc", "--max-semi-space-size=2"]);
  await answerOf(child, null);
  await answerOf(child, { load: 5000 });
  const { bytes } = await answerOf(child, { memory: true });
  await answerOf(child, { close: true });
  return bytes / 1024 ** 2;
}

async function medianOf(call, before = () => {}) {
  const samples = [];
  for (let i = 0; i < ROUNDS; i++) {
    await before();
    samples.push(await elapsed(call));
  }
  return median(samples.slice(ROUNDS / 10));
}
