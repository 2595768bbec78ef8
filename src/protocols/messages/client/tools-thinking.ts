import { declareTool, rejectTool } from "../../tool-declarations.ts";
import type { ChatRequest, Tool, Reasoning } from "../../../model/request.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { cacheTo, nameTo, type MessagesEncoding } from "./blocks.ts";
import { isObject, omitUndefinedOrNothing as present, asText } from "../../json-values.ts";
import { ID } from "../constants.ts";
import { fail } from "../../../model/error.ts";
import {
  EFFORT_BUDGETS,
  effortForBudget,
  nearestEffort,
  reasoningSupportOf,
} from "../../reasoning-support.ts";

export function toolsTo(r: ChatRequest, e: MessagesEncoding): Json[] | undefined {
  if (r.tools.length === 0) return undefined;
  const choice = typeof r.toolChoice === "object" ? r.toolChoice : undefined;
  // A single required tool can be named. A choice among several can only be expressed by omitting
  // the other tools.
  const some =
    choice && !(choice.names.length === 1 && choice.must) ? new Set(choice.names) : undefined;
  if (some) e.of.reportLoss("tool_choice", "approximated", "tools_filtered");
  const out = new Map<string, JsonObject>();
  for (const tool of r.tools) {
    if (some && !some.has(tool.name)) continue;
    const declared = toolTo(tool, e);
    declareTool(out, String(declared["name"] ?? declared["type"]), declared);
  }
  return [...out.values()];
}

const NOTHING = { type: "object", properties: {} };

function toolTo(tool: Tool, e: MessagesEncoding): JsonObject {
  const name = nameTo(tool.name);
  switch (tool.type) {
    case "hosted":
      return toHostedTool(tool, e);
    case "custom":
      e.of.reportLoss("tools.custom", "approximated", "custom_tool_wrapped");
      return {
        name,
        description: describeCustomTool(tool),
        input_schema: {
          type: "object",
          properties: { input: { type: "string", description: "The input, as free text." } },
          required: ["input"],
          additionalProperties: false,
        },
        ...cacheTo(tool.cache, e),
      };
    case "function": {
      const own = tool.origin === ID && isObject(tool.raw) ? tool.raw : {};
      const schema = tool.schema ?? NOTHING;
      if (tool.strict && !e.settings.strictTools) e.of.reportLoss("tools.strict", "dropped");
      return {
        ...own,
        name,
        ...(tool.description !== undefined && { description: tool.description }),
        input_schema: schema["type"] === undefined ? { type: "object", ...schema } : schema,
        ...(tool.strict && e.settings.strictTools && { strict: true }),
        ...cacheTo(tool.cache, e),
      };
    }
  }
}

/**
 * Returns the description of a custom tool. A grammar cannot be enforced here, so the description
 * requests it.
 */
function describeCustomTool(tool: Tool): string {
  const format = isObject(tool.raw) ? tool.raw : {};
  const { definition } = isObject(format["grammar"]) ? format["grammar"] : format;
  const description = tool.description ?? "";
  return typeof definition === "string"
    ? `${description}\n\nThe input must follow this grammar:\n${definition}`.trim()
    : description;
}

/** Encodes a hosted tool. Web search is the only one that every vendor has. */
function toHostedTool(tool: Tool, e: MessagesEncoding): JsonObject {
  if (tool.origin === ID && isObject(tool.raw)) return tool.raw;
  if (tool.name !== "web_search") return rejectTool(tool);
  e.of.reportLoss("tools.web_search", "approximated");
  const raw = isObject(tool.raw) ? tool.raw : {};
  const filters = isObject(raw["filters"]) ? raw["filters"] : {};
  const where = isObject(raw["user_location"]) ? raw["user_location"] : undefined;
  const place = where && (isObject(where["approximate"]) ? where["approximate"] : where);
  const { type: _type, ...at } = place ?? {};
  return {
    type: "web_search_20250305",
    name: "web_search",
    ...(Array.isArray(filters["allowed_domains"]) && {
      allowed_domains: filters["allowed_domains"],
    }),
    ...(present(at) && { user_location: { type: "approximate", ...at } }),
  };
}

export function choiceTo(r: ChatRequest): JsonObject | undefined {
  const { toolChoice: choice, parallelToolCalls } = r;
  if (choice === undefined && parallelToolCalls !== false) return undefined;
  // Without tools there is no choice, and this protocol rejects `tool_choice`.
  if (r.tools.length === 0 && choice !== "none") return undefined;
  const off =
    parallelToolCalls === undefined || choice === "none"
      ? {}
      : { disable_parallel_tool_use: !parallelToolCalls };
  if (choice === "none") return { type: "none" };
  if (choice === "required") return { type: "any", ...off };
  if (choice === undefined || choice === "auto") return { type: "auto", ...off };
  if (choice.names.length === 1 && choice.must)
    return { type: "tool", name: nameTo(choice.names[0]!), ...off };
  return { type: choice.must ? "any" : "auto", ...off };
}

// Encodes the thinking settings in the form that the model supports.

/** Smallest thinking budget that a model accepts, in tokens. */
const MIN_BUDGET = 1024;

