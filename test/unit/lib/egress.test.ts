import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Agent, request } from "undici";
import * as fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { isPublicAddress, createEgressGuard } from "../../../src/lib/net/egress-guard.ts";

const CLOSED = [
  ["this host", "0.0.0.0"],
  ["this network", "0.1.2.3"],
  ["private", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1"],
  ["carrier NAT", "100.64.0.1", "100.127.255.255"],
  ["loopback", "127.0.0.1", "127.255.255.254"],
  ["link-local and cloud metadata", "169.254.169.254"],
  ["protocol assignments", "192.0.0.1", "192.0.0.192"],
  ["documentation", "192.0.2.1", "198.51.100.7", "203.0.113.9"],
  ["6to4 relays", "192.88.99.1"],
  ["benchmarks", "198.18.0.1", "198.19.255.255"],
  ["multicast", "224.0.0.1", "239.255.255.255"],
  ["reserved and broadcast", "240.0.0.1", "255.255.255.255"],
  ["unspecified and loopback, v6", "::", "::1", "0:0:0:0:0:0:0:1"],
  ["v4-mapped", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:8.8.8.8"],
  ["v4-translated", "::ffff:0:127.0.0.1"],
  ["v4-compatible", "::127.0.0.1", "::7f00:1"],
  ["NAT64", "64:ff9b::7f00:1", "64:ff9b::127.0.0.1", "64:ff9b::8.8.8.8", "64:ff9b:1::a00:1"],
  ["6to4", "2002:7f00:1::", "2002:a00:1::1"],
  ["Teredo", "2001::1", "2001:0:53aa:64c::1"],
  ["ORCHID and benchmarks, v6", "2001:20::1", "2001:2::1"],
  ["documentation, v6", "2001:db8::1", "3fff::1"],
  ["unique local, cloud metadata", "fc00::1", "fd00:ec2::254", "fdff::1"],
  ["link-local, v6", "fe80::1", "febf::1", "fe80::1%eth0"],
  ["site-local", "fec0::1"],
  ["multicast, v6", "ff02::1"],
  ["discard", "100::1"],
  ["segment routing", "5f00::1"],
  ["a zone on a public one", "2606:4700::1111%1"],
  ["not an address", "", "localhost", "127.1", "0x7f.1", "2130706433", "1.2.3.4.5", "[::1]"],
] as const;

const OPEN = [
  "1.1.1.1",
  "8.8.8.8",
  "9.255.255.255",
  "11.0.0.0",
  "100.63.255.255",
  "100.128.0.0",
  "126.255.255.255",
  "128.0.0.1",
  "169.253.255.255",
  "169.255.0.0",
  "172.15.255.255",
  "172.32.0.0",
  "192.0.1.0",
  "192.167.255.255",
  "192.169.0.0",
  "198.17.255.255",
  "198.20.0.0",
  "223.255.255.255",
  "2606:4700:4700::1111",
  "2001:4860:4860::8888",
  "2a00:1450:4001:82a::200e",
];

describe("addresses on the public internet", () => {
  for (const [name, ...addresses] of CLOSED)
    for (const address of addresses)
      it(`exclude ${address || '""'} (${name})`, () =>
        expect(isPublicAddress(address)).toBe(false));
  for (const address of OPEN)
    it(`include ${address}`, () => expect(isPublicAddress(address)).toBe(true));

  it("exclude every IPv6 form of a private IPv4 address", () => {
    const closed4 = fc
      .tuple(
        fc.constantFrom("10", "127", "0", "224", "240"),
        ...Array.from({ length: 3 }, () => fc.nat(255)),
      )
      .map((parts) => parts.join("."));
    const hex = (a: string) => {
      const [b0, b1, b2, b3] = a.split(".").map(Number) as [number, number, number, number];
      return `${((b0 << 8) | b1).toString(16)}:${((b2 << 8) | b3).toString(16)}`;
    };
    fc.assert(
      fc.property(closed4, (a) => {
        const forms = [
          a,
          `::ffff:${a}`,
          `::${a}`,
          `::ffff:0:${a}`,
          `64:ff9b::${a}`,
          `::ffff:${hex(a)}`,
          `64:ff9b:1::${hex(a)}`,
          `2002:${hex(a)}::1`,
          `2001:0:${hex(a)}::1`,
        ];
        return forms.every((form) => !isPublicAddress(form));
      }),
    );
  });
});

describe("URLs", () => {
  const { check } = createEgressGuard();
  const CHECKED: [string, string | undefined][] = [
    ["http://127.0.0.1/", "address_not_public"],
    ["http://2130706433/", "address_not_public"],
    ["http://0x7f.1/", "address_not_public"],
    ["http://0177.0.0.1/", "address_not_public"],
    ["http://127.1/", "address_not_public"],
    ["http://①②⑦.⓪.⓪.①/", "address_not_public"],
    ["http://127。0。0。1/", "address_not_public"],
    ["http://[::1]/", "address_not_public"],
    ["http://[::ffff:127.0.0.1]/", "address_not_public"],
    ["http://[64:ff9b::a9fe:a9fe]/", "address_not_public"],
    ["http://169.254.169.254/latest/meta-data", "address_not_public"],
    ["file:///etc/passwd", "address_scheme"],
    ["data:text/plain,x", "address_scheme"],
    ["gopher://1.1.1.1/", "address_scheme"],
    ["https://me:secret@example.com/", "address_credentials"],
    ["//nowhere", "address_malformed"],
    ["https://example.com/x.png", undefined],
    ["https://1.1.1.1/x.png", undefined],
  ];
  for (const [url, code] of CHECKED)
    it(`${url} ${code ?? "is allowed"}`, () => {
      if (code) expect(() => check(url)).toThrowError(expect.objectContaining({ code }));
      else expect(check(url).href).toBe(new URL(url).href);
    });
});

describe("dialing", () => {
  const servers: Server[] = [];
  let connections = 0;
  const server = async (): Promise<number> => {
    const s = createServer((_, answer) => answer.end("here"));
    s.on("connection", () => connections++);
    servers.push(s);
    await new Promise<void>((listening) => s.listen(0, "127.0.0.1", listening));
    return (s.address() as AddressInfo).port;
  };
  afterAll(() => servers.forEach((s) => s.close()));

  it("a name that resolves to an internal address is rejected during the lookup, without a connection", async () => {
    const port = await server();
    const agent = new Agent({ connect: createEgressGuard().connect });
    for (const host of ["localhost", "127.0.0.1", "[::1]", "[::ffff:7f00:1]", "0.0.0.0"])
      await expect(request(`http://${host}:${port}/`, { dispatcher: agent })).rejects.toThrowError(
        expect.objectContaining({ code: "address_not_public" }),
      );
    expect(connections).toBe(0);
    await agent.close();
  });

  it("checks the address of the connection again", async () => {
    const port = await server();
    let asked = 0;
    // Allows the lookup and not the socket, like a lookup with a false result.
    const agent = new Agent({ connect: createEgressGuard(() => asked++ === 0).connect });
    await expect(request(`http://127.0.0.1:${port}/`, { dispatcher: agent })).rejects.toThrowError(
      expect.objectContaining({ code: "address_not_public" }),
    );
    await agent.close();
  });

  it("an allowed network is dialed", async () => {
    const port = await server();
    const agent = new Agent({ connect: createEgressGuard((a) => a === "127.0.0.1").connect });
    const { body } = await request(`http://127.0.0.1:${port}/`, { dispatcher: agent });
    expect(await body.text()).toBe("here");
    await agent.close();
  });

  it("one private address of several suffices for a rejection", async () => {
    const { lookup } = createEgressGuard((a) => a !== "127.0.0.1");
    const error = await new Promise((done) => lookup("localhost", { all: true }, (e) => done(e)));
    expect(error).toMatchObject({ code: "address_not_public" });
  });

  it("the lookup supports both forms that net.connect uses", async () => {
    const { lookup } = createEgressGuard(() => true);
    const all = await new Promise((done) =>
      lookup("127.0.0.1", { all: true }, (_, addresses) => done(addresses)),
    );
    expect(all).toEqual([{ address: "127.0.0.1", family: 4 }]);
    const one = await new Promise((done) =>
      lookup("127.0.0.1", {}, (_, address, family) => done([address, family])),
    );
    expect(one).toEqual(["127.0.0.1", 4]);
  });
});
