// Forms in both directions, responses that are not JSON, and several protocols at one path: a
// package with a frontend, protocols, and a provider, on public exports only, through a whole
// gateway.
import { readdirSync, readFileSync } from "node:fs";
import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import fc from "fast-check";
import OpenAI, { toFile } from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import {
  typeCheckPackage,
  checkPackage,
  createPackage,
  removeFolder,
} from "../../kit/process/third-party-package.ts";
import { until } from "../../kit/wait.ts";
import { trialCount } from "../../kit/law-effort.ts";

interface Asked {
  path: string;
  type: string;
  body: Buffer;
}
type Answer = (asked: Asked, res: ServerResponse) => void;

const MIB = 1024 * 1024;
const asked: Asked[] = [];
let answer: Answer;
const upstreamServer = createServer((req, res) => {
  const chunks: Buffer[] = [];
  req.on("data", (chunk: Buffer) => chunks.push(chunk));
  req.on("end", () => {
    const one = {
      path: req.url!,
      type: req.headers["content-type"] ?? "",
      body: Buffer.concat(chunks),
    };
    asked.push(one);
    answer(one, res);
  });
});

const says =
  (mime: string, ...pieces: (string | Buffer)[]): Answer =>
  (_asked, res) => {
    res.writeHead(200, { "content-type": mime });
    for (const piece of pieces) res.write(piece);
    res.end();
  };
const transcript = says(
  "application/json",
  JSON.stringify({ text: "Hello", usage: { type: "duration", seconds: 7 } }),
);

let folder: string;
let gateway: InProcessGateway;
beforeAll(async () => {
  folder = createPackage("audio", "tollgate-audio");
  upstreamServer.listen(0, "127.0.0.1");
  await once(upstreamServer, "listening");
  const base = `http://127.0.0.1:${(upstreamServer.address() as AddressInfo).port}/v1`;
  const provider = (passes: boolean) =>
    `{ use: ./src/provider.ts, with: { base_url: "${base}", api_key: sk-up, passes: ${passes} }, trust_policy: true }`;
  gateway = await startInProcess({
    dir: folder,
    yaml: `frontends: [chat-completions, models, ./src/frontend.ts]
middleware: [auth, zdr, limits, usage]
max_body: 4 MiB
bounds: { in_flight: 12 MiB }
providers:
  demo: { use: demo }
  passing: ${provider(true)}
  turned: ${provider(false)}
`,
  });
});
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  upstreamServer.close();
  upstreamServer.closeAllConnections();
  removeFolder(folder);
});
beforeEach(() => {
  asked.length = 0;
  answer = transcript;
});

const url = (path: string) => `${gateway.url}${path}`;
const bearer = () => ({ authorization: `Bearer ${gateway.key}` });
const HEARS = "/v1/audio/transcriptions";
const SPEAKS = "/v1/audio/speech";

/** In chunks of any size, as from a socket. */
async function sent(
  path: string,
  type: string,
  body: Buffer,
  cuts: readonly number[] = [],
  headers: object = {},
): Promise<{ status: number; type: string; body: Buffer }> {
  const req = request(url(path), {
    method: "POST",
    headers: { "content-type": type, ...bearer(), ...headers },
    agent: false,
  });
  const answered = once(req, "response") as Promise<[IncomingMessage]>;
  answered.catch(() => {});
  // A client that is rejected early may still be writing.
  req.on("error", () => {});
  let at = 0;
  for (const cut of cuts) {
    if (at >= body.length || cut === 0) continue;
    req.write(body.subarray(at, at + cut));
    at += cut;
    await new Promise((resolve) => void setImmediate(resolve));
  }
  req.end(body.subarray(at));
  const [res] = await answered;
  const chunks: Buffer[] = [];
  for await (const chunk of res) chunks.push(chunk as Buffer);
  const mime = res.headers["content-type"] ?? "";
  return { status: res.statusCode!, type: mime, body: Buffer.concat(chunks) };
}

