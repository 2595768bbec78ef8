import { connect } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { request } from "undici";
import { installTestClock } from "../../kit/clock.ts";
import { until } from "../../kit/wait.ts";
import {
  compressionBomb,
  errorResponse,
  jsonResponse,
  say,
  scriptedModel,
  startUpstream,
  type ScriptedResponse,
  type ScriptedRoutes,
  type TestUpstream,
} from "tollgate/testing";

let up: TestUpstream;
afterEach(() => up.close());
const post = (path: string, body: unknown = {}, headers = {}) =>
  request(up.url + path, { method: "POST", body: JSON.stringify(body), headers });
const answering = async (answer: ScriptedResponse, routes: ScriptedRoutes = {}) => {
  up = await startUpstream({ "*": answer, ...routes });
};
const chunksOf = async (path = "/") => {
  const chunks: string[] = [];
  for await (const chunk of (await post(path)).body) chunks.push(String(chunk));
  return chunks;
};

describe("requests", () => {
  it("are recorded byte for byte", async () => {
    await answering(jsonResponse({ ok: true }));
    const body = Buffer.from([0, 255, 13, 10, 128]);
    await request(`${up.url}/v1/x?beta=true`, { method: "PUT", body, headers: { "X-Odd": "1" } });
    const asked = await up.waitForRequest(1);
    expect(asked).toMatchObject({ number: 1, method: "PUT", path: "/v1/x", state: "complete" });
    expect(asked.query.get("beta")).toBe("true");
    expect(asked.body.equals(body)).toBe(true);
    expect(asked.headers["x-odd"]).toBe("1");
  });

  it("use the longest matching route, and a list is consumed in order", async () => {
    await answering(jsonResponse("any"), {
      "POST /v1/*": jsonResponse("prefix"),
      "POST /v1/a": [jsonResponse(1), jsonResponse(2), () => jsonResponse(3)],
      "GET /v1/a": jsonResponse("get"),
    });
    const said = async (path: string) => (await post(path)).body.json();
    expect(await said("/v1/b")).toBe("prefix");
    expect(await said("/elsewhere")).toBe("any");
    expect([
      await said("/v1/a"),
      await said("/v1/a"),
      await said("/v1/a"),
      await said("/v1/a"),
    ]).toEqual([1, 2, 3, 3]);
    expect(up.connections, "kept alive").toBeLessThan(up.requests.length);
  });

  it("without a route are a 404 that states this", async () => {
    up = await startUpstream();
    const { statusCode, body } = await post("/v1/none");
    expect(statusCode).toBe(404);
    expect(await body.text()).toContain("POST /v1/none");
  });

  it("of a client that disconnects are aborted, with the time", async () => {
    await answering({ body: ["a", "b"], truncation: { after: { pieces: 1 }, how: "stall" } });
    const going = new AbortController();
    const { body } = await request(`${up.url}/`, { method: "POST", signal: going.signal });
    const asked = await up.waitForRequest(1);
    await body[Symbol.asyncIterator]().next();
    expect(asked.state).toBe("open");
    const time = installTestClock();
    time.stop();
    time.skip(1_000);
    going.abort();
    await body.text().catch(() => {});
    await asked.whenDone;
    expect(asked.state).toBe("aborted");
    expect(asked.abortedAt).toBe(time.now());
  });
});

