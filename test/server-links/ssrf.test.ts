// Where a webhook may go (Q11): a corpus of addresses that lead inside, in all the ways that they can be written, and name services that lie.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Notification } from "pawl";
import { type WebhookNotifierOptions, webhookNotifier } from "pawl/notify";
import { expect, it, onTestFinished } from "vitest";
import { errorOf } from "../behaviour/harness.ts";

const SECRET = `whsec_${Buffer.from("a secret of thirty-two bytes, yes").toString("base64")}`;
const NOTIFICATION: Notification = {
  id: "n1",
  event: "compensation_incomplete",
  run: "r",
  workflow: "w",
  owner: null,
  remaining: [],
  to: [],
  summary: "nothing",
  at: 0,
};

type Answer = readonly { readonly address: string; readonly family: 4 | 6 }[];
const PUBLIC: Answer[number] = { address: "93.184.216.34", family: 4 };

async function send(options: Partial<WebhookNotifierOptions> & { url: string }): Promise<void> {
  const hook = webhookNotifier({ secret: SECRET, allowHttp: true, timeout: "5s", ...options });
  await hook.notify(NOTIFICATION, { signal: new AbortController().signal });
}

/** A server inside, which nothing may reach. */
async function inside() {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.headers.host}`);
    response.writeHead(200).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return { seen, port: (server.address() as AddressInfo).port };
}

const IPV4 = [
  "127.0.0.1 127.1 127.0.1 127.255.255.254 2130706433 0x7f000001 0x7f.0.0.1 0177.0.0.1 017700000001 0x7F.1 0 0.0.0.0 00",
  "10.0.0.1 10.255.255.255 012.0.0.1 167772161 172.16.0.1 172.31.255.255 192.168.0.1 192.168.255.255 3232235521 0xc0a80001",
  "169.254.169.254 2852039166 0xa9fea9fe 0251.0376.0251.0376 169.254.0.1 168.63.129.16 100.100.100.200 100.64.0.1",
  "192.0.0.192 192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255",
].flatMap((line) => line.split(" "));
const IPV6 = [
  "::1 :: 0:0:0:0:0:0:0:1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:a9fe:a9fe ::ffff:10.0.0.1 ::127.0.0.1 ::ffff:0:7f00:1",
  "64:ff9b::7f00:1 64:ff9b::169.254.169.254 64:ff9b:1::a00:1 2002:7f00:1:: 2002:a9fe:a9fe:: 2001:0:7f00:1:: 2001:db8::1",
  "fc00::1 fd00::1 fd00:ec2::254 fe80::1 febf::1 fec0::1 ff02::1 100::1 3fff::1 5f00::1",
].flatMap((line) => line.split(" "));

it("Q11 refuses every address that leads inside, however it is written, and nothing is sent", async () => {
  const { seen, port } = await inside();
  const hosts = [...IPV4, ...IPV6.map((address) => `[${address}]`), "[::1]", "１２７.0.0.1", "127。0。0。1"];
  for (const host of hosts) {
    const error = await errorOf(send({ url: `http://${host}:${port}/` }));
    expect([host, error.name, error.message]).toEqual([host, "TerminalError", expect.stringContaining("no public")]);
  }
  expect(seen).toEqual([]);
});

it("Q11 refuses a name that leads inside by any of its addresses, and what is no address at all", async () => {
  const { seen, port } = await inside();
  const answers: Answer[] = [
    [{ address: "127.0.0.1", family: 4 }],
    [PUBLIC, { address: "10.0.0.1", family: 4 }],
    [
      { address: "2606:2800:220:1::", family: 6 },
      { address: "::1", family: 6 },
    ],
    [{ address: "fe80::1%eth0", family: 6 }],
    [{ address: "0x7f.1", family: 4 }],
    [{ address: "localhost", family: 4 }],
    [{ address: "127.0.0.1", family: 6 }],
    [{ address: "::ffff:127.0.0.1", family: 6 }],
  ];
  for (const answer of answers) {
    const error = await errorOf(send({ url: `http://hooks.example:${port}/`, resolve: async () => answer }));
    expect([answer, error.name]).toEqual([answer, "TerminalError"]);
  }
  expect((await errorOf(send({ url: `http://hooks.example:${port}/`, resolve: async () => [] }))).message).toContain(
    "no address",
  );
  expect(seen).toEqual([]);
});

it("Q11 a name service that changes its mind is asked once for each attempt, and the connection goes to the address that was looked at", async () => {
  const { seen, port } = await inside();
  const answers: Answer[number][] = [
    { address: "127.0.0.1", family: 4 },
    { address: "127.0.0.2", family: 4 },
  ];
  let asked = 0;
  // As in DNS rebinding: another address from the second question on. Nobody listens there.
  const resolve = async (): Promise<Answer> => [answers[asked++ === 0 ? 0 : 1] as Answer[number]];
  const url = `http://hooks.example:${port}/`;
  await send({ url, resolve, allowPrivate: true });
  expect([asked, seen]).toEqual([1, [`POST hooks.example:${port}`]]);
  // What was looked at for one attempt says nothing about the next.
  expect((await errorOf(send({ url, resolve }))).message).toContain("127.0.0.2");
  expect([asked, seen.length]).toEqual([2, 1]);
});

it("Q11 goes over https alone, to where it was told, unless http is allowed", () => {
  for (const url of [
    "http://hooks.example/",
    "ftp://hooks.example/",
    "file:///etc/passwd",
    "//hooks.example",
    "data:,x",
  ])
    expect(() => webhookNotifier({ url, secret: SECRET })).toThrow(/https/);
});
