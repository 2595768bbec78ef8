// Forms of existing configs, rewritten, with the expected findings.

interface ImportCase {
  readonly source: "litellm" | "portkey" | "bifrost";
  readonly name: string;
  readonly text: string;
  /** "kind line place" of each finding. */
  readonly found: readonly string[];
  /** Model names of clients, and the models that may respond. */
  readonly asked?: Readonly<Record<string, readonly string[]>>;
  readonly exit?: number;
}

const KEY = "api_key: os.environ/OPENAI_API_KEY";

const LITELLM: readonly Omit<ImportCase, "source">[] = [
  {
    name: "one model",
    text: `model_list:
  - model_name: assistant
    litellm_params: { model: openai/gpt-5-mini, ${KEY} }
`,
    found: [],
    asked: { assistant: ["gpt-5-mini"] },
  },
  {
    name: "no prefix, and no key",
    text: `model_list:
  - model_name: claude
    litellm_params: { model: claude-sonnet-4-5 }
`,
    found: [],
    asked: { claude: ["claude-sonnet-4-5"] },
  },
  {
    name: "one name many times is balanced",
    text: `model_list:
  - model_name: big
    litellm_params: { model: openai/gpt-5, ${KEY} }
  - model_name: big
    litellm_params: { model: anthropic/claude-sonnet-4-5, api_key: os.environ/ANTHROPIC_API_KEY }
`,
    found: [],
    asked: { big: ["gpt-5", "claude-sonnet-4-5"] },
  },
  {
    name: "weights",
    text: `model_list:
  - model_name: big
    litellm_params: { model: openai/gpt-5, ${KEY}, weight: 9 }
  - model_name: big
    litellm_params: { model: openai/gpt-5-mini, ${KEY}, weight: 1 }
`,
    found: [],
    asked: { big: ["gpt-5", "gpt-5-mini"] },
  },
  {
    name: "rates as weights",
    text: `model_list:
  - model_name: big
    litellm_params:
      model: openai/gpt-5
      ${KEY}
      rpm: 900
  - model_name: big
    litellm_params: { model: groq/openai/gpt-oss-120b, api_key: os.environ/GROQ_API_KEY, rpm: 100 }
`,
    found: [
      "approximate 6 model_list[0].litellm_params.rpm",
      "approximate 8 model_list[1].litellm_params.rpm",
    ],
    asked: { big: ["gpt-5", "openai/gpt-oss-120b"] },
  },
  {
    name: "order",
    text: `model_list:
  - model_name: big
    litellm_params: { model: openai/gpt-5, ${KEY}, order: 2 }
  - model_name: big
    litellm_params: { model: mistral/mistral-large-latest, api_key: os.environ/MISTRAL_API_KEY, order: 1 }
`,
    found: [],
    asked: { big: ["mistral-large-latest"] },
  },
  {
    name: "two keys of one provider",
    text: `model_list:
  - model_name: fast
    litellm_params: { model: openai/gpt-5-mini, api_key: os.environ/KEY_A }
  - model_name: fast
    litellm_params: { model: openai/gpt-5-mini, api_key: os.environ/KEY_B }
`,
    found: [],
    asked: { fast: ["gpt-5-mini"] },
  },
  {
    name: "azure",
    text: `model_list:
  - model_name: az
    litellm_params:
      model: azure/my-deployment
      api_base: https://acme.openai.azure.com/
      api_version: "2025-01-01-preview"
      api_key: os.environ/AZURE_API_KEY
`,
    found: ["exact 6 model_list[0].litellm_params.api_version"],
    asked: { az: ["my-deployment"] },
  },
  {
    name: "bedrock with a role",
    text: `model_list:
  - model_name: bed
    litellm_params:
      model: bedrock/anthropic.claude-sonnet-4-5-v1:0
      aws_region_name: eu-central-1
      aws_role_name: arn:aws:iam::1:role/x
`,
    found: [
      "manual 4 model_list[0].litellm_params.model",
      "manual 4 model_list[0].litellm_params.model",
      "manual 6 model_list[0].litellm_params.aws_role_name",
    ],
    asked: { bed: ["anthropic.claude-sonnet-4-5-v1:0"] },
  },
  {
    name: "a server of one's own",
    text: `model_list:
  - model_name: local
    litellm_params: { model: openai/qwen3, api_base: "http://10.0.0.5:8000/v1", api_key: none }
  - model_name: small
    litellm_params: { model: ollama_chat/llama3.2, api_base: "http://127.0.0.1:11434" }
  - model_name: served
    litellm_params: { model: hosted_vllm/mistral-7b, api_base: "http://127.0.0.1:8000/v1" }
`,
    found: [],
    asked: { local: ["qwen3"], small: ["llama3.2"], served: ["mistral-7b"] },
  },
  {
    name: "wildcards",
    text: `model_list:
  - model_name: openai/*
    litellm_params: { model: openai/*, ${KEY} }
  - model_name: gemini-*
    litellm_params: { model: gemini/gemini-*, api_key: os.environ/GEMINI_API_KEY }
  - model_name: "*"
    litellm_params: { model: openrouter/*, api_key: os.environ/OPENROUTER_API_KEY }
`,
    found: [],
    asked: {
      "openai/gpt-5-mini": ["gpt-5-mini"],
      "gemini-2.5-pro": ["gemini-2.5-pro"],
      "anything-else": ["anything-else"],
    },
  },
  {
    name: "two stars",
    text: `model_list:
  - model_name: "*/gpt-*"
    litellm_params: { model: openai/gpt-*, ${KEY} }
  - model_name: a
    litellm_params: { model: openai/gpt-5, ${KEY} }
`,
    found: ["manual 2 model_list[0]"],
    asked: { a: ["gpt-5"] },
  },
  {
    name: "fallbacks, which may lead back",
    text: `model_list:
  - model_name: a
    litellm_params: { model: openai/gpt-5, ${KEY} }
  - model_name: b
    litellm_params: { model: anthropic/claude-sonnet-4-5, api_key: os.environ/ANTHROPIC_API_KEY }
router_settings:
  fallbacks: [{ a: [b] }, { b: [a] }]
  num_retries: 2
  timeout: 30
`,
    found: ["approximate 8 router_settings.num_retries"],
    asked: { a: ["gpt-5"], b: ["claude-sonnet-4-5"] },
  },
  {
    name: "a longer window, and another policy",
    text: `model_list:
  - model_name: short
    litellm_params: { model: openai/gpt-5-nano, ${KEY} }
  - model_name: long
    litellm_params: { model: openai/gpt-5, ${KEY} }
litellm_settings:
  context_window_fallbacks: [{ short: [long] }]
  content_policy_fallbacks: [{ short: [long, gone] }]
`,
    found: [
      "approximate 8 litellm_settings.content_policy_fallbacks[0].short",
      "unsupported 8 litellm_settings.content_policy_fallbacks[0].short",
    ],
    asked: { short: ["gpt-5-nano"] },
    exit: 1,
  },
  {
    name: "aliases, a strategy, rests and Redis",
    text: `model_list:
  - model_name: a
    litellm_params: { model: openai/gpt-5, ${KEY} }
  - model_name: a
    litellm_params: { model: openai/gpt-5-mini, ${KEY} }
router_settings:
  routing_strategy: latency-based-routing
  model_group_alias: { gpt: a, secret: { model: a, hidden: true } }
  allowed_fails: 3
  cooldown_time: 30
  redis_host: os.environ/REDIS_HOST
  redis_port: 6379
`,
    found: [
      "approximate 9 router_settings.allowed_fails",
      "approximate 10 router_settings.cooldown_time",
      "exact 11 router_settings.redis_host",
      "exact 12 router_settings.redis_port",
    ],
    asked: { gpt: ["gpt-5", "gpt-5-mini"], secret: ["gpt-5", "gpt-5-mini"] },
  },
  {
    name: "prices, information and defaults of requests",
    text: `model_list:
  - model_name: own
    litellm_params:
      model: openai/gpt-5
      ${KEY}
      temperature: 0.2
      input_cost_per_token: 0.00000125
      output_cost_per_token: 1e-05
    model_info: { id: one, mode: chat, base_model: gpt-5 }
`,
    found: ["manual 6 model_list[0].litellm_params.temperature"],
    asked: { own: ["gpt-5"] },
  },
  {
    name: "named credentials",
    text: `credential_list:
  - credential_name: team
    credential_values: { api_key: os.environ/TEAM_KEY }
    credential_info: { description: "of the team" }
model_list:
  - model_name: a
    litellm_params: { model: openai/gpt-5, litellm_credential_name: team }
`,
    found: [],
    asked: { a: ["gpt-5"] },
  },
  {
    name: "settings of the whole",
    text: `model_list:
  - model_name: a
    litellm_params: { model: openai/gpt-5, ${KEY} }
litellm_settings:
  drop_params: true
  callbacks: [prometheus, langfuse]
  request_timeout: 600
  cache: true
general_settings:
  master_key: sk-1234
  database_url: os.environ/DATABASE_URL
  alerting: [slack]
environment_variables: { LANGFUSE_HOST: https://x.test }
`,
    found: [
      "exact 5 litellm_settings.drop_params",
      "approximate 6 litellm_settings.callbacks",
      "manual 6 litellm_settings.callbacks",
      "unsupported 8 litellm_settings.cache",
      "manual 10 general_settings.master_key",
      "manual 11 general_settings.database_url",
      "manual 12 general_settings.alerting",
      "manual 13 environment_variables",
    ],
    asked: { a: ["gpt-5"] },
    exit: 1,
  },
  {
    name: "what nothing reads",
    text: `model_list:
  - model_name: a
    litellm_params: { model: openai/gpt-5, ${KEY}, made_up: 1 }
vector_store_registry: [{ name: x }]
`,
    found: [
      "unsupported 3 model_list[0].litellm_params.made_up",
      "unsupported 4 vector_store_registry",
    ],
    asked: { a: ["gpt-5"] },
    exit: 1,
  },
  {
    name: "a provider that is not here, and one that is a package",
    text: `model_list:
  - model_name: v
    litellm_params: { model: vertex_ai/gemini-2.5-pro, vertex_project: p }
  - model_name: w
    litellm_params: { model: watsonx/granite, api_key: os.environ/WATSONX_KEY, project_id: p }
  - model_name: a
    litellm_params: { model: deepseek/deepseek-chat, api_key: os.environ/DEEPSEEK_API_KEY }
`,
    found: [
      "manual 3 model_list[0].litellm_params.model",
      "manual 3 model_list[0].litellm_params.model",
      "unsupported 5 model_list[1].litellm_params.model",
    ],
    asked: { a: ["deepseek-chat"], v: ["gemini-2.5-pro"] },
    exit: 1,
  },
  {
    name: "guardrails and includes",
    text: `include: [models.yaml]
guardrails:
  - { guardrail_name: pii, litellm_params: { guardrail: presidio, mode: pre_call } }
model_list:
  - model_name: a
    litellm_params: { model: together_ai/meta-llama/Llama-4-Scout, api_key: os.environ/TOGETHER_API_KEY, timeout: 60, stream_timeout: 5 }
`,
    found: [
      "manual 1 include",
      "unsupported 2 guardrails",
      "approximate 6 model_list[0].litellm_params.stream_timeout",
    ],
    asked: { a: ["meta-llama/Llama-4-Scout"] },
    exit: 1,
  },
];

