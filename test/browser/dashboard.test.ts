import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { Pawl, TerminalError, workflow } from "../../src/index.ts";
import { newCredential, serve } from "../../src/server/index.ts";
import { Dashboard, findChromium, launch, newContext, WatchedPage } from "./dashboard.ts";

// Other work may slow the machine down.
vi.setConfig({ testTimeout: 120_000 });

const path = findChromium();

/** What was done outside. */
const posted: string[] = [];

const posting = workflow("test-posting", async (ctx, text: string) => {
  const draft = await ctx.step("draft", () => `${text}, in short`);
  const review = await ctx.waitFor<{ by: string }>("review");
  await ctx.effect("post", { idempotent: true, do: () => void posted.push(draft) });
  return `${draft}, seen by ${review.by}`;
});

// Without a browser there is nothing to see; where CI is set, that fails instead.
describe.skipIf(path === null)("the dashboard", () => {
  let browser: Browser;
  let dev: Dashboard;

  beforeAll(async () => {
    dev = new Dashboard();
    browser = await launch(path ?? "");
  });

  afterAll(async () => {
    await browser?.close();
    await dev?.stop();
  });

  /** The run of an example, by its workflow, once it stands so. */
  async function exampleRun(seen: WatchedPage, name: string, state: string): Promise<string> {
    await seen.go(`/runs?workflow=${name}`);
    const row = seen.page.locator("tbody tr", { hasText: name }).filter({ hasText: state });
    await row.first().waitFor();
    return (await row.first().locator("a.run-link").getAttribute("href")) ?? "";
  }

  it("X-31 pawl dev on an empty directory shows example runs, each as it stands, and follows a live one", async () => {
    const seen = await dev.open(browser, "/runs");
    const { page } = seen;
    for (const [name, state] of [
      ["example-order", "Succeeded"],
      ["example-label", "Failed"],
      ["example-refund", "Waiting"],
      ["example-research", "Parked"],
    ] as const)
      await page.locator("tbody tr", { hasText: name }).filter({ hasText: state }).first().waitFor();
    expect(dev.output).toContain("example runs");
    expect(dev.output).toContain("To remove them");

    await page.locator("a.run-link", { hasText: "example-import" }).click();
    await page.locator(".live.is-live").waitFor();
    const calls = page.locator(".timeline-label");
    const before = await calls.count();
    // It grows without anybody's doing.
    await calls.nth(before + 2).waitFor({ timeout: 20_000 });
    expect(await page.locator("nav.run-tabs a").allTextContents()).toEqual([
      "Timeline",
      "Journal",
      "State",
      "Effects",
      "Cost",
      "Logs",
      "Graph",
      "Document",
    ]);
    await page.locator(".bar-pause").first().waitFor({ timeout: 20_000, state: "attached" });
    await seen.close();
  });

  it("X-31 an approval shows what is approved, and the decision carries the hash that was shown", async () => {
    const seen = await dev.open(browser, "/approvals");
    const { page } = seen;
    await page.locator(".inbox-line").click();
    const detail = page.locator(".inbox-detail");
    for (const text of [
      "refunds.issue",
      "2990",
      "order:1036",
      "the parcel came back damaged",
      "developer",
      "medium risk",
    ])
      await detail.getByText(text).first().waitFor();
    const shown = await detail.locator(".hash code").textContent();
    const sent = page.waitForRequest((request) => request.url().endsWith("/decide"));
    expect(await seen.faults(".inbox")).toEqual([]);
    await detail.getByLabel("Reason").fill("the photos show it");
    await detail.getByRole("button", { name: "Approve" }).click();
    expect((await sent).postDataJSON()).toEqual({ decision: "approved", hash: shown, reason: "the photos show it" });
    await detail.locator(".decided", { hasText: "approved by developer" }).waitFor();
    await exampleRun(seen, "example-refund", "Succeeded");
    await seen.close();
  });

  it("X-31 a failed run is retried from a step, and the new run succeeds", async () => {
    const seen = await dev.open(browser, "/runs");
    const { page } = seen;
    const failed = await exampleRun(seen, "example-label", "Failed");
    await page.locator(`a[href="${failed}"]`).click();
    await page.locator(".why-summary", { hasText: "The label printer is jammed" }).waitFor();
    await page.locator(".timeline-label", { hasText: "print-label" }).click();
    await page.getByRole("button", { name: "Retry from this step" }).click();
    expect(await seen.faults("dialog, .detail")).toEqual([]);
    await page.locator("dialog").getByRole("button", { name: "Retry", exact: true }).click();
    await page.locator(".run-title .status", { hasText: "Succeeded" }).waitFor();
    expect(new URL(page.url()).pathname).not.toBe(failed);
    expect(await page.locator(".facts", { hasText: "Goes on from" }).locator("a.mono").getAttribute("href")).toBe(
      failed,
    );
    await seen.close();
  });

  it("X-31 runs that were picked are retried and cancelled together, after it was shown what that would do", async () => {
    const seen = await dev.open(browser, "/runs?status=failed");
    const { page } = seen;
    await page.getByLabel("Select all shown").check();
    await page.getByRole("button", { name: "Cancel…", exact: true }).click();
    await page.locator("dialog", { hasText: "All of them have ended already" }).waitFor();
    await page.locator("dialog").getByRole("button", { name: "Close" }).click();
    await page.getByRole("button", { name: "Retry all…" }).click();
    await page.locator("dialog", { hasText: "A dry run found 1 run. Nothing has happened yet." }).waitFor();
    await page.locator("dialog").getByRole("button", { name: "Close" }).click();
    await page.getByRole("button", { name: "Retry…", exact: true }).click();
    await page.locator("dialog", { hasText: "example-label" }).getByRole("button", { name: "Retry" }).click();
    await page.locator(".toast", { hasText: "1 run retried" }).waitFor();
    await exampleRun(seen, "example-label", "Succeeded");
    await seen.close();
  });

  it("a list asks for its first page before it counts, and for no more than a page", async () => {
    const seen = await dev.open(browser, "/workers");
    const asked: string[] = [];
    seen.page.on("request", (request) => asked.push(request.url().replace(/^.*?\/api/, "")));
    await seen.go("/runs");
    await seen.page.locator(".tab-count", { hasText: /\d/ }).first().waitFor();
    const lists = asked.filter((url) => url.startsWith("/runs"));
    expect(lists.slice(0, 2)).toEqual(["/runs?limit=50", "/runs/counts"]);
    expect(lists.filter((url) => url.startsWith("/runs?"))).toEqual(["/runs?limit=50"]);
    await seen.close();
  });

  it("X-31 what a list is told while its first page is on its way is not undone by that page", async () => {
    const brief = workflow("test-brief", (ctx) => ctx.waitFor("over"));
    const pawl = await Pawl.open(dev.store, { workflows: [brief], handleSignals: false });
    const run = await pawl.start(brief);
    const seen = await dev.open(browser, "/workers");
    const { page } = seen;
    const devtools = await page.context().newCDPSession(page);
    await devtools.send("Network.enable");
    const told = new Promise<void>((resolve) => {
      devtools.on("Network.eventSourceMessageReceived", ({ eventName, data }) => {
        if (eventName !== "runs") return;
        const { runs } = JSON.parse(data) as { runs: { id: string; status: string }[] };
        if (runs.some(({ id, status }) => id === run.id && status === "succeeded")) resolve();
      });
    });
    await page.route(
      "**/api/runs?**",
      async (route) => {
        const response = await route.fetch();
        expect(await response.text()).toContain(run.id);
        await run.signal("over");
        await told;
        await route.fulfill({ response });
      },
      { times: 1 },
    );
    await seen.go("/runs?workflow=test-brief");
    await page.locator("tbody tr", { hasText: "Succeeded" }).waitFor();
    await pawl.close();
    await seen.close();
  });

  it("X-31 keys alone lead from the list to a run, to a parked one's choices and back", async () => {
    const seen = await dev.open(browser, "/runs");
    const { page } = seen;
    await page.locator("a.run-link").first().waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("example-research");
    await page.keyboard.press("Escape");
    await page.locator("tbody tr").nth(1).waitFor({ state: "detached" });
    await page.keyboard.press("j");
    const first = page.locator("a.run-link").first();
    await first.and(page.locator(":focus")).waitFor();
    const outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle");
    expect(outline).toBe("solid");
    await page.keyboard.press("Enter");
    await page.locator("nav.run-tabs").waitFor();
    await page.keyboard.press("2");
    await page.locator(".journal li").first().waitFor();
    await page.keyboard.press("?");
    await page.locator("dialog", { hasText: "Go to approvals" }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("g");
    await page.keyboard.press("a");
    await page.locator("h1", { hasText: "Approvals" }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("s");
    await page.locator("td", { hasText: "example-morning-order" }).waitFor();
    await seen.close();
  });

  it("X-31 what is typed into a filter takes effect, and never where somebody has gone meanwhile", async () => {
    const first = await dev.open(browser, "/workers");
    const { page: other } = first;
    // In a context of its own: the clock is the whole context's.
    const context = await newContext(browser, { storageState: await other.context().storageState() });
    const seen = new WatchedPage(await context.newPage());
    const { page } = seen;
    await page.goto(other.url());
    await page.locator("h1").waitFor();
    await first.close();
    // Time stands still but for what is asked for, and effects wait for a frame that does not come in time, as on a busy machine.
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 60_000);
    await page.evaluate("globalThis.requestAnimationFrame = () => 0");
    const search = page.locator("#search");
    const address = () => page.evaluate("location.pathname + location.search");
    const go = (to: string) =>
      page.evaluate(`history.pushState(null, "", "${to}"); dispatchEvent(new PopStateEvent("popstate"))`);

    await go("/runs?q=nothing-has-this");
    await search.waitFor();
    await page.clock.runFor(195);
    await go("/runs");
    await page.clock.runFor(1000);
    expect(await address()).toBe("/runs");
    expect(await search.inputValue()).toBe("");

    await search.fill("example-order");
    await page.clock.runFor(1000);
    expect(await address()).toBe("/runs?q=example-order");
    await search.fill("example-order, and more");
    await page.clock.runFor(195);
    await go("/runs?q=example-label");
    await page.clock.runFor(1000);
    expect(await address()).toBe("/runs?q=example-label");
    expect(await search.inputValue()).toBe("example-label");
    await seen.close();
    await context.close();
  });

  it("X-31 a schedule is paused and resumed, and a parked run decided", async () => {
    const seen = await dev.open(browser, "/schedules");
    const { page } = seen;
    await page.getByRole("button", { name: "Pause" }).click();
    await page.locator("td .status", { hasText: "paused" }).waitFor();
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Pause" }).waitFor();
    const parked = await exampleRun(seen, "example-research", "Parked");
    await seen.go(parked);
    await page.getByRole("button", { name: "raise…" }).click();
    await page.locator("dialog textarea").fill('{ "usd": 5 }');
    expect(await seen.faults("dialog")).toEqual([]);
    await page.locator("dialog").getByRole("button", { name: "raise", exact: true }).click();
    await page.locator(".run-title .status", { hasText: "Succeeded" }).waitFor();
    await seen.close();
  });

  it("X-31 keys alone send a signal that a run waits for, and fork it with nothing done outside", async () => {
    const pawl = await Pawl.open(dev.store, { workflows: [posting], handleSignals: false });
    const run = await pawl.start(posting, "tides");
    const seen = await dev.open(browser, `/runs/${run.id}`);
    const { page } = seen;
    const dialog = page.locator("dialog");
    await page.locator(".run-title .status", { hasText: "Waiting" }).waitFor();
    await page.getByRole("button", { name: "Signal…" }).press("Enter");
    await dialog.getByLabel("Name").and(page.locator(":focus")).waitFor();
    expect(await dialog.getByLabel("Name").inputValue()).toBe("review");
    await page.keyboard.press("Tab");
    await page.keyboard.type('{ "by": ');
    await dialog.getByText("This is not JSON").waitFor();
    expect(await dialog.getByRole("button", { name: "Send" }).isDisabled()).toBe(true);
    expect(await seen.faults("dialog")).toEqual([]);
    await page.keyboard.type('"ada" }');
    for (const key of ["Tab", "Tab", "Enter"]) await page.keyboard.press(key);
    await page.locator(".run-title .status", { hasText: "Succeeded" }).waitFor();
    await page.locator(".part", { hasText: "tides, in short, seen by ada" }).waitFor();
    expect(posted).toEqual(["tides, in short"]);

    for (const name of ["draft", "review", "post"]) {
      await page.keyboard.press("j");
      await page.locator(".detail h2", { hasText: name }).waitFor();
    }
    await page.getByRole("button", { name: "Fork before it…" }).press("Enter");
    expect(await dialog.getByLabel("Before this step").inputValue()).toBe("post");
    await dialog.getByText("is done once more").waitFor();
    await dialog.getByLabel("would do outside").press("ArrowDown");
    await dialog.getByText("Nothing is done outside").waitFor();
    expect(await seen.faults("dialog")).toEqual([]);
    await dialog.getByRole("button", { name: "Fork" }).press("Enter");
    const origin = page.locator(".facts", { hasText: "Goes on from" }).locator(`a[href="/runs/${run.id}"]`);
    await origin.waitFor();
    await page.locator(".run-title .status", { hasText: "Succeeded" }).waitFor();
    await page.locator(".part", { hasText: "tides, in short, seen by ada" }).waitFor();
    expect(posted).toEqual(["tides, in short"]);
    await seen.close();
    await pawl.close();
  });

  it("X-31 keys alone cancel a run, with the reason in its journal, and a dialog gives the focus back", async () => {
    const pawl = await Pawl.open(dev.store, { workflows: [posting], handleSignals: false });
    const run = await pawl.start(posting, "ferries");
    const seen = await dev.open(browser, `/runs/${run.id}`);
    const { page } = seen;
    const cancel = page.getByRole("button", { name: "Cancel…" });
    const reason = page.locator("dialog").getByLabel("Reason").and(page.locator(":focus"));
    await cancel.press("Enter");
    await reason.waitFor();
    await page.locator("dialog").evaluate((dialog) => dialog.setAttribute("data-seen", ""));
    // The button is used as soon as it has the focus again.
    await cancel.evaluate((button) => button.addEventListener("focus", () => button.click(), { once: true }));
    await page.keyboard.press("Escape");
    await page.locator("dialog[data-seen]").waitFor({ state: "detached" });
    await reason.waitFor();
    await page.locator("dialog").getByRole("button", { name: "Close" }).press("Enter");
    await cancel.and(page.locator(":focus")).waitFor();
    await page.keyboard.press("Enter");
    await reason.waitFor();
    expect(await seen.faults("dialog")).toEqual([]);
    await page.keyboard.type("written twice");
    await page.keyboard.press("Enter");
    await page.locator(".run-title .status", { hasText: "Cancelled" }).waitFor();
    await page.locator("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("2");
    await page.locator(".journal li", { hasText: "written twice" }).first().waitFor();
    await seen.close();
    await pawl.close();
  });

  it("X-31 an answer that comes after its dialog was closed leaves the next one open, and a refusal is said all the same", async () => {
    const pawl = await Pawl.open(dev.store, { workflows: [posting], handleSignals: false });
    const run = await pawl.start(posting, "lighthouses");
    const seen = await dev.open(browser, `/runs/${run.id}`);
    const { page } = seen;
    const dialog = page.locator("dialog");
    await page.locator(".run-title .status", { hasText: "Waiting" }).waitFor();
    const held: ((answer: { readonly status: number; readonly body: string }) => Promise<void>)[] = [];
    await page.route("**/signal", (route) => void held.push((answer) => route.fulfill(answer)));
    for (const { status, body, news } of [
      { status: 200, body: "{}", news: 'Signal "review" is delivered.' },
      { status: 409, body: '{"error":{"code":"run_ended","message":"It had ended."}}', news: "It had ended." },
    ]) {
      await page.getByRole("button", { name: "Signal…" }).press("Enter");
      const asked = page.waitForRequest("**/signal");
      await dialog.getByRole("button", { name: "Send" }).press("Enter");
      await asked;
      await page.keyboard.press("Escape");
      await page.getByRole("button", { name: "Cancel…" }).press("Enter");
      await dialog.getByLabel("Reason").fill("typed meanwhile");
      await held.pop()?.({ status, body });
      await page.locator(".toast", { hasText: news }).waitFor();
      expect(await dialog.getByLabel("Reason").inputValue()).toBe("typed meanwhile");
      await page.keyboard.press("Escape");
    }
    await seen.close({ expected: /409 \(Conflict\)/ });
    await pawl.close();
  });

  it("X-31 an address that is no text leads to no page, and one with a time says so", async () => {
    const seen = await dev.open(browser, "/workers");
    const { page } = seen;
    await seen.go("/%E0%A4%A");
    await page.locator("h1", { hasText: "There is no such page" }).waitFor();
    await seen.go("/runs?after=2020-01-01T00:00:00.000Z");
    await page.locator(".filters-range", { hasText: "Started from" }).getByRole("button", { name: "Any time" }).click();
    await page.locator(".filters-range").waitFor({ state: "detached" });
    expect(new URL(page.url()).search).toBe("");
    await seen.close();
  });

  it("X-31 every page has no serious fault of accessibility, in light, dark and on a phone", async () => {
    const seen = await dev.open(browser, "/runs");
    const { page } = seen;
    const live = await exampleRun(seen, "example-import", "");
    const refund = await exampleRun(seen, "example-refund", "");
    const research = await exampleRun(seen, "example-research", "");
    const label = await exampleRun(seen, "example-label", "Failed");
    const pages = [
      "/runs",
      `${live}/logs`,
      ...["", "/journal", "/effects", "/graph", "/document"].map((tab) => refund + tab),
      ...["/state", "/cost"].map((tab) => research + tab),
      label,
      "/approvals",
      "/workers",
      "/schedules",
      "/alerts",
      "/stats",
      "/audit",
    ];
    const faults: string[] = [];
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      // In the dark only colours are other ones. What is beside the pages is the same for all of them, and above the views of a run as well.
      const rules = colorScheme === "dark" ? ["color-contrast"] : [];
      for (const one of pages) {
        await seen.go(one);
        const part = one === "/runs" ? "html" : /^\/runs\/.*\//.test(one) ? ".page > section" : "main";
        const found = await seen.faults(part, rules);
        faults.push(...found.map((fault) => `${colorScheme} ${one}: ${fault}`));
      }
    }
    await page.setViewportSize({ width: 360, height: 740 });
    for (const one of pages) {
      await seen.go(one);
      const wide = await seen.width();
      if (wide > 360) faults.push(`phone ${one}: ${wide} pixels wide`);
    }
    expect(faults).toEqual([]);
    await seen.close();
  });

  it("Q17 whatever a run holds is shown as text", async () => {
    const marks = [
      "<img src=x onerror=alert(1)>",
      "<script>alert(2)</script>",
      "javascript:alert(3)",
      "\"'><svg onload=alert(4)>",
      "{{constructor.constructor('alert(5)')()}}",
    ];
    const hostile = marks.join(" ");
    const name = "<img src=x onerror=alert(0)>";
    // Names of calls, keys and tags cannot hold these.
    const named = marks.map((mark) => mark.replaceAll(/[/#\\]/g, ""));
    const bad = workflow({ name, retry: false }, async (ctx, input: string) => {
      ctx.note(hostile);
      ctx.set(named[1] ?? "", { [hostile]: input });
      ctx.progress(hostile);
      await ctx.step(named[0] ?? "", () => ({ [hostile]: hostile }));
      throw Object.assign(new TerminalError(hostile), { code: hostile, detail: hostile });
    });
    const pawl = await Pawl.open(dev.store, { workflows: [bad], handleSignals: false });
    const run = await pawl.start(bad, hostile, { key: named[3] ?? "", tags: named });
    await run.result().catch(() => {});
    await pawl.close();

    const seen = await dev.open(browser, `/runs/${run.id}`);
    const { page } = seen;
    await page.locator("h1", { hasText: name }).waitFor();
    await page.locator(".why-summary", { hasText: marks[0] ?? "" }).waitFor();
    await page.locator(".timeline-label").first().click();
    await page.locator(".detail .value").first().waitFor();
    for (const tab of ["", "/journal", "/state", "/effects", "/cost", "/logs", "/graph", "/document"]) {
      await seen.go(`/runs/${run.id}${tab}`);
      for (const summary of await page.locator(".journal summary").all()) await summary.click();
      expect(await page.locator("main").innerText()).toContain(name);
      expect(await page.locator("main img, main script, main [onerror], main [onload], main iframe").count()).toBe(0);
    }
    await seen.go(`/runs?q=${encodeURIComponent(hostile)}`);
    await seen.go("/runs");
    await page.locator("a.run-link", { hasText: name }).waitFor();
    expect(await page.locator("main img").count()).toBe(0);
    await seen.close();
  });

  it("X-31 a further page is only put behind the page that it follows", async () => {
    const [many, others] = ["test-many", "test-others"].map((name) => workflow(name, () => Promise.resolve()));
    if (many === undefined || others === undefined) throw new Error("There are two.");
    const pawl = await Pawl.open(dev.store, { workflows: [many, others], handleSignals: false });
    for (let i = 0; i < 170; i++) await pawl.run(many);
    const other = await pawl.start(others);
    await other.result();
    const { runs } = await pawl.list({ workflow: many.name, limit: 200 });
    await pawl.close();
    const inOrder = (count: number) => runs.slice(0, count).map(({ id }) => `/runs/${id}`);

    const seen = await dev.open(browser, "/runs?workflow=test-many");
    const { page } = seen;
    const links = page.locator("a.run-link");
    const shown = () => links.evaluateAll((all) => all.map((link) => link.getAttribute("href")));
    const more = page.getByRole("button", { name: "Show more" });
    await more.click();
    await links.nth(99).waitFor();

    // The first page is loaded again, as after a pause, and a third one asked for meanwhile.
    const first = await seen.hold(/api\/runs\?workflow=test-many&limit=50$/);
    for (const isHidden of [true, false])
      await page.evaluate(
        `Object.defineProperty(document, "hidden", { value: ${isHidden}, configurable: true }); document.dispatchEvent(new Event("visibilitychange"))`,
      );
    await first.asked;
    await more.click();
    await links.nth(149).waitFor();
    await first.letGo();
    await page.locator(".list-foot", { hasText: /^50 runs/ }).waitFor();
    expect(await shown()).toEqual(inOrder(50));
    await more.click();
    await links.nth(99).waitFor();
    expect(await shown()).toEqual(inOrder(100));

    // Another list is asked for while a page of this one is on its way, and answers after it.
    const [third, list] = [await seen.hold(/cursor=/), await seen.hold(/api\/runs\?workflow=test-others&limit=50$/)];
    await more.click();
    await third.asked;
    await seen.go("/runs?workflow=test-others");
    await list.asked;
    await third.letGo();
    await list.letGo();
    await page.locator(".list-foot", { hasText: /^1 run / }).waitFor();
    expect(await shown()).toEqual([`/runs/${other.id}`]);
    await seen.close();
  });

  it("X-31 an open page connects again, says that its session has ended, and shows the truth after that", async () => {
    const { token, credential } = newCredential("ada", ["operator"]);
    const pawl = await Pawl.open("memory:", { workflows: [posting], handleSignals: false });
    const run = await pawl.start(posting, "storms");
    const first = await serve({ pawl, credentials: [credential], port: 0 });
    const context = await newContext(browser);
    const seen = new WatchedPage(await context.newPage());
    const { page } = seen;
    const signIn = async () => {
      await page.getByLabel("Token").fill(token);
      await page.keyboard.press("Enter");
    };
    // Something between the page and the server refuses the first stream, and a browser gives up then.
    await page.route("**/events?**", (route) => route.fulfill({ status: 503 }), { times: 1 });
    await page.goto(`${first.url}/runs/${run.id}#token=used-before`);
    await page.getByRole("alert").filter({ hasText: "was used before" }).waitFor();
    await signIn();
    await page.locator(".live", { hasText: "Connecting" }).waitFor();
    await page.locator(".live.is-live").waitFor({ timeout: 20_000 });

    await first.stop();
    await pawl.signal(run.id, "review", { by: "grace" });
    await run.result();
    const second = await serve({ pawl, credentials: [credential], port: first.port });
    await page.getByRole("alert").filter({ hasText: "Your session has ended" }).waitFor({ timeout: 20_000 });
    expect(await seen.faults("main")).toEqual([]);
    await signIn();
    await page.locator(".run-title .status", { hasText: "Succeeded" }).waitFor();
    await page.locator(".part", { hasText: "storms, in short, seen by grace" }).waitFor();
    await seen.close({ expected: /status of (401|503)|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING/ });
    await context.close();
    await second.stop();
    await pawl.close();
  });
});

// Without a browser there is nothing to see; where CI is set, that fails instead.
describe.skipIf(path === null)("pawl dev with a file", () => {
  it("X-31 takes changed code up, also of what it imports, and keeps the last that worked", async () => {
    const dev = new Dashboard(["hello.ts"]);
    const write = (name: string, text: string) => writeFileSync(join(dev.folder, name), text);
    write("words.ts", 'export const word: string = "one";\n');
    write(
      "hello.ts",
      'import { workflow } from "pawl";\nimport { word } from "./words.ts";\nexport const hello = workflow("hello-" + word, async () => word);\n',
    );
    try {
      await dev.printed(/#token=/);
      expect(dev.output).toContain("hello-one");
      write("words.ts", 'export const word: string = "two";\n');
      await dev.printed(/Reloaded/);
      const good = readFileSync(join(dev.folder, "hello.ts"), "utf8");
      write("hello.ts", "export const = ;\n");
      const [told] = await dev.printed(/The code cannot be loaded.*/);
      expect(told).toContain("hello.ts:1");
      expect(told).toContain("goes on");
      const pawl = await Pawl.open(dev.store, { handleSignals: false });
      const run = await pawl.start("hello-two");
      expect(await run.result()).toBe("two");
      await pawl.close();
      write("hello.ts", good.replace("hello-", "bye-"));
      await dev.printed(/Reloaded[\s\S]*Reloaded/);
    } finally {
      await dev.stop();
    }
  });
});
