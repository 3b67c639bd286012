// Effects with a guard, and their twins without one, whose processes are killed between the outside call and its record. What stands for
// the outside world are files in a folder, a git repository and a database there.
import { execFileSync } from "node:child_process";
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { workflow } from "pawl";
import {
  comment,
  createIfAbsent,
  gitCommit,
  insertOnce,
  notifyOnce,
  onceByFile,
  repeatable,
  writeFile,
} from "pawl/guards";

/** A service whose items are the lines of a file. */
function service(folder, name) {
  const file = join(folder, `${name}.jsonl`);
  const all = () => (existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean).map(JSON.parse) : []);
  const add = (item) => {
    appendFileSync(file, `${JSON.stringify(item)}\n`);
    return item;
  };
  return { all, add, find: (key) => all().find((item) => item.key === key) };
}

/** Opened when it is used: a body that is replayed elsewhere must not need it. */
function database(folder) {
  const { DatabaseSync } = createRequire(import.meta.url)("@photostructure/sqlite");
  return { prepare: (text) => new DatabaseSync(join(folder, "shop.db")).prepare(text) };
}

const COMMIT = { message: "Publish", paths: ["page.html"] };

const GUARDED = {
  file: (folder) => writeFile(join(folder, "file.txt"), "line\n"),
  once: (folder) => onceByFile(join(folder, "once.json"), () => service(folder, "once").add({ done: true })),
  comment(folder) {
    const { all, add } = service(folder, "comment");
    return comment({ list: all, post: (body) => add({ body }), text: "Built." });
  },
  commit: (folder) => gitCommit({ ...COMMIT, cwd: join(folder, "commit") }),
  "commit-and-file": (folder) =>
    gitCommit({ ...COMMIT, cwd: join(folder, "commit-and-file"), resultFile: "../result.json" }),
  job(folder) {
    const { add, find } = service(folder, "job");
    return createIfAbsent({ find: () => find("nightly"), create: () => add({ key: "nightly" }) });
  },
  "job-with-lock": (folder) => {
    const { add, find } = service(folder, "job-with-lock");
    const lock = join(folder, "job.lock");
    return createIfAbsent({ find: () => find("nightly"), create: () => add({ key: "nightly" }), lock });
  },
  mail(folder) {
    const { add, find } = service(folder, "mail");
    return notifyOnce({ sent: find, send: (key) => add({ key }) });
  },
  row: (folder) => insertOnce({ db: database(folder), table: "bookings", keyColumn: "key", row: { room: 12 } }),
};

// The same without a guard. Each claims to be safe to repeat, or the engine would not repeat it.
const UNGUARDED = {
  file: (folder) => repeatable(() => appendFileSync(join(folder, "file.txt"), "line\n")),
  once: (folder) => repeatable(() => service(folder, "once").add({ done: true })),
  comment: (folder) => repeatable(() => service(folder, "comment").add({ body: "Built." })),
  commit: (folder) =>
    repeatable(() => {
      const git = (...args) => execFileSync("git", args, { cwd: join(folder, "commit") });
      appendFileSync(join(folder, "commit", "page.html"), "more\n");
      git("add", "page.html");
      git("commit", "--quiet", "-m", "Publish");
    }),
  job: (folder) => repeatable(() => service(folder, "job").add({ key: "nightly" })),
  mail: (folder) => repeatable(({ key }) => service(folder, "mail").add({ key })),
  row: (folder) => repeatable(() => void database(folder).prepare("insert into bookings (room) values (12)").run()),
};

/** After how many effects this process dies; none of them is recorded before. 0: it lives. */
export const fate = { after: 0 };

function made(value) {
  if (fate.after === 0) return value;
  if (--fate.after === 0) process.kill(process.pid, "SIGKILL");
  return new Promise(() => {});
}

export const effect = workflow("effect", async (ctx, { name, isGuarded, folder }) => {
  const spec = (isGuarded ? GUARDED : UNGUARDED)[name](folder);
  return await ctx.effect("effect", { ...spec, do: async (info) => made(await spec.do(info)) });
});
