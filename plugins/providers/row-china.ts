// Labs in mainland China. A vendor's international and mainland hosts belong to different legal
// entities and have different keys, so they are separate providers.
import type { ChatDialect } from "tollgate/protocols/chat-completions";
import { type Backend, anthropicAt, but, plain } from "./row-backend.ts";

const kimi: ChatDialect = {
  ...plain,
  dropFields: [
    ...but("prompt_cache_key", "safety_identifier"),
    "parallel_tool_calls",
    "logit_bias",
    "user",
  ],
  reasoning: { control: "thinking.type", echo: "reasoning_content", echoRequired: true },
  models: [
    {
      of: ["kimi-k2.7-code*"],
      reasoning: {
        control: "thinking.type",
        canDisable: false,
        echo: "reasoning_content",
        echoRequired: true,
      },
    },
    {
      of: ["kimi-k3*"],
      reasoning: {
        control: "effort",
        efforts: ["low", "high", "max"],
        canDisable: false,
        echo: "reasoning_content",
        echoRequired: true,
      },
    },
    { of: ["moonshot-v1*"], reasoning: { control: "none", echo: "never" } },
  ],
};

const glm: ChatDialect = {
  ...plain,
  dropFields: [
    ...but(),
    "parallel_tool_calls",
    "logit_bias",
    "seed",
    "presence_penalty",
    "frequency_penalty",
  ],
  rejectFields: ["n", "logprobs"],
  toolChoice: "auto",
  // Without this field, arguments arrive in one piece at the end.
  setFields: { streamedTools: { tool_stream: true } },
  reasoning: { control: "thinking.type", echo: "reasoning_content" },
  models: [
    {
      of: ["glm-5.2*"],
      reasoning: {
        control: "thinking.type",
        alsoAcceptsEffort: true,
        efforts: ["high", "max"],
        echo: "reasoning_content",
      },
    },
    {
      of: ["glm-5.3*"],
      reasoning: {
        control: "thinking.type",
        alsoAcceptsEffort: true,
        efforts: ["low", "high", "max"],
        canDisable: false,
        echo: "reasoning_content",
      },
    },
  ],
};

const qwen: ChatDialect = {
  ...plain,
  dropFields: [...but(), "logit_bias", "user"],
  cacheMarks: "cache_control",
  cacheWriteTtl: "5m",
  topK: true,
  mediaUrls: true,
  reasoning: { control: "enable_thinking", echo: "reasoning_content" },
  models: [{ of: ["qwen3-max", "qwen3-coder*"], reasoning: { control: "none", echo: "never" } }],
};

const abab: ChatDialect = {
  ...plain,
  dropFields: [
    ...but(),
    "parallel_tool_calls",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "seed",
    "presence_penalty",
    "frequency_penalty",
  ],
  rejectFields: ["n"],
  // Without this field, the reasoning is in the text between tags.
  setFields: { always: { reasoning_split: true } },
  reasoning: { control: "thinking.type", echo: "reasoning_details" },
};

const seed: ChatDialect = {
  ...plain,
  dropFields: [...but("service_tier"), "user"],
  reasoning: { control: "thinking.type", echo: "reasoning_content" },
  models: [
    {
      of: ["seed-2*", "doubao-seed-2*"],
      reasoning: { control: "thinking.type", alsoAcceptsEffort: true, echo: "reasoning_content" },
    },
  ],
};

const seedream = { servedModels: ["*seedream*"], maxImages: 15 } as const;

