// A wire to a PostgreSQL server: a TCP proxy that does what networks do. It cuts, swallows and delays.

import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

export class Wire {
  readonly #target: URL;
  readonly #server: Server;
  readonly #pairs = new Set<Pair>();
  /** New connections are refused while it is set. */
  isDown = false;
  /** How long everything takes on its way, each way. */
  latencyMs = 0;
  #watch: ((text: string) => Fate) | null = null;

  private constructor(target: URL) {
    this.#target = target;
    this.#server = createServer((client) => this.#accept(client));
  }

  static async open(url: string): Promise<Wire> {
    const wire = new Wire(new URL(url));
    wire.#server.listen(0, "127.0.0.1");
    await once(wire.#server, "listening");
    return wire;
  }

  get url(): string {
    const { port } = this.#server.address() as { port: number };
    const url = new URL(this.#target);
    url.hostname = "127.0.0.1";
    url.port = String(port);
    return url.href;
  }

  /** `judge` sees what clients send, as text, and says what becomes of it; the first fate but "pass" ends the watch. */
  watch(judge: (text: string) => Fate): void {
    this.#watch = judge;
  }

  /** Ends all connections. */
  cut(): void {
    for (const pair of this.#pairs) pair.end();
  }

  async close(): Promise<void> {
    this.cut();
    this.#server.close();
    await once(this.#server, "close");
  }

  #accept(client: Socket): void {
    if (this.isDown) return void client.destroy();
    const server = connect(Number(this.#target.port), this.#target.hostname);
    const pair = new Pair(
      client,
      server,
      () => this.latencyMs,
      (data) => this.#judge(data),
    );
    this.#pairs.add(pair);
    server.once("close", () => this.#pairs.delete(pair));
  }

  #judge(data: Buffer): Fate {
    const fate = this.#watch?.(data.toString("latin1")) ?? "pass";
    if (fate !== "pass") this.#watch = null;
    return fate;
  }
}

/**
 * What becomes of something that a client sends. "lose answer": the server gets it and answers, but the connection is cut before the client
 * hears of it. "cut before": it never arrives. "black hole": from then on nothing arrives on either side, and nobody is told.
 */
export type Fate = "pass" | "lose answer" | "cut before" | "black hole";

class Pair {
  readonly #client: Socket;
  readonly #server: Socket;
  #isMute = false;
  #losesAnswer = false;

  constructor(client: Socket, server: Socket, latencyMs: () => number, judge: (data: Buffer) => Fate) {
    this.#client = client;
    this.#server = server;
    const end = () => this.end();
    for (const socket of [client, server]) {
      socket.on("error", end);
      socket.on("close", () => {
        if (!this.#isMute) end();
      });
    }
    const send = (to: Socket, data: Buffer) => {
      if (latencyMs() === 0) return void to.write(data);
      setTimeout(() => to.write(data), latencyMs());
    };
    client.on("data", (data) => {
      if (this.#isMute) return;
      const fate = judge(data);
      if (fate === "cut before") return end();
      if (fate === "black hole") this.#isMute = true;
      else if (fate === "lose answer") this.#losesAnswer = true;
      if (!this.#isMute) send(server, data);
    });
    server.on("data", (data) => {
      if (this.#losesAnswer) return end();
      if (!this.#isMute) send(client, data);
    });
  }

  end(): void {
    this.#client.destroy();
    this.#server.destroy();
  }
}

/** What a step does meanwhile: it takes its time, so that there is something in flight. */
export function work(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}
