// The dashboard as a person has it: `pawl dev` in a process of its own on an empty directory, and a real Chromium. One browser serves all tests of
// a file. Whatever a page says on its console, and whom it asks, is kept: a test that ends looks at it.
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { AxeResults } from "axe-core";
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
  type Route,
} from "playwright-core";
import { expect } from "vitest";
import { gate } from "../behaviour/harness.ts";
import { Program } from "../child.ts";

const MAIN = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** `null` where there is no browser. Where everything has to be shown, that is a failure and no reason to skip. */
export function findChromium(): string | null {
  const found = PLACES.find((path) => existsSync(path)) ?? null;
  if (found !== null || process.env["CI"] === undefined) return found;
  throw new Error(`There is no Chromium at ${PLACES.join(", ")}: install Debian's package chromium.`);
}

export function launch(executablePath: string): Promise<Browser> {
  const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];
  return chromium.launch({ executablePath, args: [...args, "--disable-component-update", "--disable-sync"] });
}

/** Pages of one context share what they have loaded: another one costs a second. */
export async function newContext(browser: Browser, options: BrowserContextOptions = {}): Promise<BrowserContext> {
  const viewport = { width: 1280, height: 800 };
  const context = await browser.newContext({ viewport, reducedMotion: "reduce", ...options });
  // Other work may slow the machine down.
  context.setDefaultTimeout(60_000);
  return context;
}

export class Dashboard {
  readonly folder: string = mkdtempSync(join(tmpdir(), "pawl-dev-"));
  readonly #program: Program;
  #context: BrowserContext | null = null;
  #address = "";

  constructor(files: readonly string[] = []) {
    const args = ["dev", ...files, "--no-open", "--port", "0"];
    this.#program = new Program([process.execPath, MAIN, ...args], { cwd: this.folder });
  }

  get store(): string {
    return join(this.folder, ".pawl", "pawl.db");
  }

  get output(): string {
    return this.#program.stdout + this.#program.stderr;
  }

  /** What it prints, once it fits. */
  printed(pattern: RegExp): Promise<RegExpExecArray> {
    return this.#program.until(() => pattern.exec(this.output) ?? undefined);
  }

  /** A page that has signed in: the first one does so by the address that was printed, and the others are of the same browser. */
  async open(browser: Browser, path: string): Promise<WatchedPage> {
    this.#context ??= await this.#signedIn(browser);
    const page = new WatchedPage(await this.#context.newPage());
    await page.page.goto(this.#address + path);
    return page;
  }

  async #signedIn(browser: Browser): Promise<BrowserContext> {
    const context = await newContext(browser);
    const first = new WatchedPage(await context.newPage());
    const [link] = await this.printed(/http:\/\/127\.0\.0\.1:\d+\/#token=\S+/);
    this.#address = new URL(link).origin;
    await first.page.goto(link);
    await first.page.locator("h1", { hasText: "Runs" }).waitFor();
    expect(new URL(first.page.url()).hash).toBe("");
    await first.close();
    return context;
  }

  async stop(): Promise<void> {
    await this.#program.kill("SIGTERM");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export class WatchedPage {
  readonly page: Page;
  readonly #complaints: string[] = [];
  readonly #hosts = new Set<string>();

  constructor(page: Page) {
    this.page = page;
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning")
        this.#complaints.push(`${message.text()} ${message.location().url}`);
    });
    page.on("pageerror", (error) => this.#complaints.push(String(error.stack)));
    page.on("dialog", (dialog) => {
      this.#complaints.push(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("request", (request) => this.#hosts.add(new URL(request.url()).host));
  }

  /** Ends the page. It has said nothing on its console but what was to be expected, and asked nobody but its own server. */
  async close({ expected = /^$/ }: { readonly expected?: RegExp } = {}): Promise<void> {
    const own = new URL(this.page.url()).host;
    await this.page.close();
    expect(this.#complaints.filter((text) => !expected.test(text))).toEqual([]);
    expect([...this.#hosts]).toEqual([own]);
  }

  /** Goes to another page of the dashboard without loading everything again. */
  async go(path: string): Promise<void> {
    await this.page.evaluate(
      `history.pushState(null, "", ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent("popstate"))`,
    );
    await this.page.locator("main:not(:has(.loading)):has(h1, .notice)").waitFor();
  }

  /** Serious and critical faults of accessibility in a part of the page, by all rules or by these. */
  async faults(part: string, rules: readonly string[] = []): Promise<string[]> {
    if (!(await this.page.evaluate("'axe' in globalThis"))) await this.page.evaluate(readFileSync(AXE, "utf8"));
    const runOnly = rules.length === 0 ? ["wcag2a", "wcag2aa"] : { type: "rule", values: rules };
    const found: AxeResults = await this.page.evaluate(
      `axe.run(${JSON.stringify(part)}, ${JSON.stringify({ runOnly, resultTypes: ["violations"], preload: false })})`,
    );
    return found.violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => `${id}: ${html} ${failureSummary}`));
  }

  /** Holds the answers to these requests back, once they have been `asked` for, until they are let go. */
  async hold(pattern: RegExp): Promise<{ readonly asked: Promise<void>; letGo(): Promise<void> }> {
    const [asked, free] = [gate(), gate()];
    const hold = async (route: Route) => {
      const response = await route.fetch();
      asked.open();
      await free.passed;
      await route.fulfill({ response });
    };
    await this.page.route(pattern, hold);
    const over = this.page.waitForResponse((response) => pattern.test(response.url()));
    const letGo = async () => {
      free.open();
      await over;
      await this.page.unroute(pattern);
    };
    return { asked: asked.passed, letGo };
  }

  width(): Promise<number> {
    return this.page.evaluate("document.documentElement.scrollWidth");
  }
}
