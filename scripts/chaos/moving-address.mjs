// An address that moves: a TCP proxy in front of whichever server is the primary. Whoever is connected when it moves is cut off, as by a load balancer
// or a DNS name that follows the primary.
import { once } from "node:events";
import { connect, createServer } from "node:net";

export class MovingAddress {
  #target;
  #server;
  #sockets = new Set();

  constructor(url) {
    this.#target = new URL(url);
    this.#server = createServer((client) => this.#accept(client));
  }

  async open() {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    const url = new URL(this.#target);
    url.port = String(this.#server.address().port);
    return url.href;
  }

  moveTo(url) {
    this.#target = new URL(url);
    this.#cut();
  }

  async close() {
    this.#cut();
    this.#server.close();
    await once(this.#server, "close");
  }

  #cut() {
    for (const socket of this.#sockets) socket.destroy();
  }

  #accept(client) {
    const server = connect(Number(this.#target.port), this.#target.hostname);
    for (const [socket, other] of [
      [client, server],
      [server, client],
    ]) {
      this.#sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => {});
      socket.on("close", () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  }
}
