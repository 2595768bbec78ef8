// Completions through a whole gateway: verbatim where a host speaks them, and filling in the middle by the wires of two vendors; by
// OpenAI's SDK and the AI SDK, whole and streamed, one exact row each.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText } from "ai";
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { eventStream, json, type UpstreamRequest } from "tollgate/testing";
import { digest } from "../../src/lib/key.ts";
import { staged, type LocalStage } from "../kit/in-process.ts";

const KEYS = { alice: "alice-key", poor: "poor-key", narrow: "narrow-key" } as const;
const SAID = " time there was a fox";
const PIECES = [" time", " there was", " a fox"];
const USAGE = { prompt_tokens: 4, completion_tokens: 5, total_tokens: 9 };
const bill = { input: 4, output: 5 };

const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
const frame = { id: "cmpl-1", object: "text_completion", created: 1, model: "upstreams-own" };
const choice = (text: string, finish_reason: string | null = null, index = 0) => ({
  text,
  index,
  logprobs: null,
  finish_reason,
});

const own = (asked: UpstreamRequest) => {
  const { stream, stream_options: told, n = 1 } = asked.json();
  if (!stream)
    return {
      ...json({
        ...frame,
        choices: Array.from({ length: n }, (_, i) => choice(SAID, "length", i)),
        usage: USAGE,
      }),
      bill,
    };
  const events = PIECES.map((text) => event({ ...frame, choices: [choice(text)] }));
  return {
    ...eventStream([
      ...events,
      event({ ...frame, choices: [choice("", "length")] }),
      ...(told?.include_usage ? [event({ ...frame, choices: [], usage: USAGE })] : []),
      "data: [DONE]\n\n",
    ]),
    bill,
  };
};
const fim = (asked: UpstreamRequest) => {
  const { stream } = asked.json();
  const chat = { id: "f1", created: 1, model: "x" };
  if (!stream)
    return {
      ...json({
        ...chat,
        object: "chat.completion",
        choices: [
          { index: 0, message: { role: "assistant", content: SAID }, finish_reason: "length" },
        ],
        usage: USAGE,
      }),
      bill,
    };
  const chunk = (delta: object, finish_reason: string | null = null, more: object = {}) =>
    event({
      ...chat,
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, finish_reason }],
      ...more,
    });
  return {
    ...eventStream([
      ...PIECES.map((content) => chunk({ content })),
      chunk({ content: "" }, "length", { usage: USAGE }),
      "data: [DONE]\n\n",
    ]),
    bill,
  };
};
const generate = (asked: UpstreamRequest) => {
  const last = { done: true, done_reason: "length", prompt_eval_count: 4, eval_count: 5 };
  if (!asked.json().stream) return { ...json({ model: "m", response: SAID, ...last }), bill };
  const lines = [
    ...PIECES.map((response) => ({ model: "m", response, done: false })),
    { model: "m", response: "", ...last },
  ];
  return {
    headers: { "content-type": "application/x-ndjson" },
    body: lines.map((line) => `${JSON.stringify(line)}\n`),
    bill,
  };
};

let at: LocalStage;
beforeAll(async () => {
  const priced = (model: string) =>
    `models: { ${model}: { kind: completion, price: { input: "1", output: "2" } } }`;
  at = await staged(
    {
      "POST /vllm/v1/completions": own,
      "POST /deepseek/beta/completions": own,
      "POST /mistral/v1/fim/completions": fim,
      "POST /ollama/api/generate": generate,
      "GET *": json({ data: [] }),
    },
    (up) => `
store: { use: memory }
attempts: { target: 1 }
frontends: [completions, models]
middleware:
  - use: auth
    with:
      keys:
        - { id: alice, digest: "${digest(KEYS.alice)}" }
        - { id: narrow, digest: "${digest(KEYS.narrow)}", models: ["demo/*"] }
        - { id: poor, digest: "${digest(KEYS.poor)}", limits: [usd=0.0001/total] }
  - zdr
  - limits
  - usage
providers:
  demo: { use: demo }
  vllm: { use: vllm, with: { base_url: "${up}/vllm/v1" }, ${priced("base")} }
  deepseek: { use: deepseek, with: { api_key: k, base_url: "${up}/deepseek" }, ${priced("base")} }
  mistral: { use: mistral, with: { api_key: k, base_url: "${up}/mistral/v1" }, ${priced("codestral-latest")} }
  ollama: { use: ollama, with: { base_url: "${up}/ollama/v1" }, ${priced("qwen-coder")} }
`,
  );
});
afterAll(() => at[Symbol.asyncDispose]());
beforeEach(() => at.up.forget());

const client = (apiKey: string = KEYS.alice) =>
  new OpenAI({ baseURL: `${at.gateway.url}/v1`, apiKey, maxRetries: 0 });
const raised = (run: Promise<unknown>): Promise<any> =>
  run.then(
    () => expect.unreachable("nothing was raised"),
    ({ status, code }) => ({ status, code }),
  );
async function settled(): Promise<any[]> {
  const { items } = (await at.gateway.ask("ledger.entries", { limit: 500 })) as any;
  return items.filter((row: any) => row.kind === "settle");
}
const asked = () => at.up.requests.filter(({ method }) => method === "POST");

