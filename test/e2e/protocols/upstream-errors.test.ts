// A client's view of upstream failures: the provider, its message if it concerns the client, and
// nothing about the operator's account; for every frontend and upstream protocol, streaming and
// non-streaming.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  jsonResponse,
  startUpstream,
  type ScriptedResponse,
  type TestUpstream,
} from "tollgate/testing";
import type { JsonObject } from "tollgate/plugin";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";

/** Characters that JSON escapes, and an unusual one: a provider may encode it in several ways. */
const SECRET = 'sk-"é/upstream\\0123456789';
const ESCAPED = [...SECRET]
  .map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`)
  .join("");

let up: TestUpstream;
let at: InProcessGateway;
beforeAll(async () => {
  up = await startUpstream();
  const key = JSON.stringify(SECRET);
  const ours = CASES.flatMap(({ model }) => (model.startsWith("mresp/") ? [model.slice(6)] : []));
  at = await startInProcess({
    yaml: `
frontends: [chat-completions, messages, responses, images, models]
middleware: [auth]
store: memory
retries: { per_target: 1 }
providers:
  mchat: { use: openai-compatible, with: { base_url: "${up.url}/v1", api_key: ${key} } }
  mmsg: { use: anthropic-compatible, with: { base_url: "${up.url}/v1", api_key: ${key} } }
  mresp:
    use: openai
    with: { base_url: "${up.url}/v1", api_key: ${key} }
    models: { ${ours.map((name) => `${name}: { protocols: [responses] }`).join(", ")}, image: { operation: image } }
  mgem: { use: google, with: { base_url: "${up.url}", api_key: ${key} } }
