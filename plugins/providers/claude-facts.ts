// Metadata of Claude models, except prices.
import type { Facts, ModelInfo } from "tollgate/plugin";

const SAMPLING = ["temperature", "top_p", "top_k"];

type More = Omit<Partial<ModelInfo>, "model" | "name" | "operation" | "limits">;

const model = (
  model: string,
  name: string,
  [context, output]: readonly [number, number],
  more: More = {},
): ModelInfo => ({
  model,
  name,
  operation: "chat",
  protocols: ["messages"],
  limits: { context, output },
  ...more,
  can: { tools: true, vision: true, reasoning: true, stream: true, system: true, ...more.can },
});

const SMALL_LIMITS = [200_000, 64_000] as const;
const LARGE_LIMITS = [1_000_000, 128_000] as const;
const OLDER_MODELS = { can: { documents: true, json_schema: true } };
const NEWER_MODELS = { rejectedFields: SAMPLING };

/**
 * These models are served only to organizations that allow Anthropic to retain their data for 30
 * days.
 */
const RETAINED_MODELS = {
  dataPolicy: { retention: { kind: "days", days: 30 }, requires: "unavailable" },
} as const;

export const facts: Facts = {
  asOf: "2026-11-10",
  models: [
    model("claude-fable-5-2", "Claude Fable 5.2", LARGE_LIMITS, NEWER_MODELS),
    model("claude-fable-5-1", "Claude Fable 5.1", LARGE_LIMITS, {
      ...NEWER_MODELS,
      ...RETAINED_MODELS,
    }),
    model("claude-fable-5", "Claude Fable 5", LARGE_LIMITS, {
      ...NEWER_MODELS,
      ...OLDER_MODELS,
      ...RETAINED_MODELS,
      released: "2026-06-09",
    }),
    model("claude-opus-5-5", "Claude Opus 5.5", LARGE_LIMITS, NEWER_MODELS),
    model("claude-opus-5", "Claude Opus 5", LARGE_LIMITS, {
      ...NEWER_MODELS,
      can: { json_schema: true },
    }),
    model("claude-opus-4-8", "Claude Opus 4.8", LARGE_LIMITS, {
      ...NEWER_MODELS,
      ...OLDER_MODELS,
      released: "2026-05-28",
    }),
    model("claude-opus-4-7", "Claude Opus 4.7", LARGE_LIMITS, {
      ...NEWER_MODELS,
      ...OLDER_MODELS,
      released: "2026-04-16",
    }),
    model("claude-opus-4-6", "Claude Opus 4.6", LARGE_LIMITS, {
      ...OLDER_MODELS,
      released: "2026-02-05",
    }),
    model("claude-opus-4-5", "Claude Opus 4.5", SMALL_LIMITS, {
      ...OLDER_MODELS,
      released: "2025-11-24",
    }),
    model("claude-sonnet-5-5", "Claude Sonnet 5.5", LARGE_LIMITS, NEWER_MODELS),
    model("claude-sonnet-5", "Claude Sonnet 5", LARGE_LIMITS, {
      ...NEWER_MODELS,
      ...OLDER_MODELS,
      released: "2026-06-30",
    }),
    model("claude-sonnet-4-6", "Claude Sonnet 4.6", LARGE_LIMITS, {
      ...OLDER_MODELS,
      released: "2026-02-17",
    }),
    model("claude-sonnet-4-5", "Claude Sonnet 4.5", SMALL_LIMITS, {
      ...OLDER_MODELS,
      released: "2025-09-29",
      retires: "2026-11-30",
    }),
    model("claude-haiku-5-5", "Claude Haiku 5.5", LARGE_LIMITS, NEWER_MODELS),
    model("claude-haiku-4-5", "Claude Haiku 4.5", SMALL_LIMITS, {
      ...OLDER_MODELS,
      released: "2025-10-15",
    }),
  ],
};
