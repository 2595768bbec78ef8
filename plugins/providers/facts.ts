// Facts that ship beside providers: what their models are called, can do and cost. Read when the provider is.
// The files are made by .build/facts.ts; where they come from and under which terms: THIRD_PARTY_NOTICES.
import type { Facts, ModelInfo } from "tollgate/plugin";

type LoadFile = () => Promise<{ default: unknown }>;

/** Every file by its provider; spelt out, for what is not named here is not built. */
const FACT_FILES: { readonly [provider: string]: LoadFile } = {
  alibaba: () => import("./facts/alibaba.json", { with: { type: "json" } }),
  anthropic: () => import("./facts/anthropic.json", { with: { type: "json" } }),
  azure: () => import("./facts/azure.json", { with: { type: "json" } }),
  bedrock: () => import("./facts/bedrock.json", { with: { type: "json" } }),
  byteplus: () => import("./facts/byteplus.json", { with: { type: "json" } }),
  cerebras: () => import("./facts/cerebras.json", { with: { type: "json" } }),
  cloudflare: () => import("./facts/cloudflare.json", { with: { type: "json" } }),
  cohere: () => import("./facts/cohere.json", { with: { type: "json" } }),
  databricks: () => import("./facts/databricks.json", { with: { type: "json" } }),
  deepseek: () => import("./facts/deepseek.json", { with: { type: "json" } }),
  fal: () => import("./facts/fal.json", { with: { type: "json" } }),
  fireworks: () => import("./facts/fireworks.json", { with: { type: "json" } }),
  google: () => import("./facts/google.json", { with: { type: "json" } }),
  groq: () => import("./facts/groq.json", { with: { type: "json" } }),
  meta: () => import("./facts/meta.json", { with: { type: "json" } }),
  minimax: () => import("./facts/minimax.json", { with: { type: "json" } }),
  mistral: () => import("./facts/mistral.json", { with: { type: "json" } }),
  moonshot: () => import("./facts/moonshot.json", { with: { type: "json" } }),
  nvidia: () => import("./facts/nvidia.json", { with: { type: "json" } }),
  openai: () => import("./facts/openai.json", { with: { type: "json" } }),
  openrouter: () => import("./facts/openrouter.json", { with: { type: "json" } }),
  perplexity: () => import("./facts/perplexity.json", { with: { type: "json" } }),
  recraft: () => import("./facts/recraft.json", { with: { type: "json" } }),
  sambanova: () => import("./facts/sambanova.json", { with: { type: "json" } }),
  stability: () => import("./facts/stability.json", { with: { type: "json" } }),
  together: () => import("./facts/together.json", { with: { type: "json" } }),
  vertex: () => import("./facts/vertex.json", { with: { type: "json" } }),
  xai: () => import("./facts/xai.json", { with: { type: "json" } }),
  zai: () => import("./facts/zai.json", { with: { type: "json" } }),
};

/** A provider with its listed facts. What its own code says of a model wins, fact by fact. */
export async function withFacts<D extends { facts?: Facts | undefined }>(
  provider: string,
  definition: D,
): Promise<D> {
  const listed = (await FACT_FILES[provider]?.())?.default as Facts | undefined;
  return listed ? { ...definition, facts: mergeFacts(definition.facts, listed) } : definition;
}

function mergeFacts(own: Facts | undefined, listed: Facts): Facts {
  if (!own) return listed;
  const models = new Map(listed.models.map((info) => [info.model, info]));
  for (const info of own.models) models.set(info.model, mergeModel(info, models.get(info.model)));
  return { asOf: own.asOf < listed.asOf ? own.asOf : listed.asOf, models: [...models.values()] };
}

const mergeModel = (own: ModelInfo, listed: ModelInfo | undefined): ModelInfo =>
  listed
    ? {
        ...listed,
        ...own,
        can: { ...listed.can, ...own.can },
        limits: { ...listed.limits, ...own.limits },
      }
    : own;
