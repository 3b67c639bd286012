// Steps that save on their way, crashed at every point.
import { type Context, workflow } from "pawl";
import { crashEverywhere, recorder } from "pawl/testing";
import { expect, it } from "vitest";

interface Session {
  readonly read: readonly string[];
}

/** Reads three pages, one of which fails at first, and remembers which it has. */
function reading(outside: ReturnType<typeof recorder>, keeps: boolean) {
  const begins: number[] = [];
  const pages = workflow("pages", async (ctx: Context) => {
    const { read } = await ctx.step(
      "read",
      async ({ save, saved, attempt, key }): Promise<Session> => {
        let session = (keeps ? (saved as Session | undefined) : undefined) ?? { read: [] };
        begins.push(session.read.length);
        for (const page of ["a", "b", "c"].slice(session.read.length)) {
          outside.record("read", { page }, `${key} ${page}`);
          session = { read: [...session.read, page] };
          await save(session);
          if (page === "b" && attempt === 1) throw new Error("busy");
        }
        return session;
      },
      { retry: { max: 2, base: 10, jitter: false, on: "any" } },
    );
    await ctx.sleep("1h");
    return ctx.step("report", async ({ save, saved }) => {
      expect(saved === undefined || saved === "half").toBe(true);
      await save("half");
      outside.record("report", { read }, "report");
      return read;
    });
  });
  return { pages, begins };
}

it("I5 I6 P13 P17 a workflow with steps that save ends alike wherever it crashes, and goes on from every checkpoint", async () => {
  const outside = recorder();
  const { pages, begins } = reading(outside, true);
  const report = await crashEverywhere(pages, undefined, { recorder: outside });
  expect(report.toString()).toMatch(/^ok: /);
  expect(report.isComplete).toBe(true);
  expect(report.outcome).toContain("[ 'a', 'b', 'c' ]");
  // Four commits of checkpoints, each with a point before and one behind it.
  const labels = report.points.map(({ label }) => label);
  expect(labels.filter((label) => label.includes('step "read" saved'))).toHaveLength(6);
  expect(labels.filter((label) => label.includes('step "report" saved'))).toHaveLength(2);
  expect(new Set(begins)).toEqual(new Set([0, 1, 2, 3]));
});

it("VA1 how often a step saves is its own affair: two undisturbed histories may differ in that", async () => {
  let times = 0;
  const odd = workflow("odd", async (ctx: Context) =>
    ctx.step("s", async ({ save }) => {
      times = 3 - times;
      for (let n = 0; n <= times; n++) await save(n);
      return "done";
    }),
  );
  const report = await crashEverywhere(odd, undefined);
  expect(report.toString()).toMatch(/^ok: /);
});
