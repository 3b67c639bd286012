// Plays the scene of a frozen store, with every feature in use, and then waits to be killed: some of its runs are in the middle of a step.
import { loadWorkflows } from "../../dist/cli/load.js";
import { onMachine } from "../../dist/client/machine.js";
import { Pawl } from "../../dist/index.js";

const [, , url, file] = process.argv;
const workflows = await loadWorkflows([file]);
// It says that it is on a machine of its own, so that whoever reads the store finds it dead by its lease, wherever that is.
const identity = () => ({ pid: 4711, startedAt: "1", boot: "golden", pidNamespace: null });
const pawl = await Pawl.open(url, onMachine({ workflows, name: "golden", retention: false }, { identity }));
const store = pawl.store.kind;
// The default deadline would end what waits before the next release reads it.
const deadline = "36500 days";
const start = (name, input, options) => {
  const workflow = workflows.find((one) => one.name === `golden-${name}`);
  return pawl.start(workflow, input, { deadline, ...options });
};
const until = async (condition) => {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20));
};
const isIn = (run, state) => until(async () => (await run.status()).state === state);
const hasBegun = (run, step) =>
  until(async () => (await run.journal()).some(({ type, key }) => type === "step.started" && key === step));

async function ended() {
  const done = await start(
    "everything",
    { label: "done", at: new Date(0) },
    { key: "done", tags: ["golden"], priority: 5 },
  );
  await done.signal("go", { ok: true });
  await done.result();
  const failed = await start("fails", undefined, { key: "fails" });
  await failed.result().catch(() => {});
  await (await pawl.retry(failed.id)).result().catch(() => {});
  await (await pawl.fork(done.id, { at: "flaky" })).signal("go", { ok: "forked" });
  await (await start("loops", 0, { key: "loops" })).result();
  const cancelled = await start("sleeps", undefined, { key: "cancelled" });
  await isIn(cancelled, "waiting");
  await cancelled.cancel({ reason: "not needed any more" });
  const booked = await start("booked", { store }, { key: "booked" });
  await booked.signal("go", "now");
  await booked.result();
}

async function parked() {
  const runs = [await start("asks", undefined, { key: "parked" }), await start("asks", undefined, { key: "decided" })];
  await Promise.all(runs.map((run) => hasBegun(run, "risky")));
  // Others take this process for dead. It finds out, and the steps that were under way have to be asked about.
  await pawl.store.fence({ workers: (await pawl.workers()).map(({ id }) => id) });
  await Promise.all(runs.map((run) => isIn(run, "parked")));
}

async function waiting() {
  await start("everything", { label: "waiting", at: new Date(0) }, { key: "waiting" });
  await start("sleeps", undefined, { key: "sleeping" });
  await start("booked", { store }, { key: "booking" });
  await start("parent", undefined, { key: "parent" });
  await start("retries", undefined, { key: "retrying" });
  await start("large", "page ".repeat(2000), { key: "large" });
  await (await start("letters", undefined, { key: "letters" })).signal("one", 1);
  await (await start("generations", 0, { key: "generations" })).signal("next", 1);
  for (const n of [1, 2]) await start("rated", n, { key: `rated-${n}` });
  await start("doubles", 21, { key: "delayed", delay: "3650 days" });
  for (const n of [1, 2]) await start("doubles", n, { debounce: { key: "burst", wait: "3650 days" } });
}

async function scheduled() {
  const ticks = workflows.find(({ name }) => name === "golden-ticks");
  await pawl.schedule("new-year", ticks, {
    cron: "0 0 1 1 *",
    zone: "Europe/Paris",
    overlap: "allow",
    misfire: "catchUp",
  });
  await pawl.schedule("seconds", ticks, { every: "1s", overlap: "skip" });
  await pawl.schedule("paused", ticks, { cron: "@daily" });
  await until(async () => (await pawl.schedules()).some(({ lastSlot }) => lastSlot !== null));
  for (const name of ["seconds", "paused"]) await pawl.pauseSchedule(name);
}

async function interrupted() {
  for (const key of ["held", "unheard"]) await hasBegun(await start("held", undefined, { key }), "held");
  await hasBegun(await start("limited", { account: "a", isHeld: true }, { key: "first-in-line" }), "work");
  for (const n of [1, 2]) await start("limited", { account: "a", isHeld: false }, { key: `in-line-${n}` });
}

await ended();
await parked();
await scheduled();
await waiting();
// Runs that are in the middle of a step are never idle, so these come last.
await pawl.idle();
await interrupted();
process.send("ready");
