// The network of an address: it contains the address, has the stated size, and is the same for all
// addresses in it.
import fc from "fast-check";
import { BlockList, isIPv6 } from "node:net";
import { describe, expect, it } from "vitest";
import { networkPrefixOf } from "../../../src/lib/net/network-prefix.ts";

const holds = (network: string, address: string): boolean => {
  const [base, bits] = network.split("/");
  const family = isIPv6(base!) ? "ipv6" : "ipv4";
  const list = new BlockList();
  list.addSubnet(base!, Number(bits), family);
  return list.check(address, family);
};

describe("the network of an address", () => {
  it("of IPv4 is its /24, also for a mapped address", () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        const network = networkPrefixOf(address)!;
        expect(network.endsWith("/24")).toBe(true);
        expect(holds(network, address)).toBe(true);
        expect(networkPrefixOf(`::ffff:${address}`)).toBe(network);
      }),
    );
  });

  it("of IPv6 is its /48, in any spelling", () => {
    fc.assert(
      fc.property(fc.ipV6(), (address) => {
        // A mapped address belongs to IPv4 and has another network.
        if (/^::ffff:\d+\./i.test(address)) return;
        const network = networkPrefixOf(address)!;
        expect(network.endsWith("/48")).toBe(true);
        expect(holds(network, address)).toBe(true);
        expect(networkPrefixOf(`${address}%eth0`)).toBe(network);
      }),
    );
  });

  it("is the same for all addresses in it", () => {
    const group = fc.integer({ min: 0, max: 0xffff }).map((n) => n.toString(16));
    const groups = (n: number) => fc.array(group, { minLength: n, maxLength: n });
    fc.assert(
      fc.property(groups(3), groups(5), groups(5), (front, one, other) => {
        const of = (behind: string[]) => networkPrefixOf([...front, ...behind].join(":"));
        expect(of(one)).toBe(of(other));
      }),
    );
  });

  it.each([
    ["192.0.2.7", "192.0.2.0/24"],
    ["2001:db8:1:2::3", "2001:db8:1::/48"],
    ["2001:db8::3", "2001:db8::/48"],
    ["::1", "::/48"],
    ["0:0:5::1", "0:0:5::/48"],
    ["64:ff9b::192.0.2.1", "64:ff9b::/48"],
  ])("%s is in %s", (address, network) => expect(networkPrefixOf(address)).toBe(network));

  it.each(["", "localhost", "/run/x.sock", "1.2.3", "::gg"])("%j has no network", (address) =>
    expect(networkPrefixOf(address)).toBeUndefined(),
  );
});
