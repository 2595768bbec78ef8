// The documented forms of a response and of every event, as JSON Schema, written from the published
// reference. Closed where clients are closed: an unlisted event or item fails.
import { Ajv } from "ajv";

const text = { type: "string" };
const count = { type: "integer", minimum: 0 };
const nullable = (schema: object) => ({ anyOf: [schema, { type: "null" }] });
const all = (properties: Record<string, object>, optional: readonly string[] = []) => ({
  type: "object",
  properties,
  required: Object.keys(properties).filter((key) => !optional.includes(key)),
});
const kind = (name: string) => ({ const: name });
const list = (items: object) => ({ type: "array", items });
const status = { enum: ["in_progress", "completed", "incomplete"] };

const annotation = {
  anyOf: [
    all({
      type: kind("url_citation"),
      url: text,
      title: text,
      start_index: count,
      end_index: count,
    }),
    all({ type: kind("file_citation"), file_id: text, filename: text, index: count }),
    all({ type: { enum: ["container_file_citation", "file_path"] }, file_id: text }),
  ],
};
const outputText = all({
  type: kind("output_text"),
  text,
  annotations: list(annotation),
  logprobs: list({ type: "object" }),
});
const refusal = all({ type: kind("refusal"), refusal: text });
const summaryText = all({ type: kind("summary_text"), text });
const reasoningText = all({ type: kind("reasoning_text"), text });

const item = {
  anyOf: [
    all({
      id: text,
      type: kind("message"),
      status,
      role: kind("assistant"),
      content: list({ anyOf: [outputText, refusal] }),
    }),
    all(
      {
        id: text,
        type: kind("reasoning"),
        summary: list(summaryText),
        content: list(reasoningText),
        encrypted_content: text,
        status,
      },
      ["content", "encrypted_content", "status"],
    ),
    all({
      id: text,
      type: kind("function_call"),
      status,
      call_id: { type: "string", minLength: 1, maxLength: 64 },
      name: text,
      arguments: text,
    }),
    all({
      id: text,
      type: kind("custom_tool_call"),
      status,
      call_id: { type: "string", minLength: 1, maxLength: 64 },
      name: text,
      input: text,
    }),
    all({
      id: text,
      type: kind("image_generation_call"),
      status: { enum: ["in_progress", "generating", "completed", "failed"] },
      result: nullable(text),
    }),
    all({
      id: text,
      type: kind("web_search_call"),
      status: { enum: ["in_progress", "searching", "completed", "failed"] },
      action: { type: "object", required: ["type"] },
    }),
    // Other hosted tools are forwarded unchanged.
    all({
      id: text,
      type: {
        enum: [
          "file_search_call",
          "code_interpreter_call",
          "mcp_call",
          "mcp_list_tools",
          "computer_call",
          "shell_call",
          "compaction",
          "new_thing",
        ],
      },
    }),
  ],
};

const usage = all({
  input_tokens: count,
  input_tokens_details: all({ cached_tokens: count, cache_write_tokens: count }),
  output_tokens: count,
  output_tokens_details: all({ reasoning_tokens: count }),
  total_tokens: count,
});

const functionTool = all({
  type: kind("function"),
  name: text,
  description: nullable(text),
  parameters: nullable({ type: "object" }),
  strict: nullable({ type: "boolean" }),
});

const format = {
  anyOf: [
    all({ type: { enum: ["text", "json_object"] } }),
    all({
      type: kind("json_schema"),
      name: text,
      description: nullable(text),
      schema: { type: "object" },
      strict: { type: "boolean" },
    }),
  ],
};

