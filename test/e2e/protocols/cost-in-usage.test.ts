// The cost in the usage of the last event: only if the client asks for it and the operator allows
// it, in every protocol with such a place, translated and in passthrough mode.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  say,
  startTestGateway,
  startUpstream,
  type TestGateway,
  type TestUpstream,
} from "tollgate/testing";

let up: TestUpstream;
const gateways: Record<string, TestGateway> = {};
beforeAll(async () => {
  up = await startUpstream({
    "POST /*": (asked) => say("Hello.").usage({ input: 20, output: 7 }).toResponse(asked),
  });
  const yaml = (headers: string) => `
response_headers: [${headers}]
frontends: [chat-completions, messages, responses]
providers:
  openai:
    use: openai-compatible
    with: { base_url: "${up.url}/v1", responses: true }
    models: { works: { price: { input: 1.00, output: 2.00 } }, odd: {} }
  anthropic:
    use: anthropic-compatible
    with: { base_url: "${up.url}/v1" }
    models: { works: { price: { input: 1.00, output: 2.00 } }, odd: {} }
`;
  gateways["allowed"] = await startTestGateway({ yaml: yaml("x-tollgate-cost") });
  gateways["off"] = await startTestGateway({ yaml: yaml("") });
});
afterAll(async () => {
  for (const one of Object.values(gateways)) await one[Symbol.asyncDispose]();
  await up.close();
});

const PATHS = {
  "chat/completions": {
    body: {
      messages: [{ role: "user", content: "Hello." }],
      stream_options: { include_usage: true },
    },
    usageIn: (event: Body) => event["usage"],
  },
  messages: {
    body: { messages: [{ role: "user", content: "Hello." }], max_tokens: 9 },
    usageIn: (event: Body) =>
      event["type"] === "message_delta" || event["type"] === "message" ? event["usage"] : undefined,
  },
  responses: {
    body: { input: "Hello." },
    usageIn: (event: Body) =>
      event["object"] === "response"
        ? event["usage"]
        : (event["response"] as Body | undefined)?.["usage"],
  },
} as const;
type Path = keyof typeof PATHS;
type Body = Readonly<Record<string, unknown>>;

async function send(
  gateway: string,
  path: Path,
  { model, stream, asks }: { model: string; stream: boolean; asks: boolean },
) {
  const { body, usageIn } = PATHS[path];
  const { stream_options: options, ...rest } = body as Body;
  const answer = await fetch(`${gateways[gateway]!.url}/v1/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...(asks && { "x-tollgate-cost": "true" }) },
    body: JSON.stringify({
      ...rest,
      model,
      stream,
      ...(stream && options !== undefined && { stream_options: options }),
    }),
  });
  const text = await answer.text();
  expect([answer.status, text]).toEqual([200, expect.any(String)]);
  const events = stream
    ? [...text.matchAll(/^data: (\{.*\})$/gm)].map((match) => JSON.parse(match[1]!) as Body)
    : [JSON.parse(text) as Body];
  const usages = events.map(usageIn).filter((usage) => usage != null) as Body[];
  return { text, usage: usages.at(-1)!, costs: usages.filter((usage) => "cost" in usage).length };
}

/** Without IDs and times, which differ for each response. */
const normalize = (text: string): string =>
  text.replace(/"(?:id|item_id|created|created_at|completed_at)":(?:"[^"]*"|\d+)/g, "");

describe.each(Object.keys(PATHS) as Path[])("%s", (path) => {
  describe.each([
    ["openai", true],
    ["openai", false],
    ["anthropic", true],
    ["anthropic", false],
  ])("of %s, stream: %s", (provider, stream) => {
    const model = `${provider}/works`;

    it("has the cost once, at the end, if the client asks for it", async () => {
      const asked = await send("allowed", path, { model, stream, asks: true });
      expect(asked.usage["cost"]).toBe(0.000034);
      expect(asked.costs).toBe(1);
      const plain = await send("allowed", path, { model, stream, asks: false });
      expect({ ...asked.usage, cost: undefined }).toEqual({ ...plain.usage, cost: undefined });
      expect(plain.text).not.toContain('"cost"');
    });

    it("does not change if the operator does not allow it", async () => {
      const asked = await send("off", path, { model, stream, asks: true });
      const plain = await send("off", path, { model, stream, asks: false });
      expect(normalize(asked.text)).toBe(normalize(plain.text));
    });

    it("has null for a model without a price", async () => {
      const asked = await send("allowed", path, { model: `${provider}/odd`, stream, asks: true });
      expect(asked.usage["cost"]).toBeNull();
    });
  });
});

it("is also in the usage that the gateway counted because the provider reported none", async () => {
  const silent = await startUpstream({
    "POST /*": (asked) => say("Hello.").usage(null).toResponse(asked),
  });
  await using gateway = await startTestGateway({
    yaml: `
response_headers: [x-tollgate-cost]
frontends: [chat-completions]
providers:
  up:
    use: openai-compatible
    with: { base_url: "${silent.url}/v1" }
    models: { works: { price: { input: 1.00, output: 2.00 } } }
`,
  });
  gateways["silent"] = gateway;
  for (const stream of [true, false]) {
    const { usage } = await send("silent", "chat/completions", {
      model: "up/works",
      stream,
      asks: true,
    });
    expect(usage["cost"]).toBeGreaterThan(0);
  }
  delete gateways["silent"];
  await silent.close();
});
