import { isIP } from "node:net";

const GROUPS = 8;

/**
 * Whose address it is, as far as that can be told: one of IPv6 is one of 2^64 that its holder may use, so the first half of it counts. What is
 * an address of IPv4 in other clothes is that one.
 */
export function networkOf(address: string): string {
  const bare = address.replace(/%.*$/, "");
  if (isIP(bare) !== 6) return address;
  const groups = groupsOf(bare);
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (isMapped)
    return groups
      .slice(6)
      .flatMap((group) => [group >> 8, group & 255])
      .join(".");
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(":")}::/64`;
}

function groupsOf(address: string): number[] {
  // Written the one way: without dots, and with at most one gap.
  const written = new URL(`http://[${address}]/`).hostname.slice(1, -1);
  const [head = [], tail = []] = written.split("::").map((part) =>
    part
      .split(":")
      .filter((group) => group !== "")
      .map((group) => Number.parseInt(group, 16)),
  );
  return [...head, ...new Array<number>(GROUPS - head.length - tail.length).fill(0), ...tail];
}
