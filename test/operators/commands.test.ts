// The commands of operators, as they are typed.
import { expect, it } from "vitest";
import { errorOf, json, pawl, project } from "../fixtures/cli/command.ts";
import { seed } from "../fixtures/cli/seed.ts";

interface Page {
  readonly runs: readonly { readonly id: string }[];
}

it("S2-10 Q20 pawl hold, holds, release, purge and audit", async () => {
  const folder = project();
  await seed(folder, { o1: [], o2: [] });
  const held = await pawl(folder, "hold", "o1", "--reason", "complaint 4711", "--by", "ada");
  expect(held).toMatchObject({ code: 0, stdout: "Run o1 is held. End it with: pawl release o1\n" });
  expect((await pawl(folder, "hold", "o1", "--reason", "mine", "--by", "bob")).stdout).toContain(
    "was held before: by ada",
  );
  expect((await pawl(folder, "holds")).stdout).toMatch(/o1 .* ada +complaint 4711/);
  const ages = ["--succeeded", "0s", "--failed", "0s"];
  expect(await json(folder, "purge", ...ages, "--dry-run")).toEqual({ purged: 0, matched: 1, dryRun: true });
  expect((await pawl(folder, "purge", ...ages)).stdout).toBe("1 run deleted.\n");
  expect((await json<Page>(folder, "ls")).runs.map(({ id }) => id)).toEqual(["o1"]);
  expect((await pawl(folder, "release", "o1")).stdout).toBe("Run o1 is no longer held.\n");
  expect((await pawl(folder, "audit")).stdout).toMatch(
    /1 .* ada +run\.hold +o1 +begun +pawl hold on .*\n2 .* ada +run\.hold +o1 +done /,
  );
  expect((await pawl(folder, "audit", "--check")).stdout).toMatch(/^\d records, all as they were written\.\n$/);
  expect(await json(folder, "audit", "--after", "1", "--limit", "1")).toMatchObject({ records: [{ n: 2 }], cursor: 2 });
});

it("S2-10 pawl cancel and retry with --where; ls with --count, --search and --owner", async () => {
  const folder = project();
  await seed(folder, { o1: ["fail"], o2: ["fail"], x3: [] });
  const retry = ["retry", "--where", "status=failed,search=o"];
  expect((await pawl(folder, ...retry, "--dry-run")).stdout).toBe("2 runs would be retried. Nothing was changed.\n");
  expect(await json(folder, ...retry)).toMatchObject({ matched: 2, done: 2, already: 0, failed: [] });
  expect((await pawl(folder, ...retry)).stdout).toBe("0 of 2 runs were retried; 2 had been before, or had ended.\n");
  expect((await json<Page>(folder, "ls", "--search", "x")).runs.map(({ id }) => id)).toEqual(["x3"]);
  expect(await json(folder, "ls", "--count")).toMatchObject({ counts: { failed: 2, running: 2, succeeded: 1 } });
  expect((await pawl(folder, "ls", "--owner", "nobody")).stderr).toContain("No run fits.");
  const cancel = await json(folder, "cancel", "--where", "workflow=order,status=running", "--reason", "over");
  expect(cancel).toMatchObject({ matched: 2, done: 2 });
});

it("Q10 --where knows its keys and nothing else, and one run or many are meant", async () => {
  const folder = project();
  await seed(folder, { o1: [] });
  for (const where of [
    "",
    "status",
    "status=",
    "n=1",
    "status=failed,status=waiting",
    "status=nothing",
    "1=1 or id=o1",
  ]) {
    const error = errorOf(await pawl(folder, "cancel", "--where", where, "--dry-run", "--json"));
    expect(error).toMatchObject({ code: "invalid_argument", message: expect.stringContaining("--where") });
  }
  for (const args of [["cancel"], ["cancel", "o1", "--where", "status=failed"], ["retry", "o1", "--dry-run"]])
    expect((await pawl(folder, ...args)).code).toBe(2);
});
