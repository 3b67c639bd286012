import { Socket as DatagramSocket } from "node:dgram";
import { Socket } from "node:net";

export interface BlockedNetwork {
  /** How many connections were refused so far. */
  readonly refused: number;
}

/**
 * Refuses every connection that this process tries to make from now on: while a workflow is tried out, a step runs again and again, and nobody
 * wants a real service to see that. HTTP, fetch and the database clients all go through these methods.
 */
export function blockNetwork(): BlockedNetwork {
  const network = { refused: 0 };
  const refuse = (): Error => {
    network.refused += 1;
    return new Error(
      "The network is blocked while a workflow is tried out. Use a fake of the service, or allow it with --allow-net.",
    );
  };
  Socket.prototype.connect = function connect(this: Socket): Socket {
    process.nextTick(() => this.destroy(refuse()));
    return this;
  };
  DatagramSocket.prototype.send = function send(): never {
    throw refuse();
  };
  return network;
}
