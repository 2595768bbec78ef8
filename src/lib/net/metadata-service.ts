// The addresses at which a cloud tells a machine what it is and gives it its credentials. A request that reaches one of them has
// the machine's own rights, so it is dialled for plugins that declare it, and for nothing else.
import { BlockList, isIP } from "node:net";

/** AWS, Azure, Google, Oracle and others; containers on AWS; Tencent; Alibaba; Azure's wire server; Oracle's second. */
const ADDRESSES_4 = [
  "169.254.169.254",
  "169.254.170.2",
  "169.254.170.23",
  "169.254.0.23",
  "100.100.100.200",
  "168.63.129.16",
  "192.0.0.192",
];
/** AWS, containers on AWS, Google. */
const ADDRESSES_6 = ["fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254"];
/** Names that clouds give them. Any other name is looked at when it is dialled. */
const NAMES = new Set([
  "metadata",
  "metadata.google.internal",
  "metadata.tencentyun.com",
  "instance-data",
  "instance-data.ec2.internal",
]);

const list = new BlockList();
for (const address of ADDRESSES_4) list.addAddress(address, "ipv4");
for (const address of ADDRESSES_6) list.addAddress(address, "ipv6");

/** A numeric address; one of the fourth kind may stand inside one of the sixth. */
export function isMetadataAddress(address: string): boolean {
  const family = isIP(address);
  return family !== 0 && list.check(address, family === 4 ? "ipv4" : "ipv6");
}

/** The host of an address says that it is meant. */
export function isMetadataUrl({ hostname }: URL): boolean {
  const host = hostname
    .replace(/^\[|\]$/g, "")
    .replace(/\.$/, "")
    .toLowerCase();
  return NAMES.has(host) || isMetadataAddress(host);
}