interface Thinking {
  thinking?: JsonObject | undefined;
  effort?: string | undefined;
  /** Output limit that has room for thinking and a response after it. */
  maxTokens: number;
}

export function thinkingTo(r: ChatRequest, maxTokens: number, e: MessagesEncoding): Thinking {
  const own = isObject(r.ext[ID]) ? r.ext[ID] : {};
  const { mode, show, budget } = r.reasoning;
  const how = reasoningSupportOf(e.of.info).isSupported === false ? "none" : e.settings.thinking;
  const off = mode === "off" || (mode === "effort" && r.reasoning.effort === "none");
  if (mode === "auto" && show === undefined) return { maxTokens };
  if (how === "none") {
    if (!off) e.of.reportLoss("reasoning", "dropped", "no_thinking");
    return { maxTokens };
  }
  if (off) return { thinking: switchedOff(e), effort: effortTo(r.reasoning, e), maxTokens };
  if (how === "budget") return budgetThinking(r, maxTokens, own, e);
  if (mode === "budget" && how === "adaptive")
    return { ...budgetThinking(r, maxTokens, own, e), effort: effortTo(r.reasoning, e) };
  if (mode === "budget") e.of.reportLoss("reasoning.budget", "approximated", "budget_as_effort");
  const effort =
    mode === "budget"
      ? nearestEffort(effortForBudget(budget ?? MIN_BUDGET), e.settings.efforts)
      : effortTo(r.reasoning, e);
  if (own["effort_without_thinking"] === true) return { effort, maxTokens };
  const type = own["between_tools"] === true ? "between_tools" : "adaptive";
  return { thinking: { type, ...displayTo(r.reasoning, own) }, effort, maxTokens };
}

function switchedOff(e: MessagesEncoding): JsonObject {
  // The client turned thinking off, so it must not be billed for thinking.
  if (e.settings.thinking === "always")
    fail("unsupported", `Reasoning cannot be disabled for ${e.of.model}.`, {
      param: "reasoning",
      code: "thinking_required",
    });
  return { type: "disabled" };
}

function displayTo({ show }: Reasoning, own: JsonObject): { [key: string]: Json } {
  const display =
    show === "none"
      ? "omitted"
      : show === "summary"
        ? "summarized"
        : asText(own["thinking_display"]);
  return display === undefined ? {} : { display };
}

const effortTo = ({ effort }: Reasoning, e: MessagesEncoding): string | undefined =>
  effort === undefined || effort === "none" ? undefined : known(effort, e);

function known(effort: string, e: MessagesEncoding): string {
  const effortName = nearestEffort(effort, e.settings.efforts);
  if (effortName !== effort) e.of.reportLoss("reasoning.effort", "approximated");
  return effortName;
}

/**
 * Returns thinking of type `enabled` with a token budget. The budget is below `max_tokens`, so that
 * a response fits after it.
 */
function budgetThinking(
  r: ChatRequest,
  maxTokens: number,
  own: JsonObject,
  e: MessagesEncoding,
): Thinking {
  const { mode, effort, budget } = r.reasoning;
  if (!e.settings.acceptsUnsignedThinking && lacksSignedThinking(r, e.settings.signer)) {
    e.of.reportLoss("reasoning", "approximated", "thinking_disabled_missing_signature");
    return { thinking: { type: "disabled" }, maxTokens };
  }
  let max = maxTokens;
  if (max <= MIN_BUDGET) {
    max = 2 * MIN_BUDGET;
    e.of.reportLoss("max_tokens", "approximated", "max_tokens_raised");
  }
  const enabled = (tokens: number): Thinking => ({
    thinking: { type: "enabled", budget_tokens: tokens, ...displayTo(r.reasoning, own) },
    maxTokens: max,
  });
  if (mode === "budget") {
    const requested = budget ?? MIN_BUDGET;
    const fits = Math.max(MIN_BUDGET, Math.min(requested, max - 1));
    if (fits !== requested) e.of.reportLoss("reasoning.budget", "approximated");
    return enabled(fits);
  }
  e.of.reportLoss("reasoning", "approximated", "effort_as_budget");
  const wanted =
    effort === "max"
      ? (e.of.info.limits?.output ?? max)
      : (EFFORT_BUDGETS[effort ?? "medium"] ?? EFFORT_BUDGETS["medium"]!);
  return enabled(Math.max(MIN_BUDGET, Math.min(wanted, max - MIN_BUDGET)));
}

/**
 * Returns whether signed thinking is missing during a round of tool calls. A model with a thinking
 * budget then requires its own signed thinking before the calls it made. If the client lost it, the
 * request can only continue without thinking.
 */
function lacksSignedThinking(r: ChatRequest, signer: string): boolean {
  const last = r.turns.findLastIndex((turn) => turn.role === "assistant");
  const blocks = r.turns[last]?.blocks ?? [];
  if (!r.turns.slice(last + 1).some((after) => after.role === "tool")) return false;
  if (!blocks.some((block) => block.type === "call")) return false;
  return !blocks.some((block) => block.type === "reasoning" && block.proof?.origin === signer);
}