const part = (boundary: string, head: string, content: Buffer | string) =>
  Buffer.concat([
    Buffer.from(`--${boundary}\r\n${head}\r\n\r\n`),
    Buffer.from(content as string),
    Buffer.from("\r\n"),
  ]);
const field = (boundary: string, name: string, content: string) =>
  part(boundary, `Content-Disposition: form-data; name="${name}"`, content);
const file = (boundary: string, content: Buffer) =>
  part(
    boundary,
    'Content-Disposition: form-data; name="file"; filename="a.wav"\r\nContent-Type: audio/wav',
    content,
  );
/** The file first, like OpenAI's client library. */
const form = (boundary: string, model: string, content: Buffer, ...more: Buffer[]) =>
  Buffer.concat([
    file(boundary, content),
    field(boundary, "model", model),
    ...more,
    Buffer.from(`--${boundary}--\r\n`),
  ]);
const typeOf = (boundary: string) => `multipart/form-data; boundary="${boundary}"`;
const error = ({ status, body }: { status: number; body: Buffer }) => {
  const { error } = JSON.parse(body.toString()) as { error: { code: string; message: string } };
  return [status, error.code];
};

/** Another implementation of the standard parses the outgoing form. */
async function judged({ type, body }: Asked): Promise<[string, unknown][]> {
  const read = await new Response(new Uint8Array(body), {
    headers: { "content-type": type },
  }).formData();
  const all: [string, unknown][] = [];
  for (const [name, value] of read)
    all.push([
      name,
      typeof value === "string"
        ? value
        : [value.name, value.type, Buffer.from(await value.arrayBuffer()).toString("latin1")],
    ]);
  return all;
}

describe("the package", () => {
  it.each([
    ["with every strictness", { exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true }],
    ["with neither, and declares itself", { declaration: true }],
  ])("compiles %s", async (_name, options) =>
    expect(await typeCheckPackage(folder, options)).toEqual([]),
  );

  it("keeps the contract, as a provider and as a frontend", async () =>
    expect(await checkPackage(folder)).toEqual([]));
});

