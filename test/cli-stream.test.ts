import { expect, it } from "vitest";
import type { StreamEvent } from "../src/index.ts";
import { begin, errorOf, pawl, project } from "./fixtures/cli/command.ts";

const STORY = `
  import { RetryableError, workflow } from "pawl";
  export const story = workflow("story", async (ctx) => {
    await ctx.step("write", ({ emit, attempt }) => {
      emit("Once ");
      emit("upon a time\\n");
      emit({ tokens: attempt });
      if (attempt === 1) throw new RetryableError("again", { retryAfter: 1 });
      emit("The end");
    });
    await ctx.step("print", ({ emit }) => emit("printed"));
  });
  export const endless = workflow("endless", async (ctx) => {
    await ctx.step("write", async ({ emit }) => {
      emit("first line\\n");
      await new Promise(() => setInterval(() => {}, 1000));
    });
  });`;

function storyProject(): string {
  return project({ "story.ts": STORY });
}

it("X-14 pawl stream prints texts raw and other values as JSON, of the last attempt alone", async () => {
  const folder = storyProject();
  expect((await pawl(folder, "run", "story.ts", "story", "--id", "s1")).code).toBe(0);
  expect(await pawl(folder, "stream", "s1")).toEqual({
    code: 0,
    stdout: 'Once upon a time\n{"tokens":2}\nThe end\nprinted\n',
    stderr: "",
  });
  expect((await pawl(folder, "stream", "s1", "--key", "print")).stdout).toBe("printed\n");
});

it("X-14 X-19 pawl stream --json prints an event a line, and --after goes on behind one", async () => {
  const folder = storyProject();
  await pawl(folder, "run", "story.ts", "story", "--id", "s1");
  const { stdout } = await pawl(folder, "stream", "s1", "--json");
  const lines = stdout.trimEnd().split("\n");
  const events = lines.map((line) => JSON.parse(line) as StreamEvent);
  expect(events.map(({ type, key, attempt }) => `${type} ${key} ${attempt}`)).toEqual([
    ...Array(4).fill("chunk write 2"),
    "end write 2",
    "chunk print 1",
    "end print 1",
  ]);
  expect(events[2]).toMatchObject({ n: 2, value: { tokens: 2 } });
  const rest = await pawl(folder, "stream", "s1", "--json", "--after", events[2]?.cursor ?? "");
  expect(rest.stdout).toBe(`${lines.slice(3).join("\n")}\n`);
  const refused = await pawl(folder, "stream", "s1", "--json", "--after", "nonsense");
  expect(errorOf(refused)).toMatchObject({ code: "invalid_argument" });
});

it("X-14 pawl stream prints while the run goes on; interrupted, it says how to go on", async () => {
  const folder = storyProject();
  const running = begin(folder, ["run", "story.ts", "endless", "--id", "e1"]);
  await running.line(/run e1/);
  const stream = begin(folder, ["stream", "e1"]);
  await stream.line(/^first line$/);
  stream.kill("SIGINT");
  const { code, stdout, stderr } = await stream.ended;
  expect([code, stdout]).toEqual([130, "first line\n"]);
  const [, cursor = ""] = /^Go on with: pawl stream e1 --after (\S+)\n$/.exec(stderr) ?? [];
  const rejoined = begin(folder, ["stream", "e1", "--after", cursor]);
  expect((await pawl(folder, "cancel", "e1")).code).toBe(0);
  expect(await rejoined.ended).toMatchObject({
    code: 0,
    stdout: "",
    stderr: "What came of write, attempt 1, is void.\n",
  });
  await running.ended;
});