const PORTKEY: readonly Omit<ImportCase, "source">[] = [
  {
    name: "one target",
    text: `{ "provider": "openai", "api_key": "sk-x-0123456789", "override_params": { "model": "gpt-5" } }`,
    found: ["manual 1 api_key"],
    asked: { assistant: ["gpt-5"] },
  },
  {
    name: "a slug of its vault, whose provider only its own name tells",
    text: `{ "provider": "@openai-prod", "override_params": { "model": "gpt-5" } }`,
    found: ["approximate 1 provider"],
    asked: { assistant: ["gpt-5"] },
  },
  {
    name: "a tree: shares of what falls over",
    text: `{
  "strategy": { "mode": "loadbalance" },
  "targets": [
    { "weight": 0.7, "strategy": { "mode": "fallback", "on_status_codes": [429, 503] },
      "targets": [
        { "virtual_key": "openai-main", "override_params": { "model": "gpt-5" } },
        { "provider": "anthropic", "override_params": { "model": "claude-sonnet-4-5" } }
      ] },
    { "weight": 0.3, "provider": "groq", "override_params": { "model": "llama-3.3-70b" }, "retry": { "attempts": 3 } }
  ]
}`,
    found: [
      "approximate 4 targets[0].strategy.mode",
      "approximate 6 targets[0].targets[0].virtual_key",
      "manual 6 targets[0].targets[0].virtual_key",
      "approximate 9 targets[1].retry",
    ],
    asked: { assistant: ["gpt-5", "llama-3.3-70b"] },
  },
  {
    name: "conditions, a cache and guardrails",
    text: `{
  "strategy": { "mode": "conditional", "conditions": [], "default": "a" },
  "cache": { "mode": "semantic" },
  "targets": [{ "name": "a", "provider": "openai", "input_guardrails": ["g"], "override_params": { "model": "gpt-5" } }]
}`,
    found: [
      "unsupported 2 strategy",
      "unsupported 3 cache",
      "unsupported 4 targets[0].input_guardrails",
    ],
    asked: { assistant: ["gpt-5"], "assistant.a": ["gpt-5"] },
    exit: 1,
  },
];