describe("a form", () => {
  it("is forwarded unchanged except for its model's name, for any content and any chunks", () =>
    fc.assert(
      fc.asyncProperty(
        fc.stringMatching(/^[a-z'()+_,./:=?-]{0,20}[a-z]$/),
        fc.uint8Array({ maxLength: 3000 }),
        fc.array(fc.nat(900), { maxLength: 8 }),
        async (boundary, bytes, cuts) => {
          const content = Buffer.from(bytes);
          fc.pre(!content.includes(`--${boundary}`) && !"passing/ear".includes(`--${boundary}`));
          asked.length = 0;
          const body = form(boundary, "passing/ear", content, field(boundary, "language", "en"));
          const got = await sent(HEARS, typeOf(boundary), body, cuts);
          expect(got.status, got.body.toString()).toBe(200);
          const due = form(boundary, "ear", content, field(boundary, "language", "en"));
          expect(asked[0]!.body.equals(due)).toBe(true);
          expect(asked[0]!.type).toMatch(/^multipart\/form-data; boundary=/);
          expect(asked[0]!.type).toContain(boundary);
        },
      ),
      { numRuns: trialCount(40) },
    ));

  it("is written again in translated mode, and another parser finds the same content", () =>
    fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 3000 }), async (bytes) => {
        asked.length = 0;
        const content = Buffer.from(bytes);
        fc.pre(!content.includes("--b"));
        const more = ["word", "segment"].map((one) => field("b", "timestamp_granularities[]", one));
        const body = form("b", "turned/ear", content, field("b", "temperature", "0.5"), ...more);
        const got = await sent(HEARS, typeOf("b"), body);
        expect(JSON.parse(got.body.toString())).toEqual({
          text: "Hello",
          usage: { type: "duration", seconds: 7 },
        });
        expect((await judged(asked[0]!)).toSorted()).toEqual(
          [
            ["model", "ear"],
            ["file", ["a.wav", "audio/wav", content.toString("latin1")]],
            ["temperature", "0.5"],
            ["timestamp_granularities[]", "word"],
            ["timestamp_granularities[]", "segment"],
          ].toSorted(),
        );
        expect(asked[0]!.body.includes("--b\r\n")).toBe(false);
      }),
      { numRuns: trialCount(25) },
    ));

  it("of the official library is accepted, non-streaming and streaming", async () => {
    const client = new OpenAI({ baseURL: url("/v1"), apiKey: gateway.key, maxRetries: 0 });
    const bytes = Buffer.from([0, 13, 10, 45, 45, 255]);
    for (const provider of ["passing", "turned"]) {
      const got = await client.audio.transcriptions.create({
        file: await toFile(bytes, "né.wav"),
        model: `${provider}/ear`,
        timestamp_granularities: ["word"],
      });
      expect(got.text).toBe("Hello");
      const all = await judged(asked.at(-1)!);
      expect(all).toContainEqual(["model", "ear"]);
      expect(all).toContainEqual(["timestamp_granularities[]", "word"]);
      expect(all.find(([name]) => name === "file")?.[1]).toMatchObject([
        "né.wav",
        expect.anything(),
        bytes.toString("latin1"),
      ]);
    }
    answer = says("audio/mpeg", bytes, bytes);
    const spoken = await client.audio.speech.create({
      model: "passing/mouth",
      input: "Hello",
      voice: "alloy",
    });
    expect(spoken.headers.get("content-type")).toBe("audio/mpeg");
    expect(Buffer.from(await spoken.arrayBuffer())).toEqual(Buffer.concat([bytes, bytes]));
  });

  it.each([
    ["torn", (whole: Buffer) => whole.subarray(0, whole.length - 9), "invalid_form"],
    [
      "with its model twice",
      (w: Buffer) => Buffer.concat([field("b", "model", "x"), w]),
      "duplicate_key",
    ],
    [
      "with another case of a name",
      (w: Buffer) => Buffer.concat([field("b", "Model", "x"), w]),
      "ambiguous_key",
    ],
    [
      "with too many parts",
      (w: Buffer) =>
        Buffer.concat([...Array.from({ length: 64 }, () => field("b", "x[]", "y")), w]),
      "too_many_form_parts",
    ],
    [
      "with a boundary inside",
      (w: Buffer) => Buffer.concat([field("b", "x", "\n--b\r\nsmuggled"), w]),
      "invalid_form",
    ],
    [
      "without its file",
      () => Buffer.concat([field("b", "model", "passing/ear"), Buffer.from("--b--")]),
      "invalid_request",
    ],
    [
      "with a text for a file",
      () =>
        Buffer.concat([
          field("b", "file", "x"),
          field("b", "model", "passing/ear"),
          Buffer.from("--b--"),
        ]),
      "invalid_request",
    ],
  ])(
    "%s is rejected in the client's protocol, and reaches no provider",
    async (_what, make, code) => {
      const whole = form("b", "passing/ear", Buffer.from("RIFF"));
      const got = await sent(HEARS, typeOf("b"), make(whole));
      expect(error(got)).toEqual([code === "too_many_form_parts" ? 413 : 400, code]);
      expect(got.type).toBe("application/json");
      expect(asked).toEqual([]);
    },
  );

  it("is rejected on a JSON route, and JSON is rejected on a form route", async () => {
    const whole = form("b", "demo/echo", Buffer.from("x"));
    expect(error(await sent("/v1/chat/completions", typeOf("b"), whole))).toEqual([
      400,
      "unsupported_media_type",
    ]);
    const body = Buffer.from('{"model":"passing/ear"}');
    expect(error(await sent(HEARS, "application/json", body))).toEqual([
      400,
      "unsupported_media_type",
    ]);
    expect(error(await sent(HEARS, "multipart/form-data", whole))).toEqual([400, "invalid_form"]);
  });

  it("may be as large as a body, and concurrent ones as large as the gateway's memory limit", async () => {
    // By its headers only: the body is not read.
    const large = request(url(HEARS), {
      method: "POST",
      headers: { "content-type": typeOf("b"), "content-length": 5 * MIB, ...bearer() },
    });
    large.on("error", () => {}).write("--b\r\n");
    const [refused] = (await once(large, "response")) as [IncomingMessage];
    expect(refused.statusCode).toBe(413);
    large.destroy();
    const whole = form("b", "passing/ear", Buffer.alloc(3 * MIB, 1));
    const many = await Promise.all(
      Array.from({ length: 12 }, () =>
        sent(HEARS, typeOf("b"), whole, [1000], { "content-length": whole.length }).catch(
          () => undefined,
        ),
      ),
    );
    const statuses = many.map((got) => got?.status);
    expect(statuses).toContain(200);
    expect(statuses.some((status) => status === 503)).toBe(true);
    // And all memory is free again.
    await until(async () => (await sent(HEARS, typeOf("b"), whole)).status === 200);
  });

  it("sends only fields on the allowlist under Service-ZDR", async () => {
    const zdr = { "service-zdr": "required" };
    for (const provider of ["passing", "turned"]) {
      asked.length = 0;
      const whole = (...more: Buffer[]) => form("b", `${provider}/ear`, Buffer.from("x"), ...more);
      const fine = await sent(HEARS, typeOf("b"), whole(field("b", "language", "en")), [], zdr);
      expect(fine.status, fine.body.toString()).toBe(200);
      expect(asked).toHaveLength(1);
      for (const name of ["novel", "novel[]", "language[deep]"]) {
        const strange = await sent(HEARS, typeOf("b"), whole(field("b", name, "x")), [], zdr);
        expect(strange.status, name).toBe(400);
      }
      const state = await sent(HEARS, typeOf("b"), whole(field("b", "store", "true")), [], zdr);
      expect(state.status).toBe(400);
      expect(asked).toHaveLength(1);
    }
  });

  it("reports references to stored content, like JSON", async () => {
    for (const [name, value] of [
      ["images[][file_id]", "f1"],
      ["background", "true"],
      ["background", "1"],
    ] as const) {
      const whole = form("b", "passing/ear", Buffer.from("x"), field("b", name, value));
      const got = await sent(HEARS, typeOf("b"), whole);
      expect(got.status, name).toBe(400);
      expect(asked).toEqual([]);
    }
  });

  it("is billed by the upstream's counts, and is written to no file", async () => {
    const canary = "canary-of-a-form-7d1f";
    const { items: before } = (await gateway.ask("ledger.entries", { limit: 1 })) as any;
    for (const provider of ["passing", "turned"])
      await sent(
        HEARS,
        typeOf("b"),
        form("b", `${provider}/ear`, Buffer.from(canary.repeat(9_000))),
      );
    const { items } = (await gateway.ask("ledger.entries", { limit: 1000 })) as any;
    const rows = items.filter((row: any) => row.kind === "settle").slice(-2);
    expect(rows.map(({ state, usage, costNano }: any) => [state, usage, String(costNano)])).toEqual(
      [
        ["exact", { seconds: 7 }, "700000"],
        ["exact", { seconds: 7 }, "700000"],
      ],
    );
    expect(before).toBeDefined();
    for (const entry of readdirSync(gateway.stateDir, { recursive: true, withFileTypes: true }))
      if (entry.isFile())
        expect(readFileSync(join(entry.parentPath, entry.name), "latin1")).not.toContain(canary);
    expect(gateway.output()).not.toContain(canary);
  });
});

