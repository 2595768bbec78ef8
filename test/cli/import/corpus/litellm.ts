// Constructs of LiteLLM's example configs.
import type { Corpus } from "./corpus.ts";

const OPENAI = "api_key: os.environ/OPENAI_API_KEY";
const model = (name: string, params: string, more = "") =>
  `  - model_name: ${JSON.stringify(name)}\n    litellm_params: { ${params} }\n${more}`;
const litellm = (models: readonly string[], rest = "") => `model_list:\n${models.join("")}${rest}`;
const gpt = model("gpt", `model: openai/gpt-5, ${OPENAI}`);
const small = model("small", `model: openai/gpt-5-mini, ${OPENAI}`);
const vectors = model("vectors", `model: openai/text-embedding-3-small, ${OPENAI}`);

export const LITELLM: Corpus = {
  "vertex by project and location": litellm([
    model(
      "g",
      "model: vertex_ai/gemini-2.5-pro, vertex_project: p-1, vertex_location: europe-west4",
    ),
  ]),
  "vertex by a service account of a variable": litellm([
    model(
      "g",
      "model: vertex_ai/gemini-2.5-pro, vertex_credentials: os.environ/GOOGLE_KEY, vertex_project: p",
    ),
  ]),
  "claude on vertex": litellm([
    model("c", "model: vertex_ai/claude-sonnet-4-5@20250929, vertex_project: os.environ/PROJECT"),
  ]),
  "bedrock by keys of variables": litellm([
    model(
      "b",
      "model: bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0, aws_access_key_id: os.environ/AWS_ID, aws_secret_access_key: os.environ/AWS_SECRET, aws_region_name: us-west-2",
    ),
  ]),
  "bedrock by converse, by invoke, and by a region in the name": litellm([
    model("b1", "model: bedrock/converse/us.anthropic.claude-haiku-4-5-20251001-v1:0"),
    model("b2", "model: bedrock/invoke/global.anthropic.claude-opus-4-7"),
    model("b3", "model: bedrock/eu-central-1/amazon.nova-lite-v1:0"),
  ]),
  "bedrock by a profile": litellm([
    model("b", "model: bedrock/amazon.nova-pro-v1:0, aws_profile_name: prod"),
  ]),
  "azure with Entra ID": litellm([
    model(
      "a",
      "model: azure/gpt-5-dep, api_base: https://acme.openai.azure.com, tenant_id: os.environ/T, client_id: os.environ/C, client_secret: os.environ/S",
    ),
  ]),
  "azure AI Foundry": litellm([
    model(
      "a",
      "model: azure_ai/claude-haiku-4-5, api_base: https://acme.services.ai.azure.com/anthropic, api_key: os.environ/AZURE_AI_API_KEY",
    ),
  ]),
  "a deployment with a base model": litellm([
    gpt,
    model(
      "dep",
      "model: azure/d1, api_base: os.environ/AZURE_API_BASE, api_key: os.environ/AZURE_API_KEY",
      "    model_info: { base_model: azure/gpt-5, mode: chat, max_input_tokens: 200000, supports_vision: true }\n",
    ),
  ]),
  "a deployment with a base model of a vendor that is not mounted": litellm([
    model(
      "dep",
      "model: azure/d1, api_base: https://acme.openai.azure.com, api_key: os.environ/AZURE_API_KEY",
      "    model_info: { base_model: gpt-5 }\n",
    ),
  ]),
  embeddings: litellm([vectors]),
  "an embedding server of one's own": litellm([
    model(
      "bge",
      "model: openai/bge-large, api_base: http://10.0.0.9:8080/v1, api_key: none",
      "    model_info: { mode: embedding }\n",
    ),
  ]),
  "default fallbacks beside an embedding name": litellm(
    [gpt, small, vectors],
    "router_settings: { default_fallbacks: [small] }\n",
  ),
  "default fallbacks in litellm_settings": litellm(
    [gpt, small, vectors],
    "litellm_settings: { default_fallbacks: [small], num_retries: 3 }\n",
  ),
  "a fallback of another kind of model": litellm(
    [gpt, vectors],
    "litellm_settings: { fallbacks: [{ vectors: [gpt] }] }\n",
  ),
  "kinds of models": litellm([
    model(
      "draw",
      `model: openai/gpt-image-1, ${OPENAI}`,
      "    model_info: { mode: image_generation }\n",
    ),
    model(
      "hear",
      `model: openai/whisper-1, ${OPENAI}`,
      "    model_info: { mode: audio_transcription }\n",
    ),
    model(
      "say",
      `model: openai/gpt-4o-mini-tts, ${OPENAI}`,
      "    model_info: { mode: audio_speech }\n",
    ),
    model(
      "rank",
      "model: cohere/rerank-v3.5, api_key: os.environ/COHERE_API_KEY",
      "    model_info: { mode: rerank }\n",
    ),
    model(
      "judge",
      `model: openai/omni-moderation-latest, ${OPENAI}`,
      "    model_info: { mode: moderation }\n",
    ),
  ]),
  "voyage and its vectors": litellm([
    model("voyage-4-large", "model: voyage/voyage-4-large, api_key: os.environ/VOYAGE_API_KEY"),
  ]),
  "timeouts of one deployment": litellm([
    model("gpt", `model: openai/gpt-5, ${OPENAI}, timeout: 60, stream_timeout: 10, max_retries: 0`),
  ]),
  "timeouts of the router": litellm(
    [gpt],
    `router_settings: { "timeout": 30, "stream_timeout": 5, num_retries: 1 }\n`,
  ),
  "a timeout of everything": litellm([gpt], "litellm_settings: { request_timeout: 600 }\n"),
  "rates in the wrong place, and tags": litellm([
    model("gpt", `model: openai/gpt-5, ${OPENAI}, tags: [paid]`, "    tpm: 1000\n    rpm: 6\n"),
  ]),
  "wildcards of every vendor": litellm([
    model("anthropic/*", "model: anthropic/*, api_key: os.environ/ANTHROPIC_API_KEY"),
    model("bedrock/*", "model: bedrock/*, aws_region_name: us-east-1"),
    model("vertex_ai/*", "model: vertex_ai/*, vertex_project: os.environ/PROJECT"),
    model("gemini/*", "model: gemini/*, api_key: os.environ/GEMINI_API_KEY"),
    model(
      "azure_ai/*",
      "model: azure_ai/*, api_base: os.environ/AZURE_AI_API_BASE, api_key: os.environ/AZURE_AI_API_KEY",
    ),
  ]),
  "ollama, and ollama's chat": litellm([
    model("o1", 'model: ollama/llama3.2, api_base: "http://127.0.0.1:11434"'),
    model("o2", 'model: ollama_chat/qwen3, api_base: "http://127.0.0.1:11434/"'),
  ]),
  "a router that learns": litellm([
    gpt,
    model(
      "smart",
      "model: auto_router/adaptive_router, adaptive_router_config: { available_models: [gpt] }",
    ),
  ]),
  "a second gateway behind": litellm([
    model(
      "g",
      "model: litellm_proxy/gpt-5, api_base: https://llm.example/v1, api_key: os.environ/K",
    ),
  ]),
  "a deployment without a name": "model_list:\n  - litellm_params: { model: openai/gpt-5 }\n",
  "mcp servers, search tools and policies": litellm(
    [gpt],
    "mcp_servers: { docs: { url: https://mcp.example } }\nsearch_tools: [{ search_tool_name: s, litellm_params: { search_provider: x } }]\npolicies: { a: { guardrails: [b] } }\n",
  ),
  "one model under two names": litellm([gpt, model("gpt-again", `model: openai/gpt-5, ${OPENAI}`)]),
  "text completions": litellm([
    model(
      "old",
      `model: text-completion-openai/gpt-3.5-turbo-instruct, ${OPENAI}`,
      "    model_info: { mode: completion }\n",
    ),
  ]),
  "a key that stands in the file, and an address in a variable": litellm([
    model("x", "model: openai/x-1, api_base: os.environ/OWN_BASE, api_key: sk-0123456789abcdef"),
  ]),
};
