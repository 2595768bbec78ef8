// Demo provider that responds without a network, for first steps and for tests. The same prompt and
// seed give the same response. Usage is counted as defined in tokens.ts, the price is zero, and
// nothing is retained.
import { defineProvider } from "tollgate/plugin";
import { chat, completion } from "./demo/chat.ts";
import { embedding } from "./demo/embedding.ts";
import { facts, POLICY } from "./demo/facts.ts";
import { countInputTokens } from "./demo/request-text.ts";
import { image } from "./demo/image.ts";
import { LISTS } from "./demo/lists.ts";
import { speech, transcript } from "./demo/audio.ts";

export default defineProvider({
  api: 1,
  name: "demo",
  summary: "Simulate models of every type offline, for first steps and tests",
  stability: "stable",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      pace_ms: {
        type: "integer",
        minimum: 0,
        maximum: 60_000,
        default: 50,
        description: "Delay of demo/slow before each word, in milliseconds",
      },
    },
  },
  dataPolicy: POLICY,
  facts,
  setup: ({ pace_ms: paceMs }) => ({
    endpoints: [
      {
        operation: "chat",
        run: (request, call) => chat(request, call, paceMs),
        countTokens: async (request) => countInputTokens(request),
      },
      { operation: "image", run: (request, call) => image(request, call) },
      { operation: "completion", run: (request, call) => completion(request, call) },
      { operation: "speech", run: (request, call) => speech(request, call) },
      { operation: "transcript", run: (request, call) => transcript(request, call) },
      ...LISTS.map(({ endpoint }) => endpoint),
      {
        operation: "embedding",
        run: (request, call) => embedding(request, call),
        streaming: "never",
      },
    ],
  }),
});
