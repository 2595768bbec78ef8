// Routes that a frontend serves itself: validated bodies, and streamed responses.
import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { defineFrontend, fail, isFilePart, type Route } from "tollgate/plugin";
import { startTestGateway, type TestGateway } from "tollgate/testing";
import { waitUntilStable, turnEventLoop, until } from "../../kit/wait.ts";
import { trialCount } from "../../kit/law-effort.ts";

const MIB = 1024 * 1024;
/** State of the iterables in this test. */
const seen = { pulled: 0, returned: 0, aborted: 0 };
const turn = () => new Promise<void>((resolve) => void setImmediate(resolve));
let release: () => void = () => {};
const released = new Promise<void>((resolve) => (release = resolve));
let pieces: (string | Uint8Array)[] = [];

async function* endless() {
  try {
    for (;;) {
      seen.pulled++;
      yield Buffer.alloc(64 * 1024, 97);
      await turn();
    }
  } finally {
    seen.returned++;
  }
}

const routes: Route[] = [
  {
    method: "POST",
    path: "/json",
    body: "json",
    handle: (_x, body) => ({ status: 200, body: { ...body } as never }),
  },
  {
    method: "POST",
    path: "/bytes",
    allowUnauthenticated: true,
    body: "bytes",
    handle: (_x, body) => ({ status: 200, body }),
  },
  {
    method: "POST",
    path: "/form",
    body: "either",
    handle: (_x, { file, ...rest }) =>
      isFilePart(file)
        ? {
            status: 200,
            body: file.data,
            headers: { "content-type": file.mime, "x-rest": JSON.stringify(rest) },
          }
        : { status: 200, body: { ...rest } as never },
  },
  {
    method: "GET",
    path: "/pieces",
    handle: () => ({
      status: 201,
      headers: { "content-type": "text/plain" },
      body: (async function* () {
        for (const piece of pieces) {
          if (piece.length % 3 === 0) await turn();
          yield piece;
        }
      })(),
    }),
  },
  {
    method: "GET",
    path: "/late",
    handle: () => ({
      status: 200,
      body: (async function* () {
        await released;
        yield "late";
      })(),
    }),
  },
  { method: "GET", path: "/endless", handle: () => ({ status: 200, body: endless() }) },
  {
    method: "GET",
    path: "/silent",
    handle: (x) => ({
      status: 200,
      body: (async function* () {
        try {
          yield "one";
          await new Promise<void>((resolve) =>
            x.signal.addEventListener("abort", () => resolve(void seen.aborted++)),
          );
          yield "unheard";
        } finally {
          seen.returned++;
        }
      })(),
    }),
  },
  {
    method: "GET",
    path: "/refuses",
    handle: () => ({
      status: 200,
      body: (async function* (): AsyncGenerator<string> {
        yield* [];
        fail("conflict", "It cannot be had now.");
      })(),
    }),
  },
  {
    method: "GET",
    path: "/breaks",
    handle: () => ({
      status: 200,
      body: (async function* () {
        yield "half of it";
        await turn();
        throw new Error("the other half is gone");
      })(),
    }),
  },
  {
    method: "POST",
    path: "/reads",
    handle: async (x) => ({ status: 200, body: (await x.readBody()).model }),
  },
];

let at: TestGateway;
beforeAll(async () => {
  at = await startTestGateway({
    plugins: {
      served: defineFrontend({ api: 1, name: "served", summary: "x", setup: () => ({ routes }) }),
      demo: (await import("../../../plugins/providers/demo.ts")).default,
    },
    yaml: "frontends: [served]\nproviders: { demo: { use: demo } }\nmax_body: 3 MiB",
  });
});
afterAll(() => at[Symbol.asyncDispose]());
beforeEach(() => void Object.assign(seen, { pulled: 0, returned: 0, aborted: 0 }));

const post = (
  path: string,
  body: string | Uint8Array<ArrayBuffer> | FormData,
  headers?: Record<string, string>,
) => fetch(`${at.url}${path}`, { method: "POST", body, ...(headers && { headers }) });
const JSON_TYPE = { "content-type": "application/json" };

