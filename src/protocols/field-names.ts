// Maps canonical field names to the names that each protocol's clients use, so that errors and
// warnings name the field that the client wrote. If a field has several spellings, the spelling
// present in the body is used, else the first.
import type { Body } from "../model/values.ts";

interface FieldNames {
  readonly [field: string]: readonly string[];
}

/** Maximum length of a gateway field name. Clients can invent longer names. */
const MAX_FIELD = 256;

export const CHAT_FIELD_NAMES: FieldNames = {
  reasoning: ["reasoning_effort", "thinking"],
  "reasoning.effort": ["reasoning_effort", "thinking"],
  "reasoning.budget": ["thinking.budget_tokens"],
  thinking: ["thinking", "reasoning_effort"],
  max_tokens: ["max_completion_tokens", "max_tokens"],
  max_output_tokens: ["max_completion_tokens", "max_tokens"],
  input: ["messages"],
  system: ["messages"],
  instructions: ["messages"],
  user: ["user", "safety_identifier"],
  "tools.web_search": ["web_search_options", "tools"],
};

export const MESSAGES_FIELD_NAMES: FieldNames = {
  stop: ["stop_sequences"],
  effort_without_thinking: ["output_config.effort"],
  between_tools: ["thinking.type"],
  thinking_display: ["thinking.display"],
  reasoning: ["thinking", "output_config.effort"],
  reasoning_effort: ["output_config.effort", "thinking"],
  "reasoning.effort": ["output_config.effort", "thinking"],
  "reasoning.budget": ["thinking.budget_tokens"],
  response_format: ["output_config.format", "output_format"],
  user: ["metadata.user_id"],
  input: ["messages"],
  instructions: ["system"],
  parallel_tool_calls: ["tool_choice.disable_parallel_tool_use"],
  max_output_tokens: ["max_tokens"],
  max_completion_tokens: ["max_tokens"],
};

export const RESPONSES_FIELD_NAMES: FieldNames = {
  max_tokens: ["max_output_tokens"],
  max_completion_tokens: ["max_output_tokens"],
  messages: ["input"],
  system: ["instructions", "input"],
  thinking: ["reasoning"],
  reasoning_effort: ["reasoning.effort"],
  "thinking.budget_tokens": ["reasoning.effort"],
  "reasoning.budget": ["reasoning.effort"],
  response_format: ["text.format"],
  verbosity: ["text.verbosity"],
  user: ["user", "safety_identifier"],
  logprobs: ["top_logprobs", "include"],
};

export const GEMINI_FIELD_NAMES: FieldNames = {
  messages: ["contents"],
  input: ["contents"],
  system: ["systemInstruction", "system_instruction"],
  instructions: ["systemInstruction", "system_instruction"],
  max_tokens: ["generationConfig.maxOutputTokens"],
  max_completion_tokens: ["generationConfig.maxOutputTokens"],
  max_output_tokens: ["generationConfig.maxOutputTokens"],
  n: ["generationConfig.candidateCount"],
  stop: ["generationConfig.stopSequences"],
  temperature: ["generationConfig.temperature"],
  top_p: ["generationConfig.topP"],
  top_k: ["generationConfig.topK"],
  presence_penalty: ["generationConfig.presencePenalty"],
  frequency_penalty: ["generationConfig.frequencyPenalty"],
  seed: ["generationConfig.seed"],
  logprobs: ["generationConfig.responseLogprobs"],
  modalities: ["generationConfig.responseModalities"],
  response_format: ["generationConfig.responseMimeType"],
  reasoning: ["generationConfig.thinkingConfig"],
  reasoning_effort: ["generationConfig.thinkingConfig.thinkingLevel"],
  thinking: ["generationConfig.thinkingConfig"],
  tool_choice: ["toolConfig", "tool_config"],
  parallel_tool_calls: ["toolConfig", "tool_config"],
  service_tier: ["serviceTier", "service_tier"],
};

export const GEMINI_EMBEDDING_FIELD_NAMES: FieldNames = {
  input: ["requests", "content"],
  input_type: ["taskType", "task_type"],
  dimensions: ["outputDimensionality", "output_dimensionality"],
};

/**
 * Returns the client's name for a canonical field path. The rest of a path is kept after a `.`,
 * where it has the same meaning. List positions are dropped, because the list was rebuilt.
 */
export function clientFieldName(table: FieldNames, field: string, body: Body): string {
  if (field.length > MAX_FIELD) return field;
  for (let end = field.length; end > 0; end = field.slice(0, end).search(/[.[][^.[]*$/)) {
    const head = field.slice(0, end);
    if (!Object.hasOwn(table, head)) continue;
    const names = table[head]!;
    const name = names.find((one) => body[one.split(".", 1)[0]!] !== undefined) ?? names[0]!;
    return field[end] === "." ? name + field.slice(end) : name;
  }
  return field;
}
