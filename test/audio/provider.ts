import { apiKeySchema, defineProvider } from "tollgate/plugin";
import { speech } from "./speech.ts";
import { transcripts } from "./transcript.ts";

export default defineProvider({
  api: 1,
  name: "sounds",
  summary: "Sound from words, and words from sound",
  credential: apiKeySchema,
  options: {
    type: "object",
    additionalProperties: false,
    required: ["base_url"],
    properties: {
      base_url: { type: "string", "x-origin": true, description: "Where it listens" },
      passes: { type: "boolean", default: true, description: "Bytes pass as they came" },
    },
  },
  dataPolicy: {
    retention: { kind: "zero" },
    trains: "no",
    evidence: ["https://example.com/policy"],
    verifiedAt: "2026-11-01",
  },
  facts: {
    asOf: "2026-11-01",
    models: [
      {
        model: "ear",
        operation: "dictation",
        price: { lines: [{ unit: "seconds", usd: "0.0001", per: 1 }] },
      },
      {
        model: "mouth",
        operation: "recital",
        price: { lines: [{ unit: "characters", usd: "15", per: 1_000_000 }] },
      },
    ],
  },
  setup: ({ base_url, passes }) => ({
    endpoints: [transcripts(passes), speech(passes)].map((protocol) => ({
      protocol,
      base: base_url,
      auth: { header: "authorization", prefix: "Bearer ", field: "api_key" } as const,
    })),
  }),
});
