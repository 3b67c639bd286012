// The check of detectors, inside one process and with a fresh process for each question.
import { join } from "node:path";
import { comment, gitCommit, onceByFile } from "pawl/guards";
import { checkDetector, type DetectorReport, detectorTest, recorder } from "pawl/testing";
import { describe, expect, it, vi } from "vitest";
import { hosted, project } from "../fixtures/cli/command.ts";
import { tempFolder } from "./lost-record.ts";
import { Repository } from "./repository.ts";

// Each detector takes five processes.
vi.setConfig({ testTimeout: 120_000 });

const kinds = ({ failures }: Pick<DetectorReport, "failures">) => failures.map(({ kind }) => kind);

/** A bank that keeps its charges, and knows them by their keys. */
function newBank() {
  const charges = new Map<string, string>();
  const outside = recorder();
  return {
    outside,
    charge(key: string) {
      outside.record("charge", { key });
      charges.set(key, `paid ${key}`);
      return `paid ${key}`;
    },
    find: (key: string) => charges.get(key),
  };
}

function asDetected<T>(value: T | undefined) {
  return value === undefined ? { found: false as const } : { found: true as const, value };
}

describe("checkDetector", () => {
  it("S0-36 a detector that only looks, and finds what was done, passes", async () => {
    const bank = newBank();
    const effect = () => ({
      do: ({ key }: { key: string }) => bank.charge(key),
      detect: ({ key }: { key: string }) => asDetected(bank.find(key)),
    });
    const report = await checkDetector({ effect, recorder: bank.outside });
    expect({ ...report, text: report.toString() }).toMatchObject({ ok: true, failures: [], text: /only looks/ });
  });

  it("S0-36 one that writes is told so, by the recorder and by what can be observed, once", async () => {
    const bank = newBank();
    let looks = 0;
    const effect = () => ({
      do: ({ key }: { key: string }) => bank.charge(key),
      detect({ key }: { key: string }) {
        looks += 1;
        bank.outside.record("looked");
        return asDetected(bank.find(key));
      },
    });
    const report = await checkDetector({ effect, recorder: bank.outside, observe: () => looks });
    expect(kinds(report)).toEqual(["wrote", "wrote"]);
    expect(report.toString()).toContain('The detector wrote: "looked" undefined.');
    expect(report.toString()).toContain("what `observe` sees");
  });

  it("S0-36 one that keeps what it knows in its closure does not find what another one has done", async () => {
    const bank = newBank();
    const effect = () => {
      const known = new Map<string, string>();
      return {
        do({ key }: { key: string }) {
          known.set(key, bank.charge(key));
          return known.get(key);
        },
        detect: ({ key }: { key: string }) => asDetected(known.get(key)),
      };
    };
    expect(kinds(await checkDetector({ effect, recorder: bank.outside }))).toEqual(["not_found"]);
  });

  it("S0-36 one that changes its mind, finds what was not done, returns another value or fails is told so", async () => {
    const bank = newBank();
    let looks = 0;
    const act = { do: ({ key }: { key: string }) => bank.charge(key) };
    const check = (detect: () => ReturnType<typeof asDetected<string>>) =>
      checkDetector({ effect: () => ({ ...act, detect }) });
    expect(kinds(await check(() => asDetected(looks++ % 2 === 0 ? undefined : "paid")))).toEqual([
      "unsteady",
      "not_found",
    ]);
    expect(kinds(await check(() => asDetected("paid run-1/effect")))).toEqual(["found_too_early"]);
    expect(kinds(await check(() => asDetected(looks++ < 6 ? undefined : "other")))).toEqual(["other_value"]);
    const failing = await check(() => {
      throw new Error("404");
    });
    expect(failing.toString()).toContain("threw: The detector failed: 404.");
    await expect(checkDetector({ effect: () => act })).rejects.toMatchObject({ code: "invalid_argument" });
  });

  it("S0-36 the detectors of the ready-made guards pass", async () => {
    const repository = new Repository();
    repository.commit("Begin");
    repository.write("page.html", "v1");
    const look = () => [repository.head, repository.git("status", "--porcelain"), repository.git("stash", "list")];
    const path = join(tempFolder(), "result.json");
    const comments: string[] = [];
    const cases = {
      commit: { effect: () => repository.publish(), observe: look },
      once: { effect: () => onceByFile(path, () => 42) },
      comment: {
        effect: () => comment({ list: () => comments, post: (text) => comments.push(text) && text, text: "Hi" }),
        observe: () => comments,
      },
    };
    for (const one of [cases.commit, cases.once, cases.comment])
      expect((await checkDetector<unknown>(one)).toString()).toContain("only looks");
    expect(gitCommit({ cwd: repository.cwd, message: "x" }).detect).toBeDefined();
    expect(detectorTest(cases.once)).toBe(cases.once);
  });
});