describe("the body of a served route", () => {
  it("is validated like every body", async () => {
    const said = async (text: string, type = "application/json") => {
      const res = await post("/json", text, { "content-type": type });
      return [res.status, ((await res.json()) as any).error?.code];
    };
    expect(await (await post("/json", '{"a":[1]}', JSON_TYPE)).json()).toEqual({ a: [1] });
    expect(await said('{"a":1,"a":2}')).toEqual([400, "duplicate_key"]);
    expect(await said('{"a":')).toEqual([400, "invalid_json"]);
    expect(await said("[1]")).toEqual([400, "not_an_object"]);
    expect(await said("a=1", "text/plain")).toEqual([400, "unsupported_media_type"]);
    expect(await said(`{"a":"${"x".repeat(4 * MIB)}"}`)).toEqual([413, "request_too_large"]);
  });

  it("is passed unchanged if the route requests bytes", () =>
    fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 5000 }), async (bytes) => {
        const res = await post("/bytes", bytes, { "content-type": "audio/x-odd" });
        expect(Buffer.from(await res.arrayBuffer())).toEqual(Buffer.from(bytes));
      }),
      { numRuns: trialCount(25) },
    ));

  it("may be a form", async () => {
    const form = new FormData();
    form.set("name", "x");
    form.set("file", new Blob([Buffer.from([0, 255, 13, 10])], { type: "audio/wav" }), "a.wav");
    const res = await post("/form", form);
    expect(Buffer.from(await res.arrayBuffer())).toEqual(Buffer.from([0, 255, 13, 10]));
    expect(res.headers.get("content-type")).toBe("audio/wav");
    expect(JSON.parse(res.headers.get("x-rest")!)).toEqual({ name: "x" });
    expect(await (await post("/form", '{"b":1}', JSON_TYPE)).json()).toEqual({ b: 1 });
  });

  it("is undefined if the route has none, and a hook that reads it gets an error", async () => {
    const res = await post("/reads", '{"model":"m"}', JSON_TYPE);
    expect(res.status).toBe(500);
    expect(at.logs.some(({ fields }) => String(fields["err"]).includes("reads no body"))).toBe(
      true,
    );
  });
});

describe("a streamed response", () => {
  it("contains all of its chunks, whatever they are", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(fc.string(), fc.uint8Array({ maxLength: 3000 })), { maxLength: 12 }),
        async (list) => {
          pieces = list;
          const res = await fetch(`${at.url}/pieces`);
          expect(res.status).toBe(201);
          expect(res.headers.get("content-type")).toBe("text/plain");
          const due = Buffer.concat(list.map((one) => Buffer.from(one as string)));
          expect(Buffer.from(await res.arrayBuffer())).toEqual(due);
        },
      ),
      { numRuns: trialCount(25) },
    ));

  it("sends its headers before its first chunk", async () => {
    const res = await fetch(`${at.url}/late`);
    release();
    expect(await res.text()).toBe("late");
  });

  it("ends when the client disconnects, during a chunk or between two", async () => {
    for (const path of ["/endless", "/silent"]) {
      seen.returned = 0;
      const leaving = new AbortController();
      const res = await fetch(`${at.url}${path}`, { signal: leaving.signal });
      await res.body!.getReader().read();
      leaving.abort();
      await until(() => seen.returned === 1);
    }
    expect(seen.aborted).toBe(1);
    const before = seen.pulled;
    await turnEventLoop();
    expect(seen.pulled).toBe(before);
  });

  it("waits for a client that does not read", async () => {
    const socket = connect(Number(new URL(at.url).port), "127.0.0.1");
    await once(socket, "connect");
    socket.pause();
    socket.write("GET /endless HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await until(() => seen.pulled > 0);
    const before = await waitUntilStable(() => seen.pulled, 1_000);
    // The buffers of both ends of a socket, and no more.
    expect(seen.pulled * 64 * 1024).toBeLessThan(32 * MIB);
    socket.resume();
    await until(() => seen.pulled > before + 10);
    socket.destroy();
    await until(() => seen.returned === 1);
  });

  it("becomes an error if it throws immediately, and is truncated if it throws later", async () => {
    const refused = await fetch(`${at.url}/refuses`);
    expect(refused.status).toBe(409);
    expect(((await refused.json()) as any).error.message).toBe("It cannot be had now.");
    const asked = request(`${at.url}/breaks`).end();
    const [res] = (await once(asked, "response")) as [
      NodeJS.ReadableStream & { complete: boolean },
    ];
    let text = "";
    res.on("data", (chunk: Buffer) => (text += String(chunk)));
    await new Promise((resolve) => res.on("error", resolve));
    expect(text).toBe("half of it");
    expect(res.complete).toBe(false);
    expect(at.logs.some(({ fields }) => String(fields["err"]).includes("the other half"))).toBe(
      true,
    );
  });
});
