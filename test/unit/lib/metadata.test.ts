// The cloud's metadata service has many spellings, and each is recognized.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  createMetadataGuard,
  isMetadataAddress,
  isMetadataUrl,
} from "../../../src/lib/net/egress-guard.ts";

const ADDRESSES = [
  "169.254.169.254",
  "169.254.170.2",
  "169.254.170.23",
  "100.100.100.200",
  "168.63.129.16",
  "192.0.0.192",
  "169.254.0.23",
];

/** Spellings of one IPv4 address. */
const spelled = fc
  .tuple(fc.constantFrom(...ADDRESSES), fc.constantFrom("dotted", "whole", "hex", "octal", "v6"))
  .map(([address, how]) => {
    const bytes = address.split(".").map(Number);
    const whole = bytes.reduce((sum, byte) => sum * 256 + byte, 0);
    const hex = (byte: number) => byte.toString(16).padStart(2, "0");
    if (how === "whole") return String(whole);
    if (how === "hex") return bytes.map((byte) => `0x${hex(byte)}`).join(".");
    if (how === "octal") return bytes.map((byte) => `0${byte.toString(8)}`).join(".");
    if (how === "v6") {
      const [a, b, c, d] = bytes.map(hex) as [string, string, string, string];
      return `[::ffff:${a}${b}:${c}${d}]`;
    }
    return address;
  });

describe("the metadata service", () => {
  it("is recognized in every spelling", () => {
    fc.assert(
      fc.property(
        spelled,
        fc.constantFrom("", ".", ":80", ":8080"),
        fc.constantFrom("http", "https"),
        (host, tail, scheme) => {
          if (host.startsWith("[") && tail === ".") return;
          expect(isMetadataUrl(new URL(`${scheme}://${host}${tail}/latest`))).toBe(true);
        },
      ),
    );
    for (const host of ["[fd00:ec2::254]", "[fd00:0ec2::0254]", "[fd20:ce::254]"])
      expect(isMetadataUrl(new URL(`http://${host}/`))).toBe(true);
    for (const name of ["metadata.google.internal", "METADATA.google.internal.", "metadata"])
      expect(isMetadataUrl(new URL(`http://${name}/`))).toBe(true);
  });

  it("is not confused with another address", () => {
    for (const host of ["169.254.169.253", "127.0.0.1", "[::1]", "metadata.example", "10.0.0.1"])
      expect(isMetadataUrl(new URL(`http://${host}/`))).toBe(false);
    fc.assert(
      fc.property(fc.ipV4(), (ip) => {
        expect(isMetadataAddress(ip)).toBe(ADDRESSES.includes(ip));
      }),
    );
  });

  it("is recognized when a name is resolved, whatever the name is", async () => {
    const { lookup } = createMetadataGuard();
    for (const address of [...ADDRESSES, "fd00:ec2::254"]) {
      const { promise, resolve } = Promise.withResolvers<NodeJS.ErrnoException | null>();
      lookup(address, { all: true }, (error) => resolve(error));
      expect((await promise)?.code).toBe("address_metadata");
    }
  });
});