describe("responses", () => {
  it.each([
    ["pieces", ["abc", "déf"]],
    ["whole", ["abcdéf"]],
    [2, ["ab", "cd", "éf"].map((text) => text)],
    [{ at: [1, 5] }, ["a", "bcd\ufffd", "\ufffdf"]],
  ] as const)("are cut into chunks: %j", async (chunks, expected) => {
    await answering({ body: ["abc", "déf"], chunks, framing: "chunked" });
    const got = await chunksOf();
    if (chunks === 2) expect(got.length).toBe(4);
    else expect(got).toEqual(expected);
  });

  it("keep their bytes for any chunks", async () => {
    const text = "Grüße 🌍 ".repeat(50);
    for (const chunks of ["bytes", 7, { seed: 1 }, { seed: 2, max: 3 }] as const) {
      await answering({ body: text, chunks, framing: "chunked" });
      expect(await (await post("/")).body.text()).toBe(text);
      await up.close();
    }
    await answering(jsonResponse({}));
  });

  it("are truncated after a number of bytes, by a reset, a close, a clean end, or silence", async () => {
    const piece = "x".repeat(100);
    for (const how of ["reset", "close"] as const) {
      await answering({ body: [piece, piece], truncation: { after: 150, how } });
      const { body } = await post("/");
      await expect(body.text()).rejects.toThrow();
      expect(up.requests[0]).toMatchObject({
        bytesSent: 150,
        state: "truncated",
        abortedAt: undefined,
      });
      await up.close();
    }
    await answering({ body: [piece, piece], truncation: { after: { pieces: 1 }, how: "end" } });
    expect(await (await post("/")).body.text()).toBe(piece);
    await up.close();
    await answering({ body: piece, truncation: { after: "nothing", how: "stall" } });
    const silent = request(`${up.url}/`, { headersTimeout: 1100 });
    await expect(silent).rejects.toThrow(/timeout/i);
  });

  it("may have a wrong length, be compressed, or consist of raw bytes", async () => {
    await answering({ body: "four", framing: 10, truncation: { after: 4, how: "close" } });
    await expect((await post("/")).body.text()).rejects.toThrow();
    await up.close();
    await answering(compressionBomb(1_000_000));
    const zipped = await post("/");
    expect(zipped.headers["content-encoding"]).toBe("gzip");
    expect((await zipped.body.bytes()).length).toBeLessThan(5000);
    await up.close();
    await answering({ raw: "HTTP/1.1 200 OK\r\nX-A: 1\r\nX-A: 2\r\nContent-Length: 2\r\n\r\nhi" });
    const raw = await post("/");
    expect([raw.headers["x-a"], await raw.body.text()]).toEqual([["1", "2"], "hi"]);
  });

  it("are sent slowly, including the headers", async () => {
    await answering({ raw: "HTTP/1.1 204 No Content\r\n\r\n", chunks: "bytes", chunkDelayMs: 1 });
    expect((await post("/")).statusCode).toBe(204);
  });

  it("send 100 first, requested or not", async () => {
    await answering({ ...jsonResponse({}), interimStatuses: [103] });
    expect((await post("/")).statusCode).toBe(200);
    const socket = connect(up.port, "127.0.0.1");
    let heard = "";
    socket.on("data", (bytes) => (heard += String(bytes)));
    socket.write("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    await until(() => heard.includes("100 Continue"));
    expect(heard).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\n$/);
    socket.write("{}");
    await until(() => heard.includes("200 OK"));
    socket.destroy();
  });
});

describe("the bill", () => {
  const usage = { input: 3, output: 2 };
  it("states the key that was charged, and the usage it received", async () => {
    up = await startUpstream(scriptedModel(say("Hello there").usage(usage)));
    const body = { model: "m", stream: true, stream_options: { include_usage: true } };
    const text = await (
      await post("/v1/chat/completions", body, { authorization: "Bearer k1" })
    ).body.text();
    expect(text).toContain("[DONE]");
    expect(up.bills).toEqual([
      { requestNumber: 1, key: "k1", model: "m", usage, reportedUsage: usage },
    ]);
  });

  it("includes responses that were truncated before their usage", async () => {
    up = await startUpstream({
      "*": (asked) => ({
        ...say("Hello there").usage(usage).toResponse(asked),
        truncation: { after: 300, how: "close" },
      }),
    });
    await (
      await post("/v1/messages", { model: "m", stream: true }, { "x-api-key": "k2" })
    ).body
      .text()
      .catch(() => {});
    expect(up.bills).toEqual([
      { requestNumber: 1, key: "k2", model: "m", usage, reportedUsage: undefined },
    ]);
  });

  it("has no line for an error", async () => {
    up = await startUpstream({ "*": errorResponse(429, "Slow down.", { retryAfter: "2" }) });
    const { statusCode, headers, body } = await post("/v1/messages", {});
    expect([statusCode, headers["retry-after"]]).toEqual([429, "2"]);
    expect(await body.json()).toMatchObject({ type: "error", error: { type: "rate_limit_error" } });
    expect(up.bills).toEqual([]);
  });
});