const response = all({
  id: { type: "string", pattern: "^resp_[A-Za-z0-9]+$" },
  object: kind("response"),
  created_at: count,
  completed_at: nullable(count),
  status: { enum: ["completed", "failed", "in_progress", "incomplete"] },
  incomplete_details: nullable(all({ reason: text })),
  error: nullable(all({ code: text, message: text })),
  model: text,
  previous_response_id: nullable(text),
  instructions: nullable(text),
  output: list(item),
  tools: list({ if: { properties: { type: kind("function") } }, then: functionTool }),
  tool_choice: { anyOf: [{ enum: ["auto", "none", "required"] }, { type: "object" }] },
  truncation: { enum: ["auto", "disabled"] },
  parallel_tool_calls: { type: "boolean" },
  text: all({ format }),
  top_p: { type: "number" },
  temperature: { type: "number" },
  presence_penalty: { type: "number" },
  frequency_penalty: { type: "number" },
  top_logprobs: count,
  reasoning: nullable(all({ effort: nullable(text), summary: nullable(text) })),
  usage: nullable(usage),
  max_output_tokens: nullable(count),
  max_tool_calls: nullable(count),
  store: { type: "boolean" },
  background: { type: "boolean" },
  service_tier: text,
  metadata: { type: "object" },
  safety_identifier: nullable(text),
  prompt_cache_key: nullable(text),
});

/** Number of keys that the published schema requires. */
export const REQUIRED = response.required;

const at = { item_id: text, output_index: count };
const inPart = { ...at, content_index: count };
const inSummary = { ...at, summary_index: count };
const part = { anyOf: [outputText, refusal, reasoningText] };
const logprobs = list({ type: "object" });

const EVENTS: Record<string, Record<string, object>> = {
  "response.created": { response },
  "response.in_progress": { response },
  "response.completed": { response },
  "response.incomplete": { response },
  "response.failed": { response },
  "response.output_item.added": { output_index: count, item },
  "response.output_item.done": { output_index: count, item },
  "response.content_part.added": { ...inPart, part },
  "response.content_part.done": { ...inPart, part },
  "response.output_text.delta": { ...inPart, delta: text, logprobs },
  "response.output_text.done": { ...inPart, text, logprobs },
  "response.output_text.annotation.added": { ...inPart, annotation_index: count, annotation },
  "response.refusal.delta": { ...inPart, delta: text },
  "response.refusal.done": { ...inPart, refusal: text },
  "response.function_call_arguments.delta": { ...at, delta: text },
  "response.function_call_arguments.done": { ...at, arguments: text },
  "response.custom_tool_call_input.delta": { ...at, delta: text },
  "response.custom_tool_call_input.done": { ...at, input: text },
  "response.reasoning_summary_part.added": { ...inSummary, part: summaryText },
  "response.reasoning_summary_part.done": { ...inSummary, part: summaryText },
  "response.reasoning_summary_text.delta": { ...inSummary, delta: text },
  "response.reasoning_summary_text.done": { ...inSummary, text },
  "response.reasoning_text.delta": { ...inPart, delta: text },
  "response.reasoning_text.done": { ...inPart, text },
  "response.web_search_call.in_progress": at,
  "response.web_search_call.searching": at,
  "response.web_search_call.completed": at,
  "response.image_generation_call.in_progress": at,
  "response.image_generation_call.generating": at,
  "response.image_generation_call.partial_image": {
    ...at,
    partial_image_b64: text,
    partial_image_index: count,
  },
  "response.image_generation_call.completed": at,
  error: {
    code: nullable(text),
    message: text,
    param: nullable(text),
    error: all({ type: text, code: nullable(text), message: text, param: nullable(text) }),
  },
};

const ajv = new Ajv({ strict: false, allErrors: false });
const checks = new Map(
  Object.entries(EVENTS).map(([type, fields]) => [
    type,
    ajv.compile(all({ type: kind(type), sequence_number: count, ...fields })),
  ]),
);
const whole = ajv.compile(response);

export const shapes = {
  event(event: any): void {
    const check = checks.get(event.type);
    if (!check) throw new Error(`There is no event ${event.type}.`);
    if (!check(event))
      throw new Error(`${event.type}: ${ajv.errorsText(check.errors)}: ${JSON.stringify(event)}`);
  },
  response(value: any): void {
    if (!whole(value)) throw new Error(`${ajv.errorsText(whole.errors)}: ${JSON.stringify(value)}`);
  },
};
