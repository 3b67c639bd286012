// Which addresses a webhook may go to: those of the public internet. A name is resolved once, and the connection goes to an address that was looked
// at, so that a name that changes its mind in between leads nowhere else (Q11).
import { lookup } from "node:dns/promises";
import { BlockList, isIP } from "node:net";
import { TerminalError } from "../base/errors.ts";

const NOT_PUBLIC = new BlockList();
for (const [network, bits] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  // A public number, and yet the machine's own host answers to it: the metadata of Azure.
  ["168.63.129.16", 32],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
] as const)
  NOT_PUBLIC.addSubnet(network, bits, "ipv4");
for (const [network, bits] of [
  ["::", 128],
  ["::1", 128],
  ["::", 96],
  // Ways to write an address of IPv4, which a network may translate.
  ["::ffff:0:0:0", 96],
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["2002::", 16],
  ["100::", 64],
  ["2001::", 23],
  ["2001:db8::", 32],
  ["3fff::", 20],
  ["5f00::", 16],
  ["fc00::", 7],
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8],
] as const)
  NOT_PUBLIC.addSubnet(network, bits, "ipv6");

export interface Address {
  readonly address: string;
  readonly family: 4 | 6;
}

export type Resolve = (host: string) => Promise<readonly Address[]>;

/** What is no address of its family is not public either: the list of networks knows nothing of it. */
export function isPublic({ address, family }: Address): boolean {
  return isIP(address) === family && !NOT_PUBLIC.check(address, family === 6 ? "ipv6" : "ipv4");
}

/** The address to connect to. A host that has any address that is not public is refused: which one is used is a matter of chance. */
export async function addressFor(host: string, allowPrivate: boolean, resolve: Resolve = resolveAll): Promise<Address> {
  const bare = host.replace(/^\[|\]$/g, "");
  const family = isIP(bare);
  const found = family === 0 ? await resolve(bare) : [{ address: bare, family: family as 4 | 6 }];
  const [first] = found;
  if (first === undefined) throw new Error(`${host} has no address.`);
  const hidden = allowPrivate ? undefined : found.find((one) => !isPublic(one));
  if (hidden === undefined) return first;
  throw new TerminalError(
    `${host} leads to ${hidden.address}, which is no public address. Webhooks go there only with allowPrivate: true.`,
  );
}

async function resolveAll(host: string): Promise<readonly Address[]> {
  return (await lookup(host, { all: true })).map(({ address, family }) => ({ address, family: family as 4 | 6 }));
}
