// The tool runner of Anthropic's newest SDK with default settings: it keeps its conversation in
// server-side threads unless the server has none, and then sends all of it.
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import type { Check } from "tollgate/testing";
import { CHECK, TALKS, type Four } from "./four.ts";
import { countsOf } from "./counts.ts";

export const toolRunner = (at: Four): Check[] =>
  Object.entries(TALKS).flatMap(([provider, model]) =>
    [false, true].map((stream) => {
      const name = `tool runner on ${provider}${stream ? ", streamed" : ""}`;
      return { name, run: () => runs(at, model, stream, name) };
    }),
  );

async function runs(at: Four, model: string, stream: boolean, check: string): Promise<void> {
  const client = new Anthropic({
    apiKey: at.key,
    baseURL: at.url,
    maxRetries: 0,
    defaultHeaders: { [CHECK]: check },
  });
  const ran: string[] = [];
  const usages: Anthropic.Beta.BetaUsage[] = [];
  const asked = {
    model,
    max_tokens: 1000,
    messages: [{ role: "user" as const, content: "What is the weather like?" }],
    tools: [
      {
        name: "get_weather",
        description: "The weather in a city",
        input_schema: {
          type: "object" as const,
          properties: { city: { type: "string" } },
          required: ["city"],
        },
        type: "custom" as const,
        parse: (input: unknown) => input as { city: string },
        run: ({ city }: { city: string }) => {
          ran.push(city);
          return `Rain in ${city}.`;
        },
      },
    ],
  };
  let last: Anthropic.Beta.BetaMessage | undefined;
  const heard = (message: Anthropic.Beta.BetaMessage) => {
    usages.push(message.usage);
    last = message;
  };
  if (stream)
    for await (const turn of client.beta.messages.toolRunner({ ...asked, stream: true }))
      heard(await turn.finalMessage());
  else for await (const message of client.beta.messages.toolRunner(asked)) heard(message);
  assert.deepEqual(ran.toSorted(), ["Oslo", 'R"ome']);
  assert.deepEqual(
    last?.content.map((block) => (block.type === "text" ? block.text : block.type)),
    ['They say: Rain in Oslo. Rain in R"ome.'],
  );
  assert.deepEqual(
    usages.map((usage) => ({
      input: usage.input_tokens + (usage.cache_read_input_tokens ?? 0),
      cached: usage.cache_read_input_tokens ?? 0,
      output: usage.output_tokens,
    })),
    (await at.billed(check)).map((usage) => {
      const { input, cached, output } = countsOf(usage);
      return { input, cached, output };
    }),
    "its counts are the ledger's",
  );
}
