// Makes the pictures of the README and the guide: `pawl dev` on an empty directory, seen by a real Chromium.
// `npm run build`, then `node scripts/screenshots.mjs`. They come to docs/images.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("..", import.meta.url));
const images = join(root, "docs", "images");
const CHROMIUM = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const ARGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"];
/** Long enough for a run that fails at times to have done so. */
const CALLS = 12;

const folder = mkdtempSync(join(tmpdir(), "pawl-screenshots-"));
const dev = spawn(process.execPath, [join(root, "dist", "cli", "main.js"), "dev", "--no-open", "--port", "0"], {
  cwd: folder,
  stdio: ["ignore", "pipe", "ignore"],
});
const [link] = await once(createInterface({ input: dev.stdout }), "line");
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ARGS });
const page = await browser.newPage({
  viewport: { width: 1200, height: 720 },
  colorScheme: "light",
  deviceScaleFactor: 1.25,
});
mkdirSync(images, { recursive: true });

try {
  await page.goto(link);
  await page.locator("a.run-link", { hasText: "example-import" }).click();
  await page.locator(".timeline-label").nth(CALLS).waitFor({ timeout: 120_000 });
  await page.locator(".timeline-label", { hasText: "load-batch#3" }).click();
  await page.mouse.move(0, 0);
  await picture("dashboard-run");
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto(new URL("/runs", link).href);
  await page.locator("tr", { hasText: "example-research" }).filter({ hasText: "Parked" }).waitFor();
  await page.locator(".tab-count", { hasText: "6" }).first().waitFor();
  await picture("dashboard-runs");
  await page.emulateMedia({ colorScheme: "light" });
  await page.goto(new URL("/approvals", link).href);
  await page.locator(".inbox-line").click();
  await page.getByRole("button", { name: "Approve" }).waitFor();
  await picture("dashboard-approval");
} finally {
  await browser.close();
  dev.kill("SIGTERM");
  await once(dev, "exit");
  rmSync(folder, { recursive: true, force: true });
}

async function picture(name) {
  const path = join(images, `${name}.png`);
  await page.screenshot({ path, animations: "disabled" });
  console.log(`${name}.png: ${Math.round(statSync(path).size / 1024)} KB`);
}
