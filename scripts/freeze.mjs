// Freezes the journals and the schema of this release under test/golden/VERSION: run once, when a release is cut (I23).
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { loadWorkflows } from "../dist/cli/load.js";
import { Pawl } from "../dist/index.js";

const { version } = JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8"));
const golden = new URL(`../test/golden/${version}/`, import.meta.url);
const workflows = await loadWorkflows([fileURLToPath(new URL("workflows.ts", golden))]);
const named = (name) => workflows.find((workflow) => workflow.name === `golden-${name}`);

const folder = await mkdtemp(join(tmpdir(), "pawl-golden-"));
const pawl = await Pawl.open(join(folder, "store.db"), { workflows });
// The default deadline would end the waiting runs before the next release reads them.
const deadline = "36500 days";
const input = (label) => ({ label, at: new Date(0) });
const done = await pawl.start(named("everything"), input("done"), { key: "done", tags: ["golden"], deadline });
await done.signal("go", { ok: true });
await done.result();
await pawl.run(named("fails"), undefined, { key: "fails" }).catch(() => {});
await pawl.run(named("loops"), 0, { key: "loops" });
await pawl.start(named("everything"), input("waiting"), { key: "waiting", deadline });
await pawl.start(named("sleeps"), undefined, { key: "sleeping", deadline });
await pawl.idle();

const { runs } = await pawl.list();
const journals = [];
for (const { id, key, workflow } of runs) journals.push({ id, key, workflow, journal: await pawl.store.journal(id) });
await writeFile(new URL("journals.json", golden), `${JSON.stringify(journals, null, 1)}\n`);
await rm(new URL("store.db", golden), { force: true });
await pawl.store.backup(fileURLToPath(new URL("store.db", golden)));
await pawl.close();
await rm(folder, { recursive: true });
