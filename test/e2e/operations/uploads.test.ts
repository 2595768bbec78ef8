// Files from clients: large, slow, aborted, concurrent, and ambiguous forms. No partial file
// reaches a provider, none stays in memory, and a rejection has an explanation.
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { request, type ClientRequest, type IncomingMessage } from "node:http";
import { jsonResponse, type UpstreamRequest } from "tollgate/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startDaemonWithUpstream, type DaemonWithUpstream } from "../../kit/process/daemon.ts";
import { NIGHTLY } from "../../kit/law-effort.ts";
import { until } from "../../kit/wait.ts";
import { formIn, wav } from "./audio-vendors.ts";

const MIB = 1024 * 1024;
const CAP = 96 * MIB;

let at: DaemonWithUpstream;
beforeAll(async () => {
  at = await startDaemonWithUpstream(
    {
      "POST /v1/audio/transcriptions": (asked: UpstreamRequest) => ({
        ...jsonResponse({ text: "la la la" }),
        // Memory is held for some time.
        delayMs: asked.body.includes("linger") ? 400 : 0,
        billedUsage: { seconds: 1 },
      }),
    },
    (up) => `
store: { use: memory }
retries: { per_target: 1 }
frontends: [transcriptions]
bounds: { in_flight: 96MiB }
providers:
  local:
    use: openai-compatible
    with: { base_url: "${up}/v1", transcriptions: ["ear"], list_models: false }
    models: { ear: { operation: transcript, price: { seconds: "0.0001" } } }
`,
  );
});
afterAll(() => at[Symbol.asyncDispose]());
beforeEach(() => at.up.reset());

