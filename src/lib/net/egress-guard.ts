// Restricts addresses that a client or an upstream can influence to the public internet. Addresses
// are checked when the connection is made, so a DNS name that changes between two lookups gains
// nothing. Addresses that the operator configured (`base_url`, a local model server) do not pass
// this guard.
import { lookup as resolve, type LookupAddress, type LookupOptions } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { buildConnector } from "undici";
import { BoundedMap } from "../bounded-map.ts";

/** IPv4 networks that are private or unassigned (IANA special-purpose registries). */
const CLOSED_4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
];

/**
 * Parts of the IPv6 global unicast range that embed an IPv4 address (Teredo, 6to4) or are reserved.
 */
const CLOSED_6 = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"];

/**
 * IPv6 global unicast, the only range with addresses of the internet. All other ranges are blocked
 * because they are not listed: ::, ::1, v4-mapped and v4-compatible, NAT64 (64:ff9b::/96,
 * 64:ff9b:1::/48), fc00::/7, fe80::/10, ff00::/8.
 */
const OPEN_6 = ["2000::/3"];

const toBlockList = (networks: readonly string[], family: "ipv4" | "ipv6"): BlockList => {
  const blocks = new BlockList();
  for (const network of networks) {
    const [address, bits] = network.split("/");
    blocks.addSubnet(address!, Number(bits), family);
  }
  return blocks;
};
const closed4 = toBlockList(CLOSED_4, "ipv4");
const closed6 = toBlockList(CLOSED_6, "ipv6");
const open6 = toBlockList(OPEN_6, "ipv6");

/**
 * Whether a numeric address is on the public internet. False for a name and for an address with a
 * zone.
 */
export function isPublicAddress(address: string): boolean {
  const family = address.includes("%") ? 0 : isIP(address);
  if (family === 4) return !closed4.check(address, "ipv4");
  return family === 6 && open6.check(address, "ipv6") && !closed6.check(address, "ipv6");
}

/** Whether the host is reachable only from this machine. */
export const isLoopback = (host: string): boolean =>
  host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));

export interface EgressGuard {
  /**
   * Lookup function for `net.connect` and undici. Resolves a name, and fails if any of its
   * addresses is closed.
   */
  lookup: LookupFunction;
  /**
   * Connector for undici. Checks numeric hosts, because they are never looked up, and checks the
   * address of the established connection.
   */
  connect: buildConnector.connector;
  /**
   * Returns the parsed URL, or throws an `AddressError`. Names are checked only when the connection
   * is made.
   */
  check(url: string | URL): URL;
}

/**
 * Thrown for an address that must not be connected to. The message may be shown to the client or
 * upstream that supplied the address.
 */
export interface AddressError extends Error {
  code:
    | "address_not_public"
    | "address_metadata"
    | "address_scheme"
    | "address_credentials"
    | "address_malformed";
}

const createAddressError = (code: AddressError["code"], message: string): AddressError =>
  Object.assign(new Error(message), { code });

const notPublicError = (host: string): AddressError =>
  createAddressError(
    "address_not_public",
    `The address ${host} is not on the public internet, so connections to it are not allowed.`,
  );

const withoutBrackets = (host: string): string => host.replace(/^\[|\]$/g, "");

/**
 * Creates a guard. `open` decides whether a numeric address is allowed. For example, an operator
 * can allow a network, and a test can allow its own loopback address.
 */
export function createEgressGuard(
  open: (address: string) => boolean = isPublicAddress,
  timeoutMs = 5_000,
  refusal: (host: string) => AddressError = notPublicError,
): EgressGuard {
  const lookup = (
    hostname: string,
    options: LookupOptions,
    done: (error: Error | null, address: any, family?: number) => void,
  ): void => {
    resolve(hostname, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
      if (error) return done(error, "");
      const bad = addresses.find(({ address }) => !open(address));
      if (bad) return done(refusal(`${hostname} (${bad.address})`), "");
      if (options.all) return done(null, addresses);
      const [first] = addresses;
      if (!first) return done(new Error(`${hostname} cannot be resolved.`), "");
      return done(null, first.address, first.family);
    });
  };
  const dial = buildConnector({
    lookup: lookup as LookupFunction,
    timeout: timeoutMs,
    allowH2: false,
  });
  return {
    lookup: lookup as LookupFunction,
    connect(options, done) {
      const host = withoutBrackets(options.hostname);
      if (isIP(host) && !open(host)) return done(refusal(host), null);
      return dial(options, (...[error, socket]) => {
        if (error) return done(error, null);
        const reached = socket.remoteAddress ?? "";
        if (open(reached)) return done(null, socket);
        socket.destroy();
        return done(refusal(reached || host), null);
      });
    },
    check(url) {
      const target = URL.parse(String(url));
      if (!target)
        throw createAddressError("address_malformed", `Invalid URL ${String(url).slice(0, 200)}.`);
      if (target.protocol !== "https:" && target.protocol !== "http:")
        throw createAddressError(
          "address_scheme",
          `Only http and https URLs are allowed, not ${target.protocol}`,
        );
      if (target.username || target.password)
        throw createAddressError(
          "address_credentials",
          "A URL with a user name or password is not allowed.",
        );
      const host = withoutBrackets(target.hostname);
      if (isIP(host) && !open(host)) throw refusal(host);
      return target;
    },
  };
}

/**
 * Creates a guard that allows all addresses except the addresses of a cloud's metadata service.
 * Names that resolve to such an address are blocked too.
 */
export const createMetadataGuard = (timeoutMs?: number): EgressGuard =>
  createEgressGuard(
    (address) => !isMetadataAddress(address),
    timeoutMs,
    (host) =>
      createAddressError(
        "address_metadata",
        `The address ${host} belongs to the cloud metadata service.`,
      ),
  );

// Addresses of cloud metadata services, which return a machine's identity and credentials. A
// request to one of them has the machine's own rights, so only plugins that declare this may
// connect to it.

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

/** Hosts that were checked before. Most requests are sent to few hosts. */
const checkedHosts = new BoundedMap<string, boolean>(256);

/** Whether the host of a URL is a metadata service, by name or numeric address. */
export function isMetadataUrl({ hostname }: URL): boolean {
  let isMetadata = checkedHosts.get(hostname);
  if (isMetadata === undefined) checkedHosts.set(hostname, (isMetadata = isMetadataHost(hostname)));
  return isMetadata;
}

function isMetadataHost(hostname: string): boolean {
  const host = hostname
    .replace(/^\[|\]$/g, "")
    .replace(/\.$/, "")
    .toLowerCase();
  return NAMES.has(host) || isMetadataAddress(host);
}
