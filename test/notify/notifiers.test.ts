import { createHmac } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Notification } from "pawl";
import {
  commandNotifier,
  consoleNotifier,
  fileNotifier,
  type WebhookNotifierOptions,
  webhookNotifier,
} from "pawl/notify";
import { describe, expect, it, onTestFinished } from "vitest";
import { errorOf } from "../behaviour/harness.ts";

const SECRET = `whsec_${Buffer.from("a secret of thirty-two bytes, yes").toString("base64")}`;
const OTHER = `whsec_${Buffer.from("another one, which will replace it").toString("base64")}`;
const NOTIFICATION: Notification = {
  id: "n1",
  event: "approval.escalated",
  run: "r",
  workflow: "report",
  step: "release",
  approval: "a1",
  level: 2,
  action: "notify",
  waitedMs: 129_600_000,
  to: ["duty"],
  approvers: ["role:physician"],
  risk: "high",
  denials: { action: 0, tool: 0 },
  summary: 'reports.deliver {"patient":"p-7\u001b[2J"}',
  due: 172_800_000,
  at: 129_600_000,
};
const how = () => ({ signal: new AbortController().signal });

interface Received {
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** A real server that keeps what it gets, and answers as it is told. */
async function serve(answer: (count: number) => { status: number; location?: string }) {
  const received: Received[] = [];
  const server: Server = createServer((request, response) => {
    let body = "";
    request.on("data", (data: Buffer) => {
      body += data.toString();
    });
    request.on("end", () => {
      received.push({ headers: request.headers, body });
      const { status, location } = answer(received.length);
      response.writeHead(status, location === undefined ? {} : { location }).end("whatever it says");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` };
}

function hook(options: Partial<WebhookNotifierOptions> & { url: string }) {
  return webhookNotifier({ secret: SECRET, allowHttp: true, allowPrivate: true, ...options });
}

describe("the webhook", () => {
  it("Q12 is signed by Standard Webhooks: id, timestamp and body, with every secret", async () => {
    const { received, url } = await serve(() => ({ status: 204 }));
    await hook({ url, secret: [SECRET, OTHER] }).notify(NOTIFICATION, how());
    const [{ headers, body }] = received as [Received];
    expect(headers["webhook-id"]).toBe("n1");
    const timestamp = String(headers["webhook-timestamp"]);
    expect(Math.abs(Number(timestamp) - Date.now() / 1000)).toBeLessThan(60);
    const signatures = [SECRET, OTHER].map((secret) => {
      const key = Buffer.from(secret.slice("whsec_".length), "base64");
      return `v1,${createHmac("sha256", key).update(`n1.${timestamp}.${body}`).digest("base64")}`;
    });
    expect(headers["webhook-signature"]).toBe(signatures.join(" "));
    expect(JSON.parse(body)).toEqual({
      type: "approval.escalated",
      timestamp: "1970-01-02T12:00:00.000Z",
      data: NOTIFICATION,
    });
  });

  it("Q11 goes to no private, loopback or link-local address, however it is written, before anything is sent", async () => {
    const { received, url } = await serve(() => ({ status: 200 }));
    const { port } = new URL(url);
    const hosts = ["127.0.0.1", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0"];
    const others = ["10.1.2.3", "172.31.0.1", "192.168.1.1", "169.254.169.254", "[fe80::1]", "[fd00::1]", "100.64.0.1"];
    const translated = [
      "[::ffff:0:7f00:1]",
      "[64:ff9b::7f00:1]",
      "[64:ff9b:1::7f00:1]",
      "[2002:7f00:1::]",
      "[5f00::1]",
    ];
    for (const host of [...hosts, ...others, ...translated]) {
      const error = await errorOf(
        Promise.resolve(hook({ url: `http://${host}:${port}/`, allowPrivate: false }).notify(NOTIFICATION, how())),
      );
      expect([host, error.name, error.message]).toEqual([
        host,
        "TerminalError",
        expect.stringContaining("allowPrivate"),
      ]);
    }
    expect(received).toEqual([]);
  });

  it("Q11 a name is resolved once: one of its addresses that is private refuses it, and the connection goes where was looked", async () => {
    const { received, url } = await serve(() => ({ status: 200 }));
    const { port } = new URL(url);
    const at = `http://hooks.example:${port}/`;
    const local = { address: "127.0.0.1", family: 4 } as const;
    const mixed = async () => [{ address: "93.184.216.34", family: 4 } as const, local];
    expect(
      (
        await errorOf(
          Promise.resolve(hook({ url: at, allowPrivate: false, resolve: mixed }).notify(NOTIFICATION, how())),
        )
      ).message,
    ).toContain("127.0.0.1");
    let asked = 0;
    const resolve = async () => {
      asked += 1;
      return [local];
    };
    await hook({ url: at, resolve }).notify(NOTIFICATION, how());
    expect([asked, received.length, received[0]?.headers.host]).toEqual([1, 1, `hooks.example:${port}`]);
  });

  it("Q11 follows no redirect, and tells what is worth another attempt from what is not", async () => {
    const inside = await serve(() => ({ status: 200 }));
    const answers = [302, 410, 503, 429];
    const { url } = await serve((count) => ({ status: answers[count - 1] ?? 500, location: inside.url }));
    const names = [];
    for (const _ of answers)
      names.push((await errorOf(Promise.resolve(hook({ url }).notify(NOTIFICATION, how())))).name);
    expect(names).toEqual(["TerminalError", "TerminalError", "RetryableError", "RetryableError"]);
    expect(inside.received).toEqual([]);
  });

  it("gives up a receiver that does not answer in time", async () => {
    const server = createServer(() => {});
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const error = await errorOf(Promise.resolve(hook({ url, timeout: 30 }).notify(NOTIFICATION, how())));
    expect(error.name).toMatch(/TimeoutError|AbortError/);
    // A name service may be as silent.
    const resolve = () => new Promise<never>(() => {});
    const named = hook({ url: url.replace("127.0.0.1", "hooks.example"), timeout: 30, resolve });
    await expect(named.notify(NOTIFICATION, how())).rejects.toThrow(/timeout/);
  });

  it("refuses http, a bad address and a weak secret where it is made", () => {
    const refuses = (options: Partial<WebhookNotifierOptions>) =>
      expect(() => webhookNotifier({ url: "https://hooks.example/", secret: SECRET, ...options }));
    refuses({ url: "http://hooks.example/" }).toThrow(/allowHttp/);
    refuses({ url: "http://ada:secret@hooks.example/" }).toThrow(/^(?!.*secret).*allowHttp/);
    refuses({ url: "hooks" }).toThrow(/https/);
    refuses({ url: "file:///etc/passwd" }).toThrow(/https/);
    refuses({ secret: "short" }).toThrow(/24 random bytes/);
    refuses({ secret: [] }).toThrow(/secret/);
  });
});

