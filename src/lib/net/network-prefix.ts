// The network that an address is in: enough to see where traffic comes from, too little to see whose it is.
import { isIP } from "node:net";

const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** "192.0.2.7" → "192.0.2.0/24", "2001:db8:1:2::3" → "2001:db8:1::/48". Undefined: it is no numeric address. */
export function networkPrefixOf(address: string): string | undefined {
  const plain = address.split("%", 1)[0]!;
  const four = MAPPED.exec(plain)?.[1] ?? plain;
  const family = isIP(four);
  if (family === 4) return `${four.slice(0, four.lastIndexOf("."))}.0/24`;
  return family === 6 ? `${first48Bits(plain)}::/48` : undefined;
}

/** The first 48 bits, as they are written without what is zero at their end. */
function first48Bits(address: string): string {
  const [head = "", tail] = address.split("::", 2);
  const groups = head === "" ? [] : head.split(":");
  // All eight stand there, or what "::" leaves out is zero; a group of those behind it may be the third.
  const behind = tail === undefined || tail === "" ? [] : tail.split(":");
  const wide = behind.length + Number(behind.at(-1)?.includes(".") ?? false);
  while (tail !== undefined && groups.length + wide < 8) groups.push("0");
  const three = [...groups, ...behind].slice(0, 3).map((group) => Number.parseInt(group, 16));
  while (three.at(-1) === 0) three.pop();
  return three.map((group) => group.toString(16)).join(":");
}
