// The process whose writes are recorded. It notes what the store has acknowledged, after the fact and before anything else, in a file whose
// writes are recorded with the rest; then it ends as by a power cut, without closing anything.
//
//   node worker.mjs FOLDER DURABILITY ROUNDS
import { openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { Pawl, sqliteStore } from "../../dist/index.js";
import { finish, plan, workflows } from "./work.mjs";

const [folder, durability, rounds] = process.argv.slice(2);
const acks = openSync(join(folder, "acks"), "a");

const acknowledge = (fact) => writeSync(acks, `${JSON.stringify(fact)}\n`);

/** The store, with every acknowledgement noted before anybody else hears of it. */
function noting(store) {
  const commit = async (request) => {
    const verdicts = await store.commit(request);
    for (const [i, { kind }] of verdicts.entries()) if (kind === "applied") noteCommit(request.runs[i]);
    return verdicts;
  };
  const deliver = async (message) => {
    const delivery = await store.deliver(message);
    if (delivery === "delivered") acknowledge({ run: message.to, message: message.id });
    return delivery;
  };
  return new Proxy(store, {
    get(target, name) {
      if (name === "commit") return commit;
      if (name === "deliver") return deliver;
      const value = target[name];
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

function noteCommit({ run, head, entries, children = [] }) {
  const steps = entries.filter(({ type }) => type === "step.completed").map(({ key }) => key);
  acknowledge({ run, head: head + entries.length, steps });
  for (const child of children) acknowledge({ run: child.run, head: 1, steps: [] });
}

const store = noting(sqliteStore(join(folder, "pawl.db"), { durability }));
const pawl = await Pawl.open(store, { workflows, guard: "off", handleSignals: false });
const runs = plan(Number(rounds));
// A few at a time, so that there are many commits, with one run or many in each.
for (let i = 0; i < runs.length; i += 4) await finish(pawl, runs.slice(i, i + 4));
process.kill(process.pid, "SIGKILL");
