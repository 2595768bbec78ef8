// URLs in upstream responses, through a whole gateway: no internal address is ever dialed, in any
// form. The preloaded dialled.mjs records what the gateway dials.
import { readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jsonResponse } from "tollgate/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { storePort } from "../../kit/database/store-under-test.ts";
import { B64, PICTURE, raised, studio, type Studio } from "./studio.ts";

/** A public address without a machine, which is harmless to dial. */
const PUBLIC = "198.41.0.4";
const NAMES: { readonly [name: string]: readonly (readonly string[])[] } = {
  "loopback.test": [["127.0.0.1"]],
  "localhost.": [["127.0.0.1"]],
  "six.test": [["::1"]],
  "metadata.test": [["169.254.169.254"]],
  "mapped.test": [["::ffff:127.0.0.1"]],
  "nat64.test": [["64:ff9b::7f00:1"]],
  "teredo.test": [["2001:0:53aa:64c::1"]],
  "local.test": [["fd00:ec2::254"]],
  "both.test": [[PUBLIC, "127.0.0.1"]],
  // Public for each odd lookup, and internal for the next.
  "rebinding.test": [[PUBLIC], ["127.0.0.1"], [PUBLIC], ["10.0.0.1"], [PUBLIC], ["::1"]],
};

let s: Studio;
/** Another service on this machine, on both loopback addresses. It counts connections. */
let inside: Server[];
let port: number;
let visits = 0;
const record = join(tmpdir(), `dialled-${process.pid}`);

const listen = (at: number, host: string) =>
  new Promise<Server>((resolve) => {
    const server = createServer((socket) => {
      visits++;
      socket.end();
    });
    server.listen(at, host, () => resolve(server));
  });

/** Addresses that the gateway dialed since the last check, without its providers and its store. */
async function dialled(): Promise<string[]> {
  const lines = (await readFile(record, "utf8")).split("\n").filter(Boolean);
  await writeFile(record, "");
  const meant = [s.up.port, storePort].map((each) => `127.0.0.1 ${each}`);
  return lines.filter((line) => !meant.includes(line));
}

beforeAll(async () => {
  const [first] = [await listen(0, "127.0.0.1")];
  port = (first.address() as AddressInfo).port;
  inside = [first, await listen(port, "::1").catch(() => first)];
  await writeFile(record, "");
  s = await studio({
    hosts: ["local", "bfl"],
    program: (up) => ({
      NODE_OPTIONS: `--import ${new URL("dialled.mjs", import.meta.url).pathname}`,
      DIALLED: record,
      REACHED: [up.port, storePort].join(","),
      NAMES: JSON.stringify(NAMES),
    }),
    routes: {
      // The prompt is the returned URL.
      "POST /local/v1/images/generations": (asked) =>
        jsonResponse({ created: 1, data: [{ url: asked.json().prompt }] }),
      "GET /poll": (asked) =>
        jsonResponse({ status: "Ready", result: { sample: asked.query.get("sample") } }),
      "POST /bfl/v1/*": (asked) => {
        const { prompt } = asked.json();
        const poll = prompt.startsWith("poll:")
          ? prompt.slice("poll:".length)
          : `http://${asked.headers.host}/poll?sample=${encodeURIComponent(prompt)}`;
        return jsonResponse({ id: "j", polling_url: poll });
      },
      "GET /hop": (asked) => ({
        status: Number(asked.query.get("status") ?? 302),
        headers: { location: asked.query.get("to") ?? "" },
        body: "",
      }),
    },
  });
});
beforeEach(async () => {
  await dialled();
  visits = 0;
});
afterAll(async () => {
  await s[Symbol.asyncDispose]();
  inside.forEach((server) => server.close());
});

const draw = (prompt: string, more: object = {}) =>
  s.client().images.generate({ model: "local/sdxl", prompt, ...more });
const hop = (to: string, status = 302) =>
  `${s.up.url}/hop?status=${status}&to=${encodeURIComponent(to)}`;