export const mainland: readonly Backend[] = [
  {
    name: "moonshot",
    summary: "Moonshot AI",
    limits: "none",
    errors: "openai",
    unverified: ["limits"],
    stability: "beta",
    base: "https://api.moonshot.ai/v1",
    protocols: {
      "chat-completions": kimi,
      responses: {},
      messages: anthropicAt("../anthropic/v1"),
    },
  },
  {
    name: "moonshot-cn",
    summary: "Moonshot AI, mainland China",
    limits: "none",
    errors: "openai",
    unverified: ["responses", "messages", "limits"],
    base: "https://api.moonshot.cn/v1",
    protocols: {
      "chat-completions": kimi,
      responses: {},
      messages: anthropicAt("../anthropic/v1"),
    },
  },
  {
    name: "zai",
    summary: "Z.ai",
    limits: "none",
    errors: "openai",
    unverified: ["images", "limits"],
    stability: "beta",
    base: "https://api.z.ai/api/paas/v4",
    models: false,
    protocols: {
      "chat-completions": glm,
      messages: anthropicAt("../../anthropic/v1"),
      images: { responseFormat: "url", maxImages: 1, servedModels: ["cogview-*", "glm-image*"] },
    },
  },
  {
    name: "zai-coding",
    summary: "Z.ai coding plan, whose keys work only at its own URL",
    limits: "none",
    errors: "openai",
    unverified: ["limits"],
    base: "https://api.z.ai/api/coding/paas/v4",
    models: false,
    protocols: { "chat-completions": glm, messages: anthropicAt("../../../anthropic/v1") },
  },
  {
    name: "zhipu",
    summary: "Zhipu AI, mainland China",
    limits: "none",
    errors: "openai",
    unverified: ["messages", "limits"],
    base: "https://open.bigmodel.cn/api/paas/v4",
    models: false,
    protocols: { "chat-completions": glm, messages: anthropicAt("../../anthropic/v1") },
  },
  {
    name: "alibaba",
    summary: "Alibaba Model Studio, Singapore",
    limits: "none",
    errors: "openai",
    unverified: ["models", "limits"],
    stability: "beta",
    base: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
    batches: { protocols: ["chat-completions"], bytes: 500_000_000 },
    protocols: {
      "chat-completions": qwen,
      responses: {},
      messages: anthropicAt("../../apps/anthropic/v1"),
    },
  },
  {
    name: "alibaba-cn",
    summary: "Alibaba Model Studio, mainland China",
    limits: "none",
    errors: "openai",
    unverified: ["models", "responses", "messages", "limits"],
    base: "https://dashscope.aliyuncs.com/compatible-mode/v1",
    batches: { protocols: ["chat-completions"], bytes: 500_000_000 },
    protocols: {
      "chat-completions": qwen,
      responses: {},
      messages: anthropicAt("../../apps/anthropic/v1"),
    },
  },
  {
    name: "minimax",
    summary: "MiniMax",
    limits: "none",
    errors: "base_resp",
    unverified: ["thinking", "limits"],
    stability: "beta",
    base: "https://api.minimax.io/v1",
    models: false,
    // The vendor recommends the messages protocol, so translated requests use it.
    protocols: { messages: anthropicAt("../anthropic/v1"), "chat-completions": abab },
  },
  {
    name: "minimax-cn",
    summary: "MiniMax, mainland China",
    limits: "none",
    errors: "base_resp",
    unverified: ["messages", "thinking", "limits"],
    base: "https://api.minimaxi.com/v1",
    models: false,
    protocols: { messages: anthropicAt("../anthropic/v1"), "chat-completions": abab },
  },
  {
    name: "byteplus",
    summary: "BytePlus ModelArk",
    limits: "none",
    errors: "openai",
    unverified: ["effort", "images", "limits"],
    base: "https://ark.ap-southeast.bytepluses.com/api/v3",
    models: false,
    protocols: { "chat-completions": seed, responses: {}, images: seedream },
  },
  {
    name: "ark",
    summary: "Volcengine Ark, mainland China",
    limits: "none",
    errors: "openai",
    unverified: ["effort", "images", "limits"],
    base: "https://ark.cn-beijing.volces.com/api/v3",
    models: false,
    protocols: { "chat-completions": seed, responses: {}, images: seedream },
  },
  {
    name: "hunyuan",
    summary: "Tencent Hunyuan",
    limits: "none",
    errors: "openai",
    unverified: ["base", "thinking", "limits", "errors"],
    base: "https://api.hunyuan.cloud.tencent.com/v1",
    models: false,
    protocols: {
      "chat-completions": {
        ...plain,
        reasoning: { control: "thinking.type", echo: "reasoning_content" },
      },
    },
  },
  {
    name: "xiaomi",
    summary: "Xiaomi MiMo",
    limits: "none",
    errors: "openai",
    unverified: ["base", "thinking", "models", "limits", "errors"],
    base: "https://api.xiaomimimo.com/v1",
    protocols: {
      "chat-completions": {
        ...plain,
        reasoning: { control: "thinking.type", echo: "reasoning_content" },
      },
    },
  },
  {
    name: "stepfun",
    summary: "StepFun",
    limits: "none",
    errors: "openai",
    unverified: ["base", "models", "limits", "errors"],
    base: "https://api.stepfun.com/v1",
    protocols: { "chat-completions": plain },
  },
];
