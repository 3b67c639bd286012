// Example 07 in the situation that it is named for: killed after step 2 of 4, once call by call and once from its checkpoint.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished, vi } from "vitest";
import { guide, newSession } from "../../examples/07-planning-agent/guide.ts";
import { chosenModel } from "../../examples/07-planning-agent/model.ts";
import { script } from "../../examples/07-planning-agent/script.ts";
import { tools } from "../../examples/07-planning-agent/tools.ts";
import { type LedgerLine, wayBack } from "../../examples/fakes.ts";
import { agent, scriptedModel } from "../../src/agent/index.ts";
import { errorOf, gate, openWorld } from "./harness.ts";

function ledger(): () => string[] {
  const folder = mkdtempSync(join(tmpdir(), "pawl-example-"));
  const file = join(folder, "ledger.jsonl");
  vi.stubEnv("LEDGER", file);
  vi.stubEnv("FAKES_LATENCY_MS", "0");
  onTestFinished(() => {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
    rmSync(folder, { recursive: true, force: true });
  });
  const lines = () => readFileSync(file, "utf8").split("\n").filter(Boolean);
  return () => lines().map((line) => (JSON.parse(line) as LedgerLine).action);
}

it.each(["snapshot", "perCall"] as const)(
  "D-2 S1-2 example 07, durability %s, is killed after step 2 of 4, and a new process finishes",
  async (durability) => {
    const asked = ledger();
    const world = await openWorld("memory");
    const hang = gate();
    // It never hears whether the page is in order.
    vi.spyOn(wayBack, "travel").mockImplementation(async ({ action }) =>
      action === "check" ? hang.passed : undefined,
    );
    const model = scriptedModel(script);
    const prompt = ({ topic }: { readonly topic: string }) => guide.bind({ topic });
    const planner = agent({ name: "planner", model, tools, session: newSession, durability, prompt });
    const first = await world.open([planner]);
    await first.start(planner, { topic: "herons" }, { id: "r" });
    await world.settle();
    const before = model.requests.length;
    expect(asked()).toEqual(["search", "search", "page", "check"]);

    vi.restoreAllMocks();
    const second = await world.restart([planner]);
    expect(await second.get("r").result()).toBe("The field guide to herons is published.");
    expect(asked()).toEqual(["search", "search", "page", "check", "check", "publish"]);
    const resumed = model.requests[before]?.prompt ?? [];
    const told = String(resumed[0]?.content);
    if (durability === "snapshot") {
      expect(told).toMatch(/✓ 1\. Gather what is known\n- ✓ 2\. Write the page\n\nRemaining:\n- 3\. Check the page/);
      expect(told).toContain("archive: ");
      expect(resumed.length).toBe(2);
    } else {
      // The same prompt, and everything that was said since.
      expect(told).toBe(String(model.requests[0]?.prompt[0]?.content));
      expect(resumed.length).toBeGreaterThan(8);
    }
    hang.open();
  },
);

it("S1-31 example 07 names the package that a real model needs", async () => {
  const model = chosenModel("nobody:m-1");
  const error = await errorOf(Promise.resolve(model.doGenerate({ prompt: [] })));
  expect(error.message).toContain("npm install @ai-sdk/nobody");
});