describe("a response", () => {
  const whole = (model: string, ...more: [string, string][]) =>
    form("b", model, Buffer.from("x"), ...more.map(([name, value]) => field("b", name, value)));

  it("has the protocol's own type in translated mode, and the upstream's if its relay states so", async () => {
    answer = says("text/plain; charset=iso-8859-1", Buffer.from("H\u00e9", "latin1"));
    const passed = await sent(
      HEARS,
      typeOf("b"),
      whole("passing/ear", ["response_format", "text"]),
    );
    expect([passed.type, passed.body.toString("latin1")]).toEqual([
      "text/plain; charset=iso-8859-1",
      "Hé",
    ]);
    answer = transcript;
    const turned = await sent(HEARS, typeOf("b"), whole("turned/ear", ["response_format", "text"]));
    expect([turned.type, turned.body.toString()]).toEqual(["text/plain; charset=utf-8", "Hello"]);
  });

  it.each(["passing", "turned"])("in JSON lines is a stream: %s", async (provider) => {
    const lines = ['{"delta":"Hel"}\n', '{"delta":"lo"}\n{"done"', ':true,"seconds":3}\n'];
    answer = says("application/x-ndjson", ...lines);
    const got = await sent(HEARS, typeOf("b"), whole(`${provider}/ear`, ["stream", "true"]));
    expect(got.type).toBe("application/x-ndjson");
    const said = got.body.toString().trim().split("\n");
    expect(said.map((line) => JSON.parse(line))).toEqual([
      { delta: "Hel" },
      { delta: "lo" },
      { done: true, seconds: 3 },
    ]);
  });

  it.each([
    ["passing", "audio/mpeg"],
    ["turned", "audio/basic"],
  ])("with audio is sent as the upstream sent it, byte for byte: %s", async (provider, mime) => {
    const pieces = [1, 2, 3].map((n) => Buffer.alloc(20_000, n * 77));
    let more: () => void = () => {};
    answer = (_asked, res) => {
      res.writeHead(200, { "content-type": "audio/mpeg" });
      res.write(Buffer.concat(pieces.slice(0, 2)));
      more = () => res.end(pieces[2]);
    };
    const res = await fetch(url(SPEAKS), {
      method: "POST",
      headers: { "content-type": "application/json", ...bearer() },
      body: JSON.stringify({ model: `${provider}/mouth`, input: "twelve signs" }),
    });
    expect(res.headers.get("content-type")).toBe(mime);
    expect(res.headers.get("content-length")).toBeNull();
    const reader = res.body!.getReader();
    const heard: Uint8Array[] = [];
    // The first part arrives before upstream has sent the rest.
    if (provider === "turned") heard.push((await reader.read()).value!);
    more();
    for (let next = await reader.read(); !next.done; next = await reader.read())
      heard.push(next.value);
    expect(Buffer.concat(heard).equals(Buffer.concat(pieces))).toBe(true);
    const { items } = (await gateway.ask("ledger.entries", { limit: 1000 })) as any;
    const row = items.findLast((one: any) => one.kind === "settle");
    expect([row.state, row.usage.characters, String(row.costNano)]).toEqual([
      "exact",
      12,
      "180000",
    ]);
  });
});