const BIFROST: readonly Omit<ImportCase, "source">[] = [
  {
    name: "providers with keys",
    text: `{
  "providers": {
    "openai": {
      "keys": [
        { "name": "a", "value": "env.OPENAI_A", "models": [], "weight": 0.7 },
        { "name": "b", "value": "env.OPENAI_B", "models": ["gpt-5-mini"], "weight": 0.3 }
      ],
      "network_config": { "default_request_timeout_in_seconds": 30, "max_retries": 2 }
    },
    "ollama": { "keys": [], "network_config": { "base_url": "http://127.0.0.1:11434" } }
  },
  "logs_store": { "enabled": true }
}`,
    found: ["approximate 8 providers.openai.network_config.max_retries", "exact 12 logs_store"],
    asked: { "openai/gpt-5-mini": ["gpt-5-mini"], "ollama/llama3.2": ["llama3.2"] },
  },
  {
    name: "governance",
    text: `{
  "providers": { "anthropic": { "keys": [{ "value": "env.ANTHROPIC_API_KEY", "models": [], "weight": 1 }] } },
  "governance": {
    "budgets": [{ "id": "b1", "max_limit": 500, "reset_duration": "1M" }],
    "rate_limits": [{ "id": "r1", "request_max_limit": 60, "request_reset_duration": "1m" }],
    "customers": [{ "id": "c1", "name": "Acme", "budget_id": "b1" }],
    "teams": [{ "id": "t1", "name": "Search", "customer_id": "c1", "rate_limit_id": "r1" }],
    "virtual_keys": [{ "id": "v1", "name": "ci", "value": "sk-bf-0123456789abcdef", "team_id": "t1", "is_active": true }]
  }
}`,
    found: [],
    asked: { "anthropic/claude-sonnet-4-5": ["claude-sonnet-4-5"] },
  },
];

export const CASES: readonly ImportCase[] = [
  ...LITELLM.map((one) => ({ source: "litellm" as const, ...one })),
  ...PORTKEY.map((one) => ({ source: "portkey" as const, ...one })),
  ...BIFROST.map((one) => ({ source: "bifrost" as const, ...one })),
];