const BOUNDARY = "----a-client-s-own";
const part = (head: string, content: Buffer | string) =>
  Buffer.concat([
    Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; ${head}\r\n\r\n`),
    Buffer.from(content as string),
    Buffer.from("\r\n"),
  ]);
const field = (name: string, value: string) => part(`name="${name}"`, value);
const fileOf = (content: Buffer) =>
  part('name="file"; filename="sound.wav"\r\nContent-Type: audio/wav', content);
const form = (content: Buffer, ...more: Buffer[]) =>
  Buffer.concat([
    fileOf(content),
    field("model", "local/ear"),
    ...more,
    Buffer.from(`--${BOUNDARY}--\r\n`),
  ]);

interface Got {
  readonly status: number;
  readonly body: any;
}

function open(length: number): ClientRequest {
  const req = request(`${at.gateway.url}/v1/audio/transcriptions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${at.gateway.key}`,
      "content-type": `multipart/form-data; boundary=${BOUNDARY}`,
      "content-length": length,
    },
    agent: false,
  });
  // A client that is rejected early may still be writing.
  return req.on("error", () => {});
}

async function answered(req: ClientRequest): Promise<Got> {
  const answer = await once(req, "response").catch(() => undefined);
  // Rejected during its writes, and the response was lost on the way.
  if (!answer) return { status: 0, body: undefined };
  const [res] = answer as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of res) chunks.push(chunk as Buffer);
  return { status: res.statusCode!, body: JSON.parse(Buffer.concat(chunks).toString()) };
}

function sent(body: Buffer): Promise<Got> {
  const req = open(body.length);
  const got = answered(req);
  req.end(body);
  return got;
}

const rows = async () =>
  ((await at.gateway.ask("ledger.entries", { limit: 500 })) as any).items.filter(
    ({ kind }: any) => kind === "settle",
  );

describe("one file", () => {
  it("of 25 MB is forwarded to the last byte, and billed by its duration", async () => {
    const sound = wav(3_000);
    for (let i = 44; i < sound.length; i += 997) sound[i] = i & 255;
    const got = await sent(form(sound));
    expect(got).toMatchObject({ status: 200, body: { text: "la la la" } });
    const fields = await formIn(at.up.requests[0]!);
    expect((fields.get("file") as Buffer).equals(sound)).toBe(true);
    expect(fields.get("model")).toBe("ear");
    expect((await rows()).at(-1)).toMatchObject({ state: "exact", usage: { seconds: 3_000 } });
  });

  it("that arrives slowly reaches no provider before it is complete", async () => {
    const body = form(wav(2));
    const req = open(body.length);
    const got = answered(req);
    for (let i = 0; i < 20; i++) {
      req.write(
        body.subarray(Math.floor((body.length * i) / 20), Math.floor((body.length * (i + 1)) / 20)),
      );
      await reached();
      if (i < 19) expect(at.up.requests).toHaveLength(0);
    }
    req.end();
    expect((await got).status).toBe(200);
    expect((await formIn(at.up.requests[0]!)).get("file")).toEqual(wav(2));
  });

  it("that is aborted reaches no provider, and costs nothing", async () => {
    const before = (await rows()).length;
    const body = form(wav(100));
    for (const share of [0.01, 0.5, 0.99]) {
      const req = open(body.length);
      req.write(body.subarray(0, Math.floor(body.length * share)));
      await reached();
      req.destroy();
    }
    expect((await sent(form(wav(1)))).status).toBe(200);
    expect(at.up.requests).toHaveLength(1);
    expect((await rows()).length).toBe(before + 1);
  });
});

/** Waits for a response of the gateway on another connection: earlier data has then arrived too. */
const reached = () => at.gateway.ask("status");

describe("an ambiguous form", () => {
  const REFUSED: readonly (readonly [string, () => Buffer, number, string])[] = [
    [
      "65 parts",
      () => form(wav(1), ...Array.from({ length: 63 }, (_, i) => field(`x${i}`, "y"))),
      413,
      "too_many_form_parts",
    ],
    ["its model twice", () => form(wav(1), field("model", "local/other")), 400, "duplicate_key"],
    ["its file twice", () => form(wav(1), fileOf(wav(2))), 400, "duplicate_key"],
    [
      "the boundary inside the file",
      () => form(Buffer.from(`RIFF--${BOUNDARY}--more`)),
      400,
      "invalid_form",
    ],
    [
      "another part inside the file",
      () =>
        form(
          Buffer.from(
            `RIFF\n--${BOUNDARY}\r\nContent-Disposition: form-data; name="language"\r\n\r\nde`,
          ),
        ),
      400,
      "invalid_form",
    ],
    ["an end before its end", () => form(wav(1)).subarray(0, -20), 400, "invalid_form"],
    [
      "a file that is a text",
      () =>
        Buffer.concat([
          field("file", "RIFF"),
          field("model", "local/ear"),
          Buffer.from(`--${BOUNDARY}--`),
        ]),
      400,
      "invalid_request",
    ],
    [
      "another case of a name",
      () => form(wav(1), field("Model", "local/other")),
      400,
      "ambiguous_key",
    ],
  ];
  it.each(REFUSED)("%s", async (_what, make, status, code) => {
    const got = await sent(make());
    expect([got.status, got.body.error.code]).toEqual([status, code]);
    expect(at.up.requests).toEqual([]);
  });

  it("may have up to 64 parts", async () =>
    expect(
      (await sent(form(wav(1), ...Array.from({ length: 62 }, (_, i) => field(`x${i}`, "y")))))
        .status,
    ).toBe(200));
});

describe("forty concurrent uploads", () => {
  const MANY = 40;
  const ROUNDS = NIGHTLY ? 6 : 3;
  const resident = (): number =>
    Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${at.gateway.pid}/status`, "utf8"))![1]) *
    1024;

  it("stay below the memory limit, and leave no files", async () => {
    const body = form(wav(1_000, Buffer.from("linger")));
    const sizes: number[] = [];
    let [served, busy] = [0, 0];
    for (let round = 0; round < ROUNDS; round++) {
      let most = 0;
      const looking = setInterval(() => (most = Math.max(most, resident())), 20);
      const all = await Promise.all(Array.from({ length: MANY }, () => sent(body)));
      clearInterval(looking);
      for (const got of all) {
        expect([0, 200, 503]).toContain(got.status);
        if (got.status === 200) served++;
        else busy++;
        if (got.status === 503) expect(got.body.error.code).toBe("gateway_busy");
      }
      sizes.push(most);
    }
    expect(served).toBeGreaterThan(ROUNDS);
    expect(served).toBe(at.up.requests.length);
    // Forty files of 8 MB exceed three times the memory limit.
    expect(busy).toBeGreaterThan(0);
    // At most about three times the memory limit is in use, and rounds add nothing: the last is
    // like the second.
    expect(Math.max(...sizes)).toBeLessThan(10 * CAP);
    expect(sizes.at(-1)!).toBeLessThan(2 * sizes[1]!);
    await until(async () => (await sent(form(wav(1)))).status === 200);
    const row = (await rows()).at(-1);
    expect(row).toMatchObject({ state: "exact" });
  }, 120_000);
});