`,
  });
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  await up.close();
});
beforeEach(() => up.reset());

interface Door {
  readonly path: string;
  body(model: string): JsonObject;
}
const DOORS: { readonly [name: string]: Door } = {
  "chat-completions": {
    path: "/v1/chat/completions",
    body: (model) => ({ model, messages: [{ role: "user", content: "hi" }] }),
  },
  messages: {
    path: "/v1/messages",
    body: (model) => ({ model, max_tokens: 9, messages: [{ role: "user", content: "hi" }] }),
  },
  responses: { path: "/v1/responses", body: (model) => ({ model, input: "hi" }) },
};
const MODELS = ["mchat/model", "mmsg/model", "mresp/model", "mgem/gemini-3-pro"];
/** Each has its own model, so that no cooldown affects another. */
const CASES = Object.keys(DOORS).flatMap((door) =>
  MODELS.flatMap((model) =>
    [false, true].map((stream) => ({ door, model: `${model}-${door}-${stream}`, stream })),
  ),
);

async function ask(door: string, model: string, stream = false) {
  const { path, body } = DOORS[door]!;
  const response = await fetch(at.url + path, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "anthropic-version": "2023-06-01",
      ...(door === "messages" ? { "x-api-key": at.key } : { authorization: `Bearer ${at.key}` }),
    },
    body: JSON.stringify({ ...body(model), ...(stream && { stream }) }),
  });
  return { response, text: await response.text() };
}
const answering = (answer: ScriptedResponse) => up.setRoutes({ "*": answer });
const errorIn = (text: string): { message: string; code?: string; details?: JsonObject } => {
  const found = /^data: (.*"error".*)$/m.exec(text)?.[1] ?? text;
  const said = JSON.parse(found) as { error?: never; response?: { error: never } };
  return said.error ?? said.response!.error;
};
const codeIn = (door: string, text: string) => {
  const error = errorIn(text);
  return door === "messages" ? error.details?.["error_code"] : error.code;
};
const secretless = (text: string) => {
  expect(text).not.toContain("0123456789");
  expect(text).not.toContain(ESCAPED.slice(0, 48));
};

describe.each(CASES)("$door, $model, stream: $stream", ({ door, model, stream }) => {
  const provider = model.split("/", 1)[0]!;

  it.each([
    [
      401,
      {
        error: {
          message: `Incorrect API key: ${SECRET.slice(0, 12)}****`,
          code: "invalid_api_key",
        },
      },
    ],
    [403, { error: { message: "Your account org-9 is on hold", type: "permission_error" } }],
    [
      400,
      {
        error: {
          code: 400,
          message: "API key not valid",
          details: [{ reason: "API_KEY_INVALID" }],
        },
      },
    ],
  ])("a %i about the gateway's key is the operator's error", async (status, body) => {
    answering(jsonResponse(body as never, status));
    const { response, text } = await ask(door, model, stream);
    expect(response.status).toBe(502);
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect(response.headers.get("x-tollgate-provider")).toBe(provider);
    expect(errorIn(text).message).toBe(`The gateway's credential for ${provider} was rejected.`);
    expect(codeIn(door, text)).toBe("upstream_auth");
  });

  it.each([
    [402, { error: { message: "Insufficient Balance of acct-77" } }],
    [429, { error: { message: "You exceeded your quota, acct-77", code: "insufficient_quota" } }],
    [400, { type: "error", error: { type: "billing_error", message: "acct-77 is out of credit" } }],
  ])("a %i about the gateway's balance is the operator's error", async (status, body) => {
    answering(jsonResponse(body as never, status));
    const { response, text } = await ask(door, model, stream);
    expect(response.status).toBe(502);
    expect(response.headers.get("x-should-retry")).toBe("false");
    expect(response.headers.get("retry-after")).toBeNull();
    expect(text).not.toContain("acct-77");
    expect(codeIn(door, text)).toBe("upstream_quota");
  });

  it("an error about the request keeps its message and names the provider, without secrets", async () => {
    const words = "messages.0: is not to my liking";
    answering({
      status: 400,
      headers: {
        "content-type": "application/json",
        "request-id": `r-${encodeURI(SECRET)}`,
        "x-request-id": `r-${encodeURI(SECRET)}`,
        "openai-version": `v-${encodeURI(SECRET)}`,
      },
      body: `{"error":{"type":"invalid_request_error","message":"${words}: ${ESCAPED}","param":"${ESCAPED}"}}`,
    });
    const { response, text } = await ask(door, model, stream);
    expect(response.status).toBe(400);
    expect(response.headers.get("x-tollgate-provider")).toBe(provider);
    expect(errorIn(text).message).toContain(words);
    secretless(text);
    secretless(JSON.stringify([...response.headers]));
  });

  it("a very long error keeps this protocol's format", async () => {
    const message = `too many things: ${"x".repeat(200_000)}`;
    answering(jsonResponse({ error: { message, type: "invalid_request_error" } }, 400));
    const { response, text } = await ask(door, model, stream);
    expect(response.status).toBe(400);
    expect(errorIn(text).message).toContain("too many things");
  });

  it("an internal error names the provider, and contains no engine message", async () => {
    for (const answer of [
      jsonResponse(null, 500),
      jsonResponse([], 502),
      jsonResponse({ error: [] } as never, 500),
      jsonResponse(null),
      jsonResponse({
        choices: [null],
        content: [null],
        output: [null],
        candidates: [null],
      } as never),
      jsonResponse({ choices: 7, content: {}, output: "x", candidates: 1 } as never),
      { status: 200, headers: { "content-type": "application/json" }, body: "{" },
      { status: 200, headers: { "content-type": "text/event-stream" }, body: "data: {\n\n" },
      { truncation: { after: "nothing", how: "reset" } },
    ] as ScriptedResponse[]) {
      answering(answer);
      const { response, text } = await ask(door, model, stream);
      if (response.ok && !/"error":\s*[{"]/.test(text)) continue;
      expect(errorIn(text).message).toMatch(new RegExp(`^${provider}: `));
      expect(text).not.toMatch(
        /Cannot read|undefined|is not a function|Unexpected token|not iterable|JSON at position/,
      );
    }
  });
});

it("the log has the provider's message about a rejected credential, without the secret", async () => {
  answering(
    jsonResponse({ error: { message: `Key ${SECRET} is gone since May`, code: "key_gone" } }, 401),
  );
  await ask("responses", "mchat/model");
  const line = await at.line((l) => l["code"] === "key_gone");
  expect(line).toMatchObject({ level: "warn", provider: "mchat", kind: "upstream_auth" });
  expect(line["provider_message"]).toBe("Key [secret] is gone since May");
  // User text is in no log, whichever provider quotes it.
  answering(
    jsonResponse({ error: { message: "No key for: the quick brown fox", code: "quoted" } }, 401),
  );
  await fetch(`${at.url}/v1/responses`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${at.key}` },
    body: JSON.stringify({ model: "mchat/model", input: "the quick brown fox" }),
  });
  expect((await at.line((l) => l["code"] === "quoted"))["said"]).toBeUndefined();
});
