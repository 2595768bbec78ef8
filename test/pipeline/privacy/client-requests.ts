// Current requests of clients, field by field: Claude Code and Codex as captured, and the usual
// fields of the SDKs.
const SCHEMA = { type: "object", properties: { a: { type: "string" } }, required: ["a"] };
const CACHED = { cache_control: { type: "ephemeral", ttl: "1h" } };
const PNG = { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" };

const claudeCode = {
  model: "m",
  max_tokens: 32_000,
  stream: true,
  system: [
    { type: "text", text: "x-anthropic-billing-header: cc_version=2.1;" },
    { type: "text", text: "You are Claude Code.", cache_control: { type: "ephemeral" } },
  ],
  messages: [
    { role: "user", content: [{ type: "text", text: "Look.", ...CACHED }] },
    { role: "system", content: "The folder is empty." },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "", signature: "c2ln" },
        { type: "tool_use", id: "toolu_1", name: "Read", input: { file_path: "/a", tools: [1] } },
      ],
    },
    {
      role: "user",
      content: [
        {
          type: "tool_result",
          tool_use_id: "toolu_1",
          is_error: false,
          content: [
            { type: "text", text: "x" },
            { type: "image", source: PNG },
          ],
          ...CACHED,
        },
      ],
    },
  ],
  tools: [
    { name: "Read", description: "Reads.", input_schema: SCHEMA, ...CACHED },
    { name: "Later", description: "Later.", input_schema: SCHEMA, defer_loading: true },
  ],
  metadata: { user_id: '{"device_id":"d","session_id":"s"}' },
  thinking: { type: "adaptive", display: "omitted" },
  context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
  output_config: { effort: "high" },
  safeguards: { any: [{ thing: true }] },
};

const codex = {
  model: "m",
  stream: true,
  store: false,
  input: [
    {
      type: "message",
      id: "msg_0",
      role: "developer",
      content: [{ type: "input_text", text: "You are Codex." }],
    },
    { type: "message", role: "user", content: [{ type: "input_text", text: "Look." }] },
    { type: "reasoning", id: "rs_1", summary: [], content: null, encrypted_content: "ZQ==" },
    {
      type: "function_call",
      id: "fc_1",
      call_id: "c1",
      name: "exec_command",
      namespace: "functions",
      arguments: "{}",
      status: "completed",
    },
    { type: "function_call_output", id: "fco_1", call_id: "c1", output: "x" },
    { type: "custom_tool_call", call_id: "c2", name: "apply_patch", input: "*** Begin" },
    { type: "custom_tool_call_output", id: "ctco_1", call_id: "c2", output: "Success." },
    { type: "message", role: "assistant", phase: "commentary", content: [] },
    { type: "message", role: "user", content: [{ type: "input_text", text: "Go on." }] },
  ],
  tools: [
    {
      type: "function",
      name: "exec_command",
      description: "Runs.",
      parameters: SCHEMA,
      strict: false,
    },
    {
      type: "custom",
      name: "apply_patch",
      description: "Patches.",
      format: { type: "grammar", syntax: "lark", definition: "start: /.+/" },
    },
    {
      type: "namespace",
      name: "multi_agent_v1",
      description: "Agents.",
      tools: [{ type: "function", name: "close_agent", parameters: SCHEMA, strict: false }],
    },
    { type: "tool_search", execution: "client", description: "Finds.", parameters: SCHEMA },
    { type: "web_search", external_web_access: false },
  ],
  tool_choice: "auto",
  parallel_tool_calls: true,
  reasoning: { effort: "high", summary: "auto" },
  include: ["reasoning.encrypted_content"],
  prompt_cache_key: "k",
  client_metadata: { "x-codex-installation-id": "i" },
  text: { verbosity: "low" },
};

const chat = {
  model: "m",
  messages: [
    { role: "developer", content: "Be kind.", name: "n" },
    {
      role: "user",
      content: [
        { type: "text", text: "Look." },
        { type: "image_url", image_url: { url: "data:image/png;base64,AAAA", detail: "low" } },
      ],
    },
    {
      role: "assistant",
      content: null,
      refusal: null,
      reasoning_content: "r",
      tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
    },
    { role: "tool", tool_call_id: "c", content: "x" },
  ],
  tools: [
    {
      type: "function",
      function: { name: "f", description: "d", parameters: SCHEMA, strict: true },
    },
  ],
  tool_choice: "auto",
  parallel_tool_calls: true,
  max_completion_tokens: 100,
  temperature: 1,
  top_p: 1,
  stop: ["END"],
  seed: 1,
  presence_penalty: 0,
  frequency_penalty: 0,
  logit_bias: { "1": 1 },
  reasoning_effort: "low",
  verbosity: "low",
  response_format: {
    type: "json_schema",
    json_schema: { name: "n", schema: SCHEMA, strict: true, description: "d" },
  },
  stream: true,
  stream_options: { include_usage: true },
  metadata: { a: "b" },
  user: "u",
  service_tier: "auto",
  prompt_cache_key: "k",
  store: false,
};

