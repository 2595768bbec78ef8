// Constructs of the configs in Portkey's cookbooks and pages.
import type { Corpus } from "./corpus.ts";

const config = (of: object) => JSON.stringify(of, null, 2);
const target = (provider: string, model?: string, more: object = {}) => ({
  provider,
  api_key: `sk-${provider}-0123456789`,
  ...(model !== undefined && { override_params: { model } }),
  ...more,
});
const tree = (mode: string, targets: readonly object[], more: object = {}, strategy: object = {}) =>
  config({ strategy: { mode, ...strategy }, targets, ...more });
const A = target("openai", "gpt-5");
const B = target("anthropic", "claude-sonnet-4-5");
const C = target("groq", "llama-3.3-70b");

export const PORTKEY: Corpus = {
  "one provider": config(A),
  "one provider, any model": config(target("openai")),
  "a fallback": tree("fallback", [A, B]),
  "a fallback on statuses": tree("fallback", [A, B], {}, { on_status_codes: [429, 503] }),
  "a fallback in camel case": tree("fallback", [A, B], {}, { onStatusCodes: [500] }),
  "a fallback whose first has no model": tree("fallback", [target("openai"), B]),
  "a fallback without a model": tree("fallback", [target("openai"), target("anthropic")]),
  "retries beside it": tree("fallback", [A, B], { retry: { count: 5 } }),
  "retries with statuses": config({ ...A, retry: { attempts: 3, on_status_codes: [429] } }),
  "a cache": tree("fallback", [A, B], { cache: { mode: "semantic", max_age: 60 } }),
  shares: tree("loadbalance", [
    { ...A, weight: 0.7 },
    { ...B, weight: 0.3 },
  ]),
  "shares as text": tree("loadbalance", [
    { ...A, weight: "0.5" },
    { ...B, weight: "0.5" },
  ]),
  "shares that are not written": tree("loadbalance", [A, B, C]),
  "two keys of one provider": tree("loadbalance", [
    { ...A, api_key: "sk-first-0123456789" },
    { ...A, api_key: "sk-other-0123456789" },
  ]),
  "shares of fallbacks": tree("loadbalance", [
    { weight: 0.6, strategy: { mode: "fallback" }, targets: [A, B] },
    { ...C, weight: 0.4 },
  ]),
  "a fallback to shares": tree("fallback", [
    A,
    { strategy: { mode: "loadbalance" }, targets: [B, C] },
  ]),
  conditions: tree(
    "conditional",
    [
      { ...A, name: "paid" },
      { ...B, name: "free" },
    ],
    {},
    {
      conditions: [{ query: { "metadata.plan": { $eq: "paid" } }, then: "paid" }],
      default: "free",
    },
  ),
  "conditions over a fallback": tree(
    "conditional",
    [
      { name: "x", strategy: { mode: "fallback" }, targets: [A, B] },
      { ...C, name: "y" },
    ],
    {},
    { conditions: [], default: "x" },
  ),
  "virtual keys": tree("fallback", [
    { virtual_key: "openai-prod", override_params: { model: "gpt-5" } },
    { virtual_key: "anthropic-431005", override_params: { model: "claude-sonnet-4-5" } },
  ]),
  "a virtual key whose name says nothing": tree("loadbalance", [
    { virtual_key: "gpt3-8070a6", override_params: { model: "gpt-5" } },
    { virtual_key: "together-1c20e9", override_params: { model: "meta-llama/Llama-3-8b-chat-hf" } },
  ]),
  "a virtual key in capitals": config({
    virtualKey: "OPENAI_VIRTUAL_KEY",
    overrideParams: { model: "gpt-5" },
  }),
  "azure with its resource": config({
    provider: "azure-openai",
    resource_name: "acme",
    deployment_id: "gpt-5-dep",
    api_version: "2025-03-01",
    api_key: "0123456789abcdef",
  }),
  "azure without its resource": tree("fallback", [A, target("azure-openai")]),
  "bedrock by keys": config({
    provider: "bedrock",
    aws_access_key_id: "AKIA0123456789",
    aws_secret_access_key: "0123456789abcdef0123",
    aws_region: "us-east-1",
    override_params: { model: "anthropic.claude-sonnet-4-5-20250929-v1:0" },
  }),
  "vertex by a service account": config({
    provider: "vertex-ai",
    vertex_project_id: "p-1",
    vertex_region: "us-central1",
    vertex_service_account_json: { client_email: "a@b.example", private_key: "-----BEGIN-----" },
    override_params: { model: "gemini-2.5-pro" },
  }),
  "a host of one's own": config({
    provider: "openai",
    custom_host: "https://llm.example/v1",
    api_key: "sk-own-0123456789",
    override_params: { model: "own-1", temperature: 0.2 },
  }),
  "guardrails and hooks": config({
    ...A,
    input_guardrails: ["pii"],
    output_guardrails: [{ "default.contains": { words: ["x"] } }],
  }),
  "a time limit": config({ ...A, request_timeout: 10_000 }),
  "prompts by their ids": tree("fallback", [{ prompt_id: "pp-1" }, { prompt_id: "pp-2" }]),
  "a provider that is not here": tree("fallback", [
    target("anyscale", "meta-llama/Llama-2-7b"),
    target("mistral-ai", "mistral-large-latest"),
  ]),
  "a model above its targets": tree(
    "fallback",
    [
      { provider: "openai", api_key: "sk-a-0123456789" },
      { provider: "openrouter", api_key: "sk-b-0123456789" },
    ],
    { override_params: { model: "gpt-5" } },
  ),
};
