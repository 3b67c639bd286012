import { Socket as DatagramSocket } from "node:dgram";
import { Socket } from "node:net";
import { PawlError } from "../base/errors.ts";

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

/** A run that failed for want of a network says nothing about its code. */
export function assertNoNetwork(network: BlockedNetwork | null, test: string): void {
  if (network === null || network.refused === 0) return;
  throw new PawlError(
    "invalid_argument",
    `"${test}" wants to use the network, which is blocked while it is tried out: its steps run again and again. Use fakes of its services, or allow it with --allow-net.`,
    { fields: { test } },
  );
}
