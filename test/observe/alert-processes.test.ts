// Alerts over real processes: two workers on one SQLite file, each too quiet for a storm by itself. The children run the built package.
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { Pawl } from "../../src/client/pawl.ts";
import { built, type Child, startChild } from "../child.ts";
import { json, pawl } from "../fixtures/cli/command.ts";

const RETRIES = 40;
/** Nine commands and two processes take a while where many tests run. */
const PATIENCE_MS = 60_000;
const TOLD = "told.jsonl";

/** Runs one workflow of its own that is tried again so often, and then looks for alerts twice. */
function startWorker(folder: string): Child {
  return startChild(`
    import { Pawl, RetryableError, workflow } from "${built("index.js")}";
    import { fileNotifier } from "${built("notify/index.js")}";
    const flow = workflow({ name: "order", retry: { max: 100, base: 1, factor: 1, jitter: false } }, async (ctx) => {
      let left = ${RETRIES};
      await ctx.step("call", () => {
        if (left-- > 0) throw new RetryableError("503");
      });
    });
    const logger = { debug() {}, info() {}, warn() {}, error() {} };
    const pawl = await Pawl.open(${JSON.stringify(join(folder, ".pawl", "pawl.db"))}, {
      workflows: [flow], logger, poll: "50ms", notifiers: [fileNotifier(${JSON.stringify(join(folder, TOLD))})],
      alerts: { retryStorm: { retries: 60, per: "5m" } },
    });
    say("open");
    await heard();
    await pawl.run(flow);
    await pawl.alerts.check();
    say("checked");
    await heard();
    await pawl.idle();
    await pawl.close();
    say("closed");`);
}

it(
  "S2-108 S2-112 X-17 a storm that two processes share is one alert, told once, that anybody can list and acknowledge from the command line",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "pawl-alerts-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const first = startWorker(folder);
    expect(await first.line()).toBe("open");
    const second = startWorker(folder);
    expect(await second.line()).toBe("open");
    for (const worker of [first, second]) {
      worker.tell("go");
      expect(await worker.line()).toBe("checked");
    }
    await expect.poll(() => told(folder), { timeout: 20_000 }).toHaveLength(1);
    for (const worker of [first, second]) worker.tell("stop");
    for (const worker of [first, second]) expect(await worker.rest()).toEqual(["closed"]);
    const { alerts } = await json<{ alerts: { id: string; kind: string; runs: string[] }[] }>(folder, "alerts");
    expect(alerts).toMatchObject([{ kind: "retry_storm", subject: "order/call", detail: { tool: "call" } }]);
    expect(alerts[0]?.runs).toHaveLength(2);
    const id = alerts[0]?.id ?? "";
    expect(told(folder)).toEqual([id]);
    const shown = await pawl(folder, "alerts");
    expect(shown.stdout).toMatch(/^ALERT +KIND +STATUS .*\n.*retry_storm +firing/);
    expect((await pawl(folder, "alerts", "ack", id.slice(0, 8), "--by", "ada")).stdout).toContain("is acknowledged");
    expect(await json(folder, "alerts")).toMatchObject({ alerts: [{ status: "acknowledged", acknowledgedBy: "ada" }] });
    expect((await pawl(folder, "alerts", "ack", "alUnknown", "--by", "ada")).code).toBe(3);
    expect((await pawl(folder, "alerts", "ack", id)).code).toBe(2);
    const metrics = await json<{ retrySuccess: { value: number; runs: string[] } }>(folder, "metrics", "--since", "1d");
    expect(metrics.retrySuccess).toMatchObject({ value: 1, total: 2 });
    expect((await pawl(folder, "metrics")).stdout).toMatch(/retry success +1 +2 of 2/);
    expect((await pawl(folder, "metrics", "--prometheus")).stdout).toContain("\npawl_retry_success_ratio 1\n");
    const client = await Pawl.open(join(folder, ".pawl", "pawl.db"));
    expect((await client.list()).runs.map(({ workflow }) => workflow)).toEqual(["order", "order"]);
    await client.close();
  },
  PATIENCE_MS,
);

function told(folder: string): string[] {
  const file = join(folder, TOLD);
  const lines = existsSync(file) ? readFileSync(file, "utf8").trim().split("\n") : [];
  return lines.map((line) => (JSON.parse(line) as { alert: string }).alert);
}