describe("several protocols at one address", () => {
  it("are selected by the body, with errors, types, and endpoints of their own", async () => {
    const heard = await sent("/any/ear", typeOf("b"), form("b", "x", Buffer.from("x")));
    expect(heard.status, heard.body.toString()).toBe(200);
    expect(asked[0]!.path).toBe("/v1/audio/transcriptions");
    expect(await judged(asked[0]!)).toContainEqual(["model", "ear"]);
    answer = says("audio/wav", "RIFF");
    const body = Buffer.from('{"model":"x","input":"Hi"}');
    const spoken = await sent("/any/mouth", "application/json", body);
    expect([spoken.status, spoken.type, spoken.body.toString()]).toEqual([
      200,
      "audio/wav",
      "RIFF",
    ]);
    expect(asked[1]!.path).toBe("/v1/audio/speech");
    // Each body is validated by the schema of its format.
    const wrong = await sent(
      "/any/mouth",
      "application/json",
      Buffer.from('{"model":"x","input":1}'),
    );
    expect(JSON.parse(wrong.body.toString()).error.message).toBe("/input must be string.");
    const fileless = await sent("/any/ear", "application/json", Buffer.from('{"model":"x"}'));
    expect(JSON.parse(fileless.body.toString()).error.message).toBe("/file is required.");
    // In another format than the protocol's.
    const other = await sent("/any/ear", "application/json", body);
    expect(JSON.parse(other.body.toString()).error.message).toMatch(
      /passing\/ear is a transcription model\. Send requests for it to \/v1\/audio\/transcriptions/,
    );
    expect(asked).toHaveLength(2);
  });
});