/** Its fakes remember in the folder that all its processes share, except where they should not. */
const CHECKS = `
  import { appendFileSync, existsSync, readFileSync } from "node:fs";
  import { join } from "node:path";
  import { detectorTest, recorder } from "pawl/testing";

  const outside = recorder();
  const memory = new Set<string>();
  const file = () => join(process.env["PAWL_TEST_FOLDER"] ?? ".", "charges.txt");
  const charges = () => (existsSync(file()) ? readFileSync(file(), "utf8") : "");
  const found = (is: boolean) => (is ? { found: true, value: "paid" } : { found: false });

  const charge = ({ key }: { key: string }) => {
    outside.record("charge", { key });
    memory.add(key);
    appendFileSync(file(), key + "\\n");
    return "paid";
  };

  export const sound = detectorTest({
    effect: () => ({ do: charge, detect: ({ key }) => found(outside.effects.some((one) => one.details.key === key)) }),
    key: "order-17",
    recorder: outside,
  });
  export const forgetful = detectorTest({
    effect: () => ({ do: charge, detect: ({ key }) => found(memory.has(key)) }),
    recorder: outside,
  });
  export const writing = detectorTest({
    effect: () => ({
      do: charge,
      detect({ key }) {
        const is = found(charges().includes(key));
        appendFileSync(file(), "looked\\n");
        return is;
      },
    }),
  });
`;

const BROKEN = `
  export const broken = {
    effect() {
      throw new Error("no such bank");
    },
  };
`;

describe("pawl test --detectors", () => {
  // The command itself needs no process of its own: whoever starts them, those that it asks are fresh ones.
  const check = (folder: string, ...args: string[]) => hosted(folder, ["test", "--detectors", ...args]);

  it("S0-36 asks twice before and after, each time in a fresh process: no writes, the same answer, nothing out of memory", async () => {
    const folder = project({ "checks.ts": CHECKS });
    const { code, stdout } = await check(folder, "checks.ts");
    expect(code).toBe(1);
    const [forgetful = "", sound, writing] = stdout.split(/(?=^\w+$)/m);
    expect(forgetful).toMatch(
      /^forgetful\n\n {2}failure {2}The detector does not find what was done\..*\n\n {2}1 failure\.\n/,
    );
    expect(sound).toBe("sound\n  No failure.\n\n");
    expect(writing).toContain("The detector wrote: the file charges.txt of the fakes.");
  });

  it("says what is wrong with a file, a name, or the choice of the test", async () => {
    const folder = project({ "checks.ts": CHECKS, "broken.ts": BROKEN, "empty.mjs": "export const nothing = 1;" });
    const broken = await check(folder, "broken.ts", "--json");
    expect([broken.code, broken.stderr]).toEqual([2, expect.stringContaining("no such bank")]);
    expect((await check(folder, "checks.ts", "nope")).stderr).toContain("it has: forgetful, sound, writing");
    expect((await check(folder, "empty.mjs")).stderr).toContain("exports no check of a detector; it has: none");
    const both = await check(folder, "--crash-everywhere", "checks.ts");
    expect([both.code, both.stderr]).toEqual([2, expect.stringContaining("one is possible at a time")]);
    expect((await hosted(folder, ["test", "checks.ts"])).code).toBe(2);
  });
});
