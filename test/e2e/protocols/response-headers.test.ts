// Diagnostic response headers: none by default, and correct if enabled.
import { request } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  startTestGateway,
  jsonResponse,
  say,
  startUpstream,
  type TestGateway,
  type TestUpstream,
} from "tollgate/testing";

const NAMES = ["server-timing", "x-tollgate-attempts", "x-tollgate-cost", "x-tollgate-provider"];
const PRICE = "models: { works: { price: { input: 1.00, output: 2.00 } }, odd: {} }";

let up: TestUpstream;
const gateways: Record<string, TestGateway> = {};

beforeAll(async () => {
  up = await startUpstream({
    "POST /*": (asked) =>
      asked.body.includes("failing")
        ? jsonResponse({ error: { message: "No." } }, 503)
        : say("Hello.").usage({ input: 20, output: 7 }).toResponse(asked),
  });
  const yaml = (more: string) => `${more}
retries: { per_target: 1 }
frontends: [chat-completions, messages]
providers:
  first: { use: openai-compatible, with: { base_url: "${up.url}/v1" }, ${PRICE} }
  second: { use: anthropic-compatible, with: { base_url: "${up.url}/v1" }, ${PRICE} }
models:
  "falls-*": { candidates: ["first/failing-*", second/works] }
  "fails-*": { candidates: ["first/failing-*", "second/failing-*"] }
`;
  gateways["plain"] = await startTestGateway({ yaml: yaml("") });
  gateways["telling"] = await startTestGateway({
    yaml: yaml(`response_headers: [${NAMES.join(", ")}]`),
  });
  gateways["one"] = await startTestGateway({
    yaml: yaml("response_headers: [x-tollgate-attempts]"),
  });
});
afterAll(async () => {
  for (const one of Object.values(gateways)) await one[Symbol.asyncDispose]();
  await up.close();
});

let asked = 0;

async function told(which: string, model: string, stream = false, path = "messages") {
  const res = await fetch(`${gateways[which]!.url}/v1/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      // A failed target is in cooldown, and would be tried last.
      model: /^fal|^fai/.test(model) ? `${model}-${++asked}` : model,
      max_tokens: 9,
      ...(path.endsWith("count_tokens") ? {} : { stream }),
      messages: [{ role: "user", content: "Hello." }],
    }),
  });
  await res.text();
  const entries = NAMES.map((name) => [name, res.headers.get(name)] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== null));
}

const TIMES = /^gw;dur=\d+\.\d, upstream;dur=\d+\.\d$/;

describe.each([
  ["chat/completions", "passthrough or translated"],
  ["messages", "translated or passthrough"],
])("a response at %s, %s", (path) => {
  it.each([
    ["first/works", "1", "first"],
    ["second/works", "1", "second"],
    ["falls", "2", "second"],
  ])("of %s has all requested headers, and no others", async (model, attempts, provider) => {
    const all = {
      "server-timing": expect.stringMatching(TIMES),
      "x-tollgate-attempts": attempts,
      "x-tollgate-provider": provider,
    };
    expect(await told("plain", model, false, path)).toEqual({});
    // 20 at one dollar and 7 at two dollars per million.
    expect(await told("telling", model, false, path)).toEqual({
      ...all,
      "x-tollgate-cost": "0.000034",
    });
    // The headers of a stream are sent before its cost is known.
    expect(await told("telling", model, true, path)).toEqual(all);
    expect(await told("one", model, true, path)).toEqual({ "x-tollgate-attempts": attempts });
  });

  it("that is an error lists the attempts", async () => {
    expect(await told("telling", "fails", false, path)).toEqual({
      "server-timing": expect.stringMatching(TIMES),
      "x-tollgate-attempts": "2",
      "x-tollgate-provider": "second",
      "x-tollgate-cost": "0",
    });
    expect(await told("telling", "nowhere/at-all", false, path)).toEqual({
      "server-timing": expect.stringMatching(/^gw;dur=\d+\.\d$/),
      "x-tollgate-attempts": "0",
      "x-tollgate-cost": "0",
    });
  });

  it("without a known price states no cost", async () => {
    expect(await told("telling", "first/odd", false, path)).not.toHaveProperty("x-tollgate-cost");
  });
});

it("to a token count has them too", async () => {
  expect(await told("telling", "second/works", false, "messages/count_tokens")).toMatchObject({
    "x-tollgate-attempts": "1",
    "x-tollgate-provider": "second",
    "x-tollgate-cost": "0",
  });
});

describe("a stream", () => {
  /** Returns the headers, the trailers, and the body. `fetch` does not show trailers. */
  const stream = (which: string, model: string, te?: string) =>
    new Promise<{ trailer: string | undefined; trailers: object; body: string }>(
      (resolve, reject) => {
        const outgoing = request(
          `${gateways[which]!.url}/v1/chat/completions`,
          { method: "POST", headers: { "content-type": "application/json", ...(te && { te }) } },
          (res) => {
            let body = "";
            res.setEncoding("utf8");
            res.on("data", (text: string) => (body += text));
            res.on("error", reject);
            res.on("end", () =>
              resolve({ trailer: res.headers["trailer"], trailers: res.trailers, body }),
            );
          },
        );
        outgoing.on("error", reject);
        outgoing.end(
          JSON.stringify({ model, stream: true, messages: [{ role: "user", content: "Hello." }] }),
        );
      },
    );

  it.each(["first/works", "second/works"])(
    "of %s ends with its cost as a trailer if the client accepts trailers",
    async (model) => {
      const plain = await stream("telling", model);
      expect(plain).toMatchObject({ trailer: undefined, trailers: {} });
      const asked = await stream("telling", model, "trailers, deflate;q=0.5");
      expect(asked).toMatchObject({
        trailer: "x-tollgate-cost",
        trailers: { "x-tollgate-cost": "0.000034" },
      });
      const withoutIds = (body: string) => body.replace(/"(?:id|created)":(?:"[^"]*"|\d+)/g, "");
      expect(withoutIds(asked.body)).toBe(withoutIds(plain.body));
      expect(await stream("one", model, "trailers")).toMatchObject({ trailers: {} });
      expect(await stream("telling", model, "gzip")).toMatchObject({ trailers: {} });
    },
  );

  it("without a known price has no trailer", async () => {
    expect((await stream("telling", "first/odd", "trailers")).trailers).toEqual({});
  });
});
