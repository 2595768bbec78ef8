// Adapts an outgoing request from OpenAI's form to the form of this backend, in both modes. Every
// step checks first and edits only what must change, so that a request that needs no change keeps
// its bytes.
import { fail } from "../../../model/error.ts";
import type { CallContext, Json, Outgoing } from "../../../plugin/index.ts";
import { adaptMessages } from "./adapt-messages.ts";
import { adaptReasoning } from "./reasoning-effort.ts";
import { traitsOf, type ChatDialect, type ChatTraits } from "../dialect.ts";
import { asBoolean, asList, asNumber, asObject, omitUndefined } from "../../json-values.ts";
import { rejectBlockedReferences } from "../../references/index.ts";

export function prepare(out: Outgoing, of: CallContext, dialect: ChatDialect): void {
  const traits = traitsOf(dialect, of.model);
  rejectUnsupportedFields(out, traits, of);
  adaptReasoning(out, of, traits);
  renameOutputLimit(out, traits);
  requestUsage(out, of, traits);
  const messages = asList(out.get("messages"));
  rejectBlockedReferences(out, of.stateMode);
  const fit = adaptMessages(messages, traits);
  if (fit !== messages) out.set("messages", fit);
  adaptTools(out, of, traits);
  for (const [field, other] of Object.entries(traits.renameFields ?? {})) {
    const value = out.get(field);
    if (value === undefined) continue;
    out.remove(field);
    if (out.get(other) === undefined) out.set(other, value);
  }
  // In both modes, a field is sent to models that support it. If a model is known not to support
  // it, the field is dropped and the loss is reported by name.
  for (const field of [...(traits.dropFields ?? []), ...(of.info.rejectedFields ?? [])]) {
    const value = out.get(field);
    if (value === undefined) continue;
    out.remove(field);
    if (value !== null && value !== false) of.reportLoss(field, "dropped");
  }
}

/**
 * Rejects fields that change the result, because they must not be dropped. `n: 1` is removed,
 * because every backend returns one choice.
 */
function rejectUnsupportedFields(out: Outgoing, traits: ChatTraits, of: CallContext): void {
  for (const field of traits.rejectFields ?? []) {
    const value = out.get(field);
    if (value === undefined) continue;
    const idle =
      value === null || value === false || (field === "n" && value === 1) || isEmpty(value);
    if (idle) out.remove(field);
    else
      fail("unsupported", `${of.model} does not support ${field}.`, {
        code: "unsupported_parameter",
        param: field,
      });
  }
}

const isEmpty = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

/**
 * Renames the output limit. Both names are never sent together: some backends reject that with an
 * error, and others use the wrong one.
 */
function renameOutputLimit(out: Outgoing, { maxTokens: known }: ChatTraits): void {
  if (!known) return;
  const other = known === "max_tokens" ? "max_completion_tokens" : "max_tokens";
  const tokens = asNumber(out.get("max_completion_tokens")) ?? asNumber(out.get("max_tokens"));
  if (out.get(other) !== undefined) out.remove(other);
  if (tokens !== undefined) out.set(known, tokens);
}

/**
 * Requests usage in every stream, so that calls are counted even if the client does not receive the
 * counts.
 */
function requestUsage(out: Outgoing, of: CallContext, traits: ChatTraits): void {
  const options = out.get("stream_options");
  if (!of.stream || traits.streamUsage === "none") {
    if (options !== undefined) out.remove("stream_options");
  } else if (asBoolean(asObject(options)?.["include_usage"]) !== true) {
    out.set("stream_options", { ...asObject(options), include_usage: true });
  }
}

function adaptTools(out: Outgoing, of: CallContext, traits: ChatTraits): void {
  const all = asList(out.get("tools"));
  const extra = omitUndefined({
    ...traits.setFields?.always,
    ...(all.length > 0 && traits.setFields?.tools),
    ...(all.length > 0 && of.stream && traits.setFields?.streamedTools),
  });
  for (const [field, value] of Object.entries(extra))
    if (out.get(field) === undefined) out.set(field, value as Json);
  if (all.length === 0) return;
  // Passthrough mode cannot extract a freeform input from a function's arguments.
  if (traits.customTools === false && all.some((tool) => asObject(tool)?.["type"] === "custom"))
    fail("unsupported", `${of.model} does not support freeform tools. Declare functions instead.`, {
      code: "unsupported_tool",
      param: "tools",
    });
  if (traits.strictTools === false) {
    const loose = all.map((tool) => withoutStrict(tool, of));
    if (loose.some((tool, i) => tool !== all[i])) out.set("tools", loose);
  }
  adaptToolChoice(out, of, traits);
}

function withoutStrict(raw: Json, of: CallContext): Json {
  const tool = asObject(raw);
  const fn = asObject(tool?.["function"]);
  if (!tool || fn?.["strict"] === undefined) return raw;
  if (fn["strict"] === true) of.reportLoss("tools.strict", "dropped");
  const { strict: _, ...rest } = fn;
  return { ...tool, function: rest };
}

function adaptToolChoice(out: Outgoing, of: CallContext, { toolChoice }: ChatTraits): void {
  const clientToolChoice = out.get("tool_choice");
  if (clientToolChoice === undefined || toolChoice === undefined || clientToolChoice === "auto")
    return;
  if (toolChoice === "any") {
    if (clientToolChoice === "required") out.set("tool_choice", "any");
    return;
  }
  out.remove("tool_choice");
  if (clientToolChoice === null) return;
  if (clientToolChoice !== "none")
    fail(
      "unsupported",
      `${of.model} does not support a forced tool choice. Use tool_choice: auto.`,
      {
        code: "unsupported_parameter",
        param: "tool_choice",
      },
    );
  out.remove("tools");
  out.remove("parallel_tool_calls");
  of.reportLoss("tools", "approximated", "tools_left_out");
}

/** Limits the output tokens of an outgoing request, whatever limit the client set. */
export function capOutput(out: Outgoing, tokens: number, dialect: ChatDialect): void {
  let bounded = false;
  for (const field of ["max_completion_tokens", "max_tokens"]) {
    const asked = asNumber(out.get(field));
    if (asked === undefined) continue;
    bounded = true;
    if (asked > tokens) out.set(field, tokens);
  }
  if (!bounded) out.set(dialect.maxTokens ?? "max_completion_tokens", tokens);
}
