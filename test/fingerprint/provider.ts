import { apiKeySchema, defineProvider } from "tollgate/plugin";
import { fingerprints } from "./fingerprint.ts";

export default defineProvider({
  api: 1,
  name: "prints",
  summary: "Prints from words",
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
  facts: {
    asOf: "2026-11-01",
    models: [
      {
        model: "small",
        operation: "fingerprint",
        price: { lines: [{ unit: "input", usd: "0.02", per: 1_000_000 }] },
      },
    ],
  },
  setup: ({ base_url, passes }) => ({
    endpoints: [
      {
        protocol: fingerprints(passes),
        base: base_url,
        auth: { header: "authorization", prefix: "Bearer ", field: "api_key" },
        servesModel: (model) => model !== "elsewhere",
      },
    ],
  }),
});
