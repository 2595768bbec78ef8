// Addresses of cloud metadata services, which return a machine's identity and credentials. A
// request to one of them has the machine's own rights, so only plugins that declare it may connect
// to it.
import { BlockList, isIP } from "node:net";

/**
 * AWS, Azure, Google, Oracle, and others; containers on AWS (two addresses); Tencent; Alibaba;
 * Azure's wire server; Oracle's second address.
 */
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
/** Host names that clouds use for the service. Other names are checked when they are resolved. */
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

/**
 * Whether a numeric address is a metadata service. Includes IPv4 addresses that are embedded in
 * IPv6.
 */
export function isMetadataAddress(address: string): boolean {
  const family = isIP(address);
  return family !== 0 && list.check(address, family === 4 ? "ipv4" : "ipv6");
}

/** Whether the host of a URL is a metadata service, by name or numeric address. */
export function isMetadataUrl({ hostname }: URL): boolean {
  const host = hostname
    .replace(/^\[|\]$/g, "")
    .replace(/\.$/, "")
    .toLowerCase();
  return NAMES.has(host) || isMetadataAddress(host);
}
