// Reduces an address to its network, which shows the origin of traffic without identifying a
// person.
import { isIP } from "node:net";

const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/**
 * Returns the network: "192.0.2.7" → "192.0.2.0/24", "2001:db8:1:2::3" → "2001:db8:1::/48".
 * Undefined if the address is not numeric.
 */
export function networkPrefixOf(address: string): string | undefined {
  const plain = address.split("%", 1)[0]!;
  const four = MAPPED.exec(plain)?.[1] ?? plain;
  const family = isIP(four);
  if (family === 4) return `${four.slice(0, four.lastIndexOf("."))}.0/24`;
  return family === 6 ? `${first48Bits(plain)}::/48` : undefined;
}

/** Returns the first 48 bits without trailing zero groups. */
function first48Bits(address: string): string {
  const [head = "", tail] = address.split("::", 2);
  const groups = head === "" ? [] : head.split(":");
  // Without "::", all eight groups are present. With "::", the omitted groups are zero, so the
  // third group may be one of the groups after it.
  const behind = tail === undefined || tail === "" ? [] : tail.split(":");
  const wide = behind.length + Number(behind.at(-1)?.includes(".") ?? false);
  while (tail !== undefined && groups.length + wide < 8) groups.push("0");
  const three = [...groups, ...behind].slice(0, 3).map((group) => Number.parseInt(group, 16));
  while (three.at(-1) === 0) three.pop();
  return three.map((group) => group.toString(16)).join(":");
}