const openai = {
  model: "m",
  instructions: "Be kind.",
  input: [
    {
      role: "user",
      content: [
        { type: "input_text", text: "Look." },
        { type: "input_image", image_url: "data:image/png;base64,AAAA", detail: "auto" },
        { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,AA==" },
      ],
    },
  ],
  max_output_tokens: 100,
  temperature: 1,
  top_p: 1,
  truncation: "disabled",
  metadata: { a: "b" },
  user: "u",
  service_tier: "auto",
  text: { format: { type: "json_schema", name: "n", schema: SCHEMA, strict: true } },
  previous_response_id: null,
  background: false,
};

const anthropic = {
  model: "m",
  max_tokens: 100,
  system: "Be kind.",
  messages: [
    {
      role: "user",
      content: [
        {
          type: "document",
          title: "t",
          context: "c",
          source: { ...PNG, media_type: "application/pdf" },
        },
        { type: "text", text: "Look." },
      ],
    },
  ],
  stop_sequences: ["END"],
  temperature: 1,
  top_k: 5,
  thinking: { type: "disabled" },
  output_config: { format: { type: "json_schema", schema: SCHEMA } },
  tools: [{ type: "custom", name: "f", description: "d", input_schema: SCHEMA, strict: true }],
  tool_choice: { type: "auto", disable_parallel_tool_use: true },
  service_tier: "auto",
};

const compatible = {
  ...chat,
  top_k: 5,
  min_p: 0.1,
  repetition_penalty: 1.1,
  chat_template_kwargs: { enable_thinking: true, deep: { tools: [1] } },
  enable_thinking: true,
  thinking: { type: "enabled" },
};

/**
 * In Gemini CLI's form: types in upper case, calls and results with IDs, and its own placeholder
 * signature.
 */
const geminiCli = {
  contents: [
    { role: "user", parts: [{ text: "Look." }] },
    {
      role: "model",
      parts: [
        {
          functionCall: { id: "c1", name: "read_file", args: { tools: [1] } },
          thoughtSignature: "skip_thought_signature_validator",
        },
      ],
    },
    {
      role: "user",
      parts: [{ functionResponse: { id: "c1", name: "read_file", response: { output: "x" } } }],
    },
  ],
  systemInstruction: { role: "user", parts: [{ text: "You are an agent." }] },
  tools: [
    {
      functionDeclarations: [
        {
          name: "read_file",
          description: "Reads.",
          parametersJsonSchema: { type: "OBJECT", properties: { a: { type: "STRING" } } },
        },
      ],
    },
  ],
  generationConfig: {
    temperature: 1,
    topP: 0.95,
    topK: 64,
    thinkingConfig: { includeThoughts: true, thinkingLevel: "HIGH" },
  },
};

const google = {
  contents: [
    {
      role: "user",
      parts: [
        { text: "Look." },
        { inlineData: { mimeType: "image/png", data: "AAAA" } },
        { inlineData: { mimeType: "application/pdf", data: "AA==" } },
      ],
    },
  ],
  systemInstruction: { parts: [{ text: "Be kind." }] },
  tools: [{ functionDeclarations: [{ name: "f", description: "d", parameters: SCHEMA }] }],
  toolConfig: { functionCallingConfig: { mode: "AUTO" } },
  generationConfig: {
    maxOutputTokens: 100,
    stopSequences: ["END"],
    candidateCount: 1,
    responseMimeType: "application/json",
    responseJsonSchema: SCHEMA,
    seed: 1,
  },
  safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "BLOCK_NONE" }],
};

/** Name, protocol, body. */
export const SENT: readonly (readonly [name: string, protocol: string, body: object])[] = [
  ["Claude Code", "messages", claudeCode],
  ["Codex", "responses", codex],
  ["the OpenAI SDK's chat", "chat-completions", chat],
  ["the OpenAI SDK's responses", "responses", openai],
  ["the Anthropic SDK", "messages", anthropic],
  ["what imitators add", "chat-completions", compatible],
  ["Gemini CLI", "gemini", geminiCli],
  ["Google's SDKs", "gemini", google],
];
