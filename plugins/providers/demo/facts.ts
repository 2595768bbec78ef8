import { UNITS, type DataPolicy, type Facts, type ModelInfo, type Price } from "tollgate/plugin";
import { CONTEXT } from "./chat.ts";
import { MAX_INPUT_TOKENS } from "./embedding.ts";
import { LISTS } from "./lists.ts";
import { CHAT_MODELS } from "./response-plan.ts";

const FREE: Price = {
  lines: UNITS.map((unit) => ({ unit, usd: "0", per: 1 })),
  tiers: { "*": [] },
};

/** The demo sends and stores nothing. All data is discarded when the request ends. */
export const POLICY: DataPolicy = {
  retention: { kind: "zero" },
  trains: "no",
  requires: "none",
  evidence: ["in-process: no data leaves the gateway, and no data is used for training"],
  verifiedAt: "2026-11-21",
};

const NAMES: Readonly<Record<(typeof CHAT_MODELS)[number], string>> = {
  echo: "Demo: repeats the input",
  think: "Demo: reasons, then repeats the input",
  tools: "Demo: calls the first tool",
  lorem: "Demo: returns the requested number of words",
  slow: "Demo: the same as lorem, slowly",
  fail: "Demo: fails as requested",
};

const chat = (model: (typeof CHAT_MODELS)[number]): ModelInfo => ({
  model,
  operation: "chat",
  name: NAMES[model],
  can: {
    stream: true,
    system: true,
    tools: true,
    json: true,
    json_schema: true,
    ...(model === "think" && { reasoning: true }),
    n: false,
    logprobs: false,
  },
  limits: { context: CONTEXT, output: CONTEXT },
  price: FREE,
  released: "2026-11-01",
});

export const facts: Facts = {
  asOf: "2026-11-21",
  models: [
    ...CHAT_MODELS.map(chat),
    {
      model: "image",
      operation: "image",
      name: "Demo: generates a landscape",
      can: { stream: true },
      limits: { images: 10 },
      image: {
        sizes: ["auto"],
        sides: { min: 16, max: 2048 },
        qualities: ["auto", "low", "medium", "high", "standard", "hd"],
        formats: ["png"],
      },
      price: FREE,
      released: "2026-11-01",
    },
    {
      model: "complete",
      operation: "completion",
      name: "Demo: completes a text",
      can: { stream: true },
      limits: { output: 4_096 },
      price: FREE,
      released: "2026-11-01",
    },
    {
      model: "speech",
      operation: "speech",
      name: "Demo: plays a tone per letter",
      price: FREE,
      released: "2026-11-01",
    },
    {
      model: "transcribe",
      operation: "transcript",
      name: "Demo: transcribes audio from demo/speech",
      can: { stream: true },
      price: FREE,
      released: "2026-11-01",
    },
    ...LISTS.map(({ endpoint: { operation }, model, name }) => ({
      model,
      operation,
      name,
      price: FREE,
      released: "2026-11-01",
    })),
    {
      model: "embed",
      operation: "embedding",
      name: "Demo: embeds words",
      limits: { input: MAX_INPUT_TOKENS },
      price: FREE,
      released: "2026-11-01",
    },
  ],
};