describe.each(["vllm/base", "deepseek/base", "mistral/codestral-latest", "ollama/qwen-coder"])(
  "%s",
  (model) => {
    const ask = { model, prompt: "Once upon a", suffix: "The end.", max_tokens: 5 } as const;
    const exact = { state: "exact", usage: { input: 4, output: 5 }, costNano: "14000" };

    it("whole, with what it shall lead to", async () => {
      const got = await client().completions.create(ask);
      expect(got).toMatchObject({ object: "text_completion", model, usage: USAGE });
      expect(got.choices).toMatchObject([{ text: SAID, index: 0, finish_reason: "length" }]);
      expect(asked()[0]!.json().suffix).toBe("The end.");
      expect((await settled()).at(-1)).toMatchObject(exact);
    });

    it.each([undefined, { include_usage: true }])(
      "streamed, counts where they are asked for: %j",
      async (stream_options) => {
        const stream = await client().completions.create({
          ...ask,
          stream: true,
          ...(stream_options && { stream_options }),
        });
        const chunks = [];
        for await (const chunk of stream) chunks.push(chunk);
        for (const chunk of chunks)
          expect(chunk).toMatchObject({ object: "text_completion", model });
        expect(chunks.map(({ choices }) => choices[0]?.text ?? "").join("")).toBe(SAID);
        expect(chunks.flatMap(({ choices }) => choices[0]?.finish_reason ?? [])).toEqual([
          "length",
        ]);
        const told = chunks.filter(({ choices }) => choices.length === 0);
        expect(told.map(({ usage }) => usage)).toEqual(stream_options ? [USAGE] : []);
        expect((await settled()).at(-1)).toMatchObject(exact);
      },
    );

    it("AI SDK", async () => {
      const sdk = createOpenAICompatible({
        name: "team",
        baseURL: `${at.gateway.url}/v1`,
        apiKey: KEYS.alice,
      });
      const got = await generateText({
        model: sdk.completionModel(model),
        prompt: "Once upon a",
        maxRetries: 0,
      });
      expect(got.text).toBe(SAID);
    });

    it("a stream that is cut is no whole answer", async () => {
      for (const [route, of] of [
        ["POST /vllm/v1/completions", own],
        ["POST /deepseek/beta/completions", own],
        ["POST /mistral/v1/fim/completions", fim],
        ["POST /ollama/api/generate", generate],
      ] as const)
        at.up.script({
          [route]: (one: UpstreamRequest) => ({
            ...of(one),
            cut: { after: { pieces: 2 }, how: "close" },
          }),
        });
      let text = "";
      const read = async () => {
        const stream = await client().completions.create({ ...ask, stream: true });
        for await (const { choices } of stream) text += choices[0]?.text ?? "";
      };
      await expect(read()).rejects.toThrow();
      expect(SAID.startsWith(text)).toBe(true);
      expect((await settled()).at(-1).state).toBe("estimated");
      at.up.script({
        "POST /vllm/v1/completions": own,
        "POST /deepseek/beta/completions": own,
        "POST /mistral/v1/fim/completions": fim,
        "POST /ollama/api/generate": generate,
      });
    });
  },
);

it("several answers, and fields that nothing here knows, pass where the host speaks this protocol", async () => {
  const got = await client().completions.create({
    model: "vllm/base",
    prompt: "x",
    n: 2,
    min_p: 0.1,
  } as never);
  expect((got as any).choices).toHaveLength(2);
  expect(asked()[0]!.json()).toMatchObject({ n: 2, min_p: 0.1 });
  for (const more of [{ n: 2 }, { echo: true }, { prompt: ["a", "b"] }])
    expect(
      (
        await raised(
          client().completions.create({ model: "mistral/codestral-latest", prompt: "x", ...more }),
        )
      ).status,
    ).toBe(400);
  expect(asked()).toHaveLength(1);
});

it("what the ledger counted is what the hosts billed; a key, a budget and Service-ZDR refuse", async () => {
  const before = (await settled()).length;
  for (const model of ["vllm/base", "mistral/codestral-latest", "ollama/qwen-coder"])
    await client().completions.create({ model, prompt: "x" });
  const sum = (all: readonly any[]) =>
    all.reduce((most, { usage }) => most + usage.input + usage.output, 0);
  expect(sum((await settled()).slice(before))).toBe(sum(at.up.bill));
  at.up.forget();
  const model = "vllm/base";
  expect(
    (await raised(client(KEYS.narrow).completions.create({ model, prompt: "x" }))).status,
  ).toBe(403);
  expect(
    await raised(client(KEYS.poor).completions.create({ model, prompt: "x", max_tokens: 4_000 })),
  ).toMatchObject({ status: 429, code: "insufficient_quota" });
  const zdr = { headers: { "service-zdr": "required" } };
  expect((await raised(client().completions.create({ model, prompt: "x" }, zdr))).status).toBe(403);
  expect(asked()).toEqual([]);
  const demo = { model: "demo/complete", prompt: "Once", max_tokens: 6, seed: 1 };
  const one = await client().completions.create(demo, zdr);
  expect(one.usage!.completion_tokens).toBeLessThanOrEqual(6);
  expect((await client().completions.create(demo)).choices[0]!.text).toBe(one.choices[0]!.text);
});
