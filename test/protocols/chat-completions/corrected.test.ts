// The same number for the client and the ledger if a backend counts differently, also in
// passthrough mode.
import { expect, test } from "vitest";
import { inputTokens, outputTokens, type JsonObject, type Usage } from "tollgate/plugin";
import { chatCompletions } from "../../../src/protocols/chat-completions/index.ts";
import { usageOf } from "../../../src/protocols/chat-completions/usage.ts";
import { createResponseContext, runRelay } from "../../../src/testing/index.ts";

const ODD: [string, JsonObject, object][] = [
  [
    "reasoning beside the completion",
    {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 45,
      completion_tokens_details: { reasoning_tokens: 30, accepted_prediction_tokens: 0 },
      queue_time: 0.2,
    },
    {},
  ],
  [
    "reasoning beside it, by its own admission",
    { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, reasoning_tokens: 30 },
    { reasoningOutside: true },
  ],
  [
    "caches beside the prompt",
    {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 105,
      prompt_tokens_details: { cached_tokens: 90 },
    },
    {},
  ],
  ["no total", { prompt_tokens: 10, completion_tokens: 5, num_search_queries: 1 }, {}],
];

const EVEN: JsonObject = {
  prompt_tokens: 10,
  completion_tokens: 35,
  total_tokens: 45,
  completion_tokens_details: { reasoning_tokens: 30 },
  queue_time: 0.2,
};

const ASKED = { stream_options: { include_usage: true } };

const whole = (usage: JsonObject): Buffer =>
  Buffer.from(
    `{"id":"c1","model":"m","odd":1.0,"choices":[{"index":0,"message":{"role":"assistant","content":"Yes."},` +
      `"finish_reason":"stop"}],"usage":${JSON.stringify(usage)}}`,
  );

const stream = (usage: JsonObject, beside: boolean): Buffer => {
  const chunk = (choices: string, more = "") =>
    `data: {"id":"c1","object":"chat.completion.chunk","model":"m","choices":${choices}${more}}\n\n`;
  const counts = `,"usage":${JSON.stringify(usage)}`;
  const stop = '[{"index":0,"delta":{},"finish_reason":"stop"}]';
  return Buffer.from(
    chunk('[{"index":0,"delta":{"content":"Yes."}}]') +
      (beside ? chunk(stop, counts) : chunk(stop) + chunk("[]", counts)) +
      "data: [DONE]\n\n",
  );
};

/** The last usage report that a client would read. */
function read(bytes: Buffer): JsonObject | undefined {
  const texts = bytes.toString().startsWith("{")
    ? [bytes.toString()]
    : bytes
        .toString()
        .split("\n\n")
        .map((event) => event.slice("data: ".length))
        .filter((data) => data.startsWith("{"));
  return texts
    .map((text) => (JSON.parse(text) as { usage?: JsonObject }).usage)
    .findLast((usage) => usage !== undefined && usage !== null);
}

const forms: [string, (usage: JsonObject) => Buffer, boolean][] = [
  ["whole", whole, false],
  ["streamed, in a chunk of its own", (usage) => stream(usage, false), true],
  ["streamed, beside the end", (usage) => stream(usage, true), true],
];

for (const [form, make, streamed] of forms) {
  const pass = (usage: JsonObject, traits: object) => {
    const seen: { usage: Usage }[] = [];
    const { client } = chatCompletions(traits);
    const out = runRelay(
      client!,
      [make(usage)],
      createResponseContext({ stream: streamed, body: ASKED }),
    );
    seen.push({ usage: usageOf(usage, traits)! });
    return { bytes: out.bytes, priced: seen[0]!.usage };
  };

  test.each(ODD)(`${form}: %s is reported as it is priced`, (_, usage, traits) => {
    const { bytes, priced } = pass(usage, traits);
    const told = read(bytes)!;
    expect(told).toMatchObject({
      prompt_tokens: inputTokens(priced),
      completion_tokens: outputTokens(priced),
      total_tokens: inputTokens(priced) + outputTokens(priced),
    });
    // Uncounted fields stay.
    for (const name of ["queue_time", "num_search_queries", "reasoning_tokens"])
      if (name in usage) expect(told[name]).toEqual(usage[name]);
    const details = usage["completion_tokens_details"] as JsonObject | undefined;
    if (details) expect(told["completion_tokens_details"]).toMatchObject(details);
  });

  test(`${form}: consistent counts are forwarded byte for byte`, () => {
    const { bytes } = pass(EVEN, {});
    expect(bytes.toString()).toBe(
      make(EVEN).toString().replaceAll('"model":"m"', '"model":"provider/model"'),
    );
  });
}
