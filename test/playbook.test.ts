import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { parse } from "yaml";
import type { PlaybookAnswer } from "../src/cli/playbook-answer.ts";
import { loadPlaybook } from "../src/cli/playbook-file.ts";
import { PlaybookSession } from "../src/cli/playbook-session.ts";
import { Pawl } from "../src/client/pawl.ts";
import { nextOf } from "../src/core/next-of.ts";
import { readPlaybook } from "../src/flows/playbook.ts";
import { errorOf } from "./behaviour/harness.ts";

const RELEASE = fileURLToPath(new URL("./fixtures/mcp/release.yaml", import.meta.url));
const KEY = { key: "2.4.0" };
const BOT = { by: "bot" } as const;
const begin = { ...BOT, action: "begin" } as const;

const SAY = {
  next: () => "next",
  begin: (step: string) => `begin ${step}`,
  done: (step: string) => `done ${step}`,
  fail: (step: string) => `fail ${step}`,
  approve: (id: string) => `approve ${id}`,
  resolve: (run: string) => `resolve ${run}`,
};

interface Desk {
  readonly folder: string;
  readonly file: string;
  readonly url: string;
  readonly session: PlaybookSession;
  start(key?: string): Promise<PlaybookAnswer>;
  /** Changes the playbook's text. */
  edit(change: (text: string) => string): void;
  done(step: string, ...names: string[]): Promise<PlaybookAnswer>;
  /** What somebody does who has nothing to do with the work. */
  act<T>(body: (pawl: Pawl) => Promise<T>): Promise<T>;
}