describe("the other notifiers", () => {
  it("the console gets one line without controls, with what to do", () => {
    const lines: string[] = [];
    const summary = `${NOTIFICATION.summary} \u202e0024 stnec`;
    consoleNotifier({ write: (line) => void lines.push(line) }).notify({ ...NOTIFICATION, summary }, how());
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('Approval "release" is escalated in report r');
    expect(lines[0]).toContain("pawl approve a1 --by <name>");
    expect(lines[0]).not.toMatch(/[\p{Cc}\u202e]/u);
  });

  it("a file gets a line of JSON each", async () => {
    const folder = mkdtempSync(join(tmpdir(), "pawl-notify-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const path = join(folder, "deep", "notifications.jsonl");
    const notifier = fileNotifier(path);
    await notifier.notify(NOTIFICATION, how());
    await notifier.notify({ ...NOTIFICATION, id: "n2" }, how());
    const lines = readFileSync(path, "utf8").trimEnd().split("\n");
    expect(lines.map((line) => JSON.parse(line))).toEqual([NOTIFICATION, { ...NOTIFICATION, id: "n2" }]);
  });

  it("a command gets it on its standard input, without a shell, and fails by its exit code or its time", async () => {
    const node = (code: string, ...rest: string[]) =>
      commandNotifier([process.execPath, "-e", code, ...rest], { timeout: "20s" });
    const check = `const {id,run} = JSON.parse(require("fs").readFileSync(0,"utf8"));
      if (id !== "n1" || run !== "r" || process.argv[1] !== "$HOME; true") process.exit(7);`;
    await node(check, "$HOME; true").notify(NOTIFICATION, how());
    expect(
      (
        await errorOf(
          Promise.resolve(node('console.error("no such channel"); process.exit(3)').notify(NOTIFICATION, how())),
        )
      ).message,
    ).toMatch(/exit code 3.*no such channel/);
    const slow = commandNotifier([process.execPath, "-e", "setInterval(() => {}, 1000)"], { timeout: 50 });
    expect((await errorOf(Promise.resolve(slow.notify(NOTIFICATION, how())))).name).toMatch(/AbortError|TimeoutError/);
    expect(() => commandNotifier([])).toThrow(/needs a command/);
  });
});