/** Each with the port of the internal service, if possible. */
const forms = (): string[] => [
  ...[
    "127.0.0.1",
    "127.1",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
    "%31%32%37.0.0.1",
    "0.0.0.0",
    "0",
    "localhost",
    "LOCALHOST",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2001:0:53aa:64c::1]",
    "[fe80::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[ff02::1]",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "169.254.169.254",
    "192.0.0.192",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "me:you@127.0.0.1",
    ...Object.keys(NAMES).filter((name) => name !== "rebinding.test"),
  ].map((host) => `http://${host}:${port}/picture.png`),
  "http://169.254.169.254/latest/meta-data/",
  "https://127.0.0.1/",
  "file:///etc/passwd",
  "ftp://127.0.0.1/x",
  "gopher://127.0.0.1:70/x",
  "blob:http://127.0.0.1/x",
];

describe("internal addresses are never dialed", () => {
  it("in any form of the address", async () => {
    for (const url of forms()) {
      expect(await raised(draw(url)), url).toMatchObject({
        status: 502,
        code: expect.stringMatching(/^address_/),
      });
    }
    expect(await dialled()).toEqual([]);
    expect(visits).toBe(0);
  });

  it("after a redirect of any kind and depth", async () => {
    for (const url of forms())
      expect(await raised(draw(hop(url))), url).toMatchObject({
        status: 502,
        code: expect.stringMatching(/^address_/),
      });
    const target = `http://127.0.0.1:${port}/`;
    for (const url of [
      ...[301, 303, 307, 308].map((status) => hop(target, status)),
      hop(hop(target)),
      hop(hop(hop(target))),
      hop(`//127.0.0.1:${port}/`),
      hop(`http://localhost:${s.up.port}/picture.png`),
    ])
      expect(await raised(draw(url)), url).toMatchObject({
        status: 502,
        code: expect.stringMatching(/^address_/),
      });
    expect(await raised(draw(hop(hop(hop(hop(target))))))).toMatchObject({
      status: 502,
      code: "download_failed",
    });
    expect(await dialled()).toEqual([]);
    expect(visits).toBe(0);
  });

  it("by a name that resolves to a public address first and to an internal one when dialed", async () => {
    for (let i = 0; i < 6; i++) await raised(draw(`http://rebinding.test:${port}/`));
    const seen = await dialled();
    expect(new Set(seen)).toEqual(new Set([`${PUBLIC} ${port}`]));
    expect(seen).toHaveLength(3);
    expect(visits).toBe(0);
  });

  it("in a stream, for an asynchronous job, or during polling", async () => {
    const streamed = await raised(draw(`http://127.0.0.1:${port}/`, { stream: true }));
    expect(streamed).toMatchObject({ status: 502, code: "address_not_public" });
    for (const url of [`http://127.0.0.1:${port}/`, `http://nat64.test:${port}/`])
      for (const prompt of [url, `poll:${url}`])
        expect(
          await raised(s.client().images.generate({ model: "bfl/flux-pro-1.1", prompt })),
          prompt,
        ).toMatchObject({ status: 502 });
    const jobs = s.client().images.generate({
      model: "bfl/flux-pro-1.1",
      prompt: `poll:${hop(`http://127.0.0.1:${port}/`)}`,
    });
    expect(await raised(jobs)).toMatchObject({ status: 502 });
    expect(await dialled()).toEqual([]);
    expect(visits).toBe(0);
  });

  it("if only a URL is requested: it is forwarded unchanged", async () => {
    const url = `http://127.0.0.1:${port}/picture.png`;
    const made = await draw(url, { response_format: "url" });
    expect(made.data).toEqual([{ url }]);
    expect(await dialled()).toEqual([]);
  });
});

describe("allowed destinations", () => {
  it("include the provider's own origin from the config, and data URLs", async () => {
    const own = await draw(`${s.up.url}/picture.png`);
    expect(own.data).toEqual([{ b64_json: B64 }]);
    expect((await draw(hop("/picture.png"))).data).toEqual([{ b64_json: B64 }]);
    const data = await draw(`data:image/png;base64,${PICTURE.toString("base64")}`);
    expect(data.data).toEqual([{ b64_json: B64 }]);
    // Its own credential is sent to its API only.
    const fetched = s.up.requests.filter(({ path }) => path === "/picture.png");
    expect(fetched.length).toBeGreaterThan(0);
    for (const { headers } of fetched) expect(headers.authorization).toBeUndefined();
  });

  it("include the public internet", async () => {
    expect(await raised(draw(`http://${PUBLIC}:81/`))).toMatchObject({
      status: 502,
      code: "download_failed",
    });
    expect(await dialled()).toEqual([`${PUBLIC} 81`]);
  });
});