function deskOf(store: string): Desk {
  const folder = mkdtempSync(join(tmpdir(), "pawl-playbook-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
  const file = join(folder, "release.yaml");
  cpSync(RELEASE, file);
  const url = `${store}:${join(folder, "store")}`;
  const session = new PlaybookSession(url, () => SAY);
  return {
    folder,
    file,
    url,
    session,
    start: async (key = KEY.key) => session.start(await loadPlaybook(file), { ...BOT, key, input: { of: key } }),
    edit: (change) => writeFileSync(file, change(readFileSync(file, "utf8"))),
    async done(step, ...names) {
      await session.report(KEY, step, begin);
      for (const name of names) writeFileSync(join(folder, name), `${name}\n`);
      const outputs = Object.fromEntries(names.map((name) => [name, join(folder, name)]));
      return session.report(KEY, step, { ...BOT, action: "done", outputs });
    },
    async act(body) {
      const pawl = await Pawl.open(url);
      return body(pawl).finally(() => pawl.close());
    },
  };
}

describe.each(["file", "sqlite"])("a playbook on %s", (store) => {
  it("S0-2 S0-17 S2-1 is worked through in its order, with its files and its gate, and nothing else", async () => {
    const ports = [vi.spyOn(net.Server.prototype, "listen"), vi.spyOn(net.Socket.prototype, "connect")];
    onTestFinished(() => void ports.forEach((port) => void port.mockRestore()));
    const { folder, session, start, done, act } = deskOf(store);
    const started = await start();
    expect(started).toMatchObject({ action: "do", step: "draft.collect", begun_by: null, input: { of: "2.4.0" } });
    expect(await start()).toEqual(started);
    const early = [
      ["draft.write", begin],
      ["draft.collect", { ...BOT, action: "done", outputs: { "changes.md": RELEASE } }],
      ["draft.collect", { ...BOT, action: "fail", reason: "no time" }],
    ] as const;
    for (const [step, report] of early)
      expect(await errorOf(session.report(KEY, step, report))).toMatchObject({ code: "invalid_argument" });
    expect(await session.look(KEY)).toEqual(started);

    await session.report(KEY, "draft.collect", begin);
    const without = session.report(KEY, "draft.collect", { ...BOT, action: "done" });
    expect(await errorOf(without)).toMatchObject({
      message: expect.stringContaining('its output "changes.md" is missing'),
      fields: { next: { action: "do", step: "draft.collect" } },
    });
    await done("draft.collect", "changes.md");
    expect(await errorOf(session.report(KEY, "draft.collect", begin))).toMatchObject({
      message: expect.stringContaining('it waits for "draft.write"'),
    });
    const waiting = await done("draft.write", "notes.md", "summary.txt");
    expect(waiting).toMatchObject({ action: "wait", step: "review", approvals: [{ name: "review" }] });
    expect(await errorOf(session.report(KEY, "publish", begin))).toMatchObject({ code: "invalid_argument" });

    const [{ id } = { id: "" }] = waiting.approvals;
    const own = act((pawl) => pawl.approvals.decide(id, { decision: "approved", by: "bot", roles: ["editor"] }));
    expect(await errorOf(own)).toMatchObject({ code: "approval_mismatch", fields: { reason: "wrong_role" } });
    const listed = await act((pawl) => pawl.approvals.list({ by: "bot", roles: ["editor"] }));
    expect(listed.approvals).toEqual([]);
    await act((pawl) => pawl.approvals.decide(id, { decision: "approved", by: "ann" }));
    const next = await session.look(KEY);
    expect(next).toMatchObject({ action: "do", step: "publish" });
    expect(nextOf(await act((pawl) => pawl.get(next.run).document()))).toMatchObject({ action: "do", step: null });
    expect(await done("publish", "link.txt")).toMatchObject({ action: "nothing", status: "done" });
    if (store === "file") expect(readdirSync(join(folder, "store", "runs"))).toEqual([next.run]);
    for (const port of ports) expect(port).not.toHaveBeenCalled();
  });

  it("S0-15 S0-24 what has failed, and a file that was changed, wait for a person", async () => {
    const { session, start, done, act } = deskOf(store);
    const { run } = await start();
    await session.report(KEY, "draft.collect", begin);
    const failed = await session.report(KEY, "draft.collect", { ...BOT, action: "fail", reason: "no access" });
    expect(failed).toMatchObject({
      action: "decide",
      blocked: { error: "no access", choices: ["retry", "skip", "abort"] },
    });
    expect(await errorOf(session.report(KEY, "draft.collect", begin))).toMatchObject({ code: "invalid_argument" });
    await act((pawl) => pawl.resolve(run, "retry"));
    const after = await done("draft.collect", "changes.md");
    writeFileSync(after.files[0]?.path ?? "", "something else");
    const lost = await session.report(KEY, "draft.write", begin);
    expect(lost).toMatchObject({
      action: "decide",
      blocked: {
        at: "draft.write",
        error: expect.stringContaining("was changed"),
        choices: ["rerun", "retry", "abort"],
      },
    });
    await act((pawl) => pawl.resolve(run, "rerun"));
    expect(await session.look(KEY)).toMatchObject({ action: "do", step: "draft.collect", begun_by: null });
    expect(await done("draft.collect", "changes.md")).toMatchObject({ action: "do", step: "draft.write" });
  });
});

it("S2-1 S0-24 an approval is about the files that were there: what is done again is asked about again", async () => {
  const { session, start, done, act } = deskOf("file");
  const { run } = await start();
  const approve = async ({ approvals: [open] }: PlaybookAnswer) => {
    await act((pawl) => pawl.approvals.decide(open?.id ?? "", { decision: "approved", by: "ann" }));
    return session.look(KEY);
  };
  await done("draft.collect", "changes.md");
  const approved = await approve(await done("draft.write", "notes.md", "summary.txt"));
  expect(approved).toMatchObject({ action: "do", step: "publish" });
  writeFileSync(approved.files.find(({ file }) => file === "notes.md")?.path ?? "", "what nobody has seen");
  expect(await session.report(KEY, "publish", begin)).toMatchObject({ action: "decide" });
  await act((pawl) => pawl.resolve(run, "rerun"));
  const again = await done("draft.write", "notes.md", "summary.txt");
  expect(again).toMatchObject({ action: "wait", step: "review", approvals: [{ name: "review" }] });
  expect(await approve(again)).toMatchObject({ action: "do", step: "publish" });
});

describe("a playbook's file", () => {
  const withStep = (text: string) =>
    text.replace("  - name: review", "  - name: extra\n    instructions: More.\n  - name: review");

  it("S0-48 that has changed without a new version is refused, with the choices", async () => {
    const { session, start, edit, done } = deskOf("file");
    await start();
    const before = await done("draft.collect", "changes.md");
    edit(withStep);
    const refusal = {
      code: "definition_changed",
      message: expect.stringContaining("definition changed, version did not"),
    };
    expect(await errorOf(session.look(KEY))).toMatchObject({
      ...refusal,
      fields: { choices: ["restore", "version", "cancel"] },
    });
    expect(await errorOf(session.report(KEY, "draft.write", begin))).toMatchObject(refusal);
    expect(await errorOf(start("2.5.0"))).toMatchObject({ code: "definition_changed" });
    edit((text) => text.replace("1.0.0", "1.0.1"));
    expect(await errorOf(session.look(KEY))).toMatchObject({
      message: expect.stringContaining("changes more than words"),
    });
    edit((text) => text.replace("1.0.1", "1.1.0"));
    const own = await session.look(KEY);
    expect(own).toEqual({ ...before, warnings: [expect.stringContaining("goes on as 1.0.0")] });
    expect(own.progress.map(({ step }) => step)).not.toContain("extra");
    expect((await start("2.5.0")).progress.map(({ step }) => step)).toContain("extra");
  });

  it("S0-46 of a patch changes words, of the steps that have not come yet", async () => {
    const { session, start, edit, done, act } = deskOf("file");
    const { run } = await start();
    edit((text) => text.replace("1.0.0", "1.0.1").replace("Write the notes.", "Write the notes in English."));
    expect(await done("draft.collect", "changes.md")).toMatchObject({
      version: "1.0.1",
      instructions: "Write the notes in English.",
    });
    const journal = await act((pawl) => pawl.get(run).journal());
    expect(journal.map(({ type }) => type)).toContain("version.changed");
    edit((text) => text.replace("1.0.1", "1.0.0"));
    expect(await session.look(KEY)).toMatchObject({ version: "1.0.1", step: "draft.write" });
  });

  it("S0-16 need not be there: a run carries it, and the same answer comes from every process", async () => {
    const { session, start, file, url } = deskOf("file");
    const started = await start();
    rmSync(file);
    const warnings = [expect.stringContaining("is not there any more")];
    expect(await session.look({})).toEqual({ ...started, warnings });
    expect(await new PlaybookSession(url, () => SAY).look({ run: started.run })).toEqual({ ...started, warnings });
  });

  it("is as the guide shows it", () => {
    const guide = readFileSync(new URL("../docs/guides/playbooks.md", import.meta.url), "utf8");
    const [, text = ""] = /```yaml\n([\s\S]*?)```/.exec(guide) ?? [];
    expect(readPlaybook(parse(text), "guide").phases.map(({ name }) => name)).toEqual([
      "understand",
      "fix",
      "review",
      "merge",
    ]);
  });

  it("says what is wrong with it, and which run is meant", async () => {
    const { session, start, edit, file } = deskOf("file");
    expect(await errorOf(session.look({}))).toMatchObject({ code: "storage_unavailable" });
    await start();
    await start("2.5.0");
    expect(await errorOf(session.look({}))).toMatchObject({ message: expect.stringContaining("2 runs are open") });
    expect(await errorOf(session.look({ key: "none" }))).toMatchObject({ code: "run_not_found" });
    edit((text) => `${text}\n  - name: [`);
    expect(await errorOf(loadPlaybook(file))).toMatchObject({
      code: "invalid_playbook",
      message: expect.stringMatching(/is not YAML: .* at line \d+/),
    });
    expect(await errorOf(loadPlaybook(`${file}.txt`))).toMatchObject({ code: "invalid_playbook" });
    const plain = '{"name":"n","version":"1.0.0","phases":[{"name":"a","instructions":"do"}]}';
    writeFileSync(`${file}.json`, `\uFEFF${plain}`);
    expect((await loadPlaybook(`${file}.json`)).playbook).toMatchObject({ name: "n" });
    writeFileSync(`${file}.json`, plain.replace('"name":"n"', '"name":"n","name":"m"'));
    expect(await errorOf(loadPlaybook(`${file}.json`))).toMatchObject({
      message: expect.stringContaining('"name" is there twice'),
    });
  });
});
