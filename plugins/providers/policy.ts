// Data policies of the bundled providers: the retention of data, its use for training, and the
// parameter or agreement that prevents both. An entry with zero retention contains its evidence.
// All entries expire: after `expires` the policy is unknown until the evidence is reviewed again.
import type { DataPolicy, PolicyException } from "tollgate/plugin";

/**
 * A policy file. `dataPolicy` is the provider's general policy, and `exceptions` are the cases
 * where it does not apply.
 */
interface PolicyFile {
  dataPolicy: DataPolicy;
  exceptions?: readonly PolicyException[];
}

/**
 * The files by provider. Each import is written separately, because the build includes only modules
 * whose names are in the code.
 */
export const POLICIES: { readonly [provider: string]: () => Promise<{ default: unknown }> } = {
  alibaba: () => import("./policy/alibaba.json", { with: { type: "json" } }),
  "alibaba-cn": () => import("./policy/alibaba-cn.json", { with: { type: "json" } }),
  anthropic: () => import("./policy/anthropic.json", { with: { type: "json" } }),
  ark: () => import("./policy/ark.json", { with: { type: "json" } }),
  azure: () => import("./policy/azure.json", { with: { type: "json" } }),
  "azure-anthropic": () => import("./policy/azure-anthropic.json", { with: { type: "json" } }),
  baseten: () => import("./policy/baseten.json", { with: { type: "json" } }),
  bedrock: () => import("./policy/bedrock.json", { with: { type: "json" } }),
  bfl: () => import("./policy/bfl.json", { with: { type: "json" } }),
  byteplus: () => import("./policy/byteplus.json", { with: { type: "json" } }),
  cerebras: () => import("./policy/cerebras.json", { with: { type: "json" } }),
  chutes: () => import("./policy/chutes.json", { with: { type: "json" } }),
  cloudflare: () => import("./policy/cloudflare.json", { with: { type: "json" } }),
  cohere: () => import("./policy/cohere.json", { with: { type: "json" } }),
  coreweave: () => import("./policy/coreweave.json", { with: { type: "json" } }),
  databricks: () => import("./policy/databricks.json", { with: { type: "json" } }),
  deepinfra: () => import("./policy/deepinfra.json", { with: { type: "json" } }),
  deepseek: () => import("./policy/deepseek.json", { with: { type: "json" } }),
  fireworks: () => import("./policy/fireworks.json", { with: { type: "json" } }),
  google: () => import("./policy/google.json", { with: { type: "json" } }),
  groq: () => import("./policy/groq.json", { with: { type: "json" } }),
  huggingface: () => import("./policy/huggingface.json", { with: { type: "json" } }),
  hunyuan: () => import("./policy/hunyuan.json", { with: { type: "json" } }),
  hyperbolic: () => import("./policy/hyperbolic.json", { with: { type: "json" } }),
  "llama-cpp": () => import("./policy/llama-cpp.json", { with: { type: "json" } }),
  "lm-studio": () => import("./policy/lm-studio.json", { with: { type: "json" } }),
  meta: () => import("./policy/meta.json", { with: { type: "json" } }),
  minimax: () => import("./policy/minimax.json", { with: { type: "json" } }),
  "minimax-cn": () => import("./policy/minimax-cn.json", { with: { type: "json" } }),
  mistral: () => import("./policy/mistral.json", { with: { type: "json" } }),
  moonshot: () => import("./policy/moonshot.json", { with: { type: "json" } }),
  "moonshot-cn": () => import("./policy/moonshot-cn.json", { with: { type: "json" } }),
  nebius: () => import("./policy/nebius.json", { with: { type: "json" } }),
  novita: () => import("./policy/novita.json", { with: { type: "json" } }),
  nvidia: () => import("./policy/nvidia.json", { with: { type: "json" } }),
  ollama: () => import("./policy/ollama.json", { with: { type: "json" } }),
  "ollama-cloud": () => import("./policy/ollama-cloud.json", { with: { type: "json" } }),
  openai: () => import("./policy/openai.json", { with: { type: "json" } }),
  openrouter: () => import("./policy/openrouter.json", { with: { type: "json" } }),
  parasail: () => import("./policy/parasail.json", { with: { type: "json" } }),
  perplexity: () => import("./policy/perplexity.json", { with: { type: "json" } }),
  recraft: () => import("./policy/recraft.json", { with: { type: "json" } }),
  sambanova: () => import("./policy/sambanova.json", { with: { type: "json" } }),
  sglang: () => import("./policy/sglang.json", { with: { type: "json" } }),
  siliconflow: () => import("./policy/siliconflow.json", { with: { type: "json" } }),
  stepfun: () => import("./policy/stepfun.json", { with: { type: "json" } }),
  together: () => import("./policy/together.json", { with: { type: "json" } }),
  vercel: () => import("./policy/vercel.json", { with: { type: "json" } }),
  vllm: () => import("./policy/vllm.json", { with: { type: "json" } }),
  voyage: () => import("./policy/voyage.json", { with: { type: "json" } }),
  xai: () => import("./policy/xai.json", { with: { type: "json" } }),
  xiaomi: () => import("./policy/xiaomi.json", { with: { type: "json" } }),
  zai: () => import("./policy/zai.json", { with: { type: "json" } }),
  "zai-coding": () => import("./policy/zai-coding.json", { with: { type: "json" } }),
  zhipu: () => import("./policy/zhipu.json", { with: { type: "json" } }),
};

/** Sets the provider's policy. It replaces the policy in the definition. */
export async function withPolicy<D extends object>(provider: string, definition: D): Promise<D> {
  const shipped = (await POLICIES[provider]?.())?.default as PolicyFile | undefined;
  return shipped
    ? {
        ...definition,
        dataPolicy: shipped.dataPolicy,
        dataPolicyExceptions: shipped.exceptions ?? [],
      }
    : definition;
}
