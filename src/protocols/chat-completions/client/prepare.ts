// The last words before a request leaves, on both lanes: what OpenAI would be told becomes what this backend understands.
// Every step looks first and edits only what must change, so that a request which needs nothing keeps its bytes.
import { fail } from "../../../model/error.ts";
import type { CallContext, Json, Outgoing } from "../../../plugin/index.ts";
import { refuseKept } from "../../look/index.ts";
import { traitsOf, type ChatDialect, type ChatTraits } from "../dialect.ts";
import { flag, list, number, object, present } from "../../json.ts";
import { messagesFor } from "./history.ts";
import { think } from "./thinking.ts";

export function prepare(out: Outgoing, of: CallContext, dialect: ChatDialect): void {
  const traits = traitsOf(dialect, of.model);
  refuse(out, traits, of);
  think(out, of, traits);
  limit(out, traits);
  usage(out, of, traits);
  const messages = list(out.get("messages"));
  refuseKept(out, of.state);
  const fit = messagesFor(messages, traits);
  if (fit !== messages) out.set("messages", fit);
  tools(out, of, traits);
  for (const [field, other] of Object.entries(traits.rename ?? {})) {
    const value = out.get(field);
    if (value === undefined) continue;
    out.drop(field);
    if (out.get(other) === undefined) out.set(other, value);
  }
  // On both lanes: a field reaches those models that know it, and is missed by name where one is known not to.
  for (const field of [...(traits.drop ?? []), ...(of.info.refuses ?? [])]) {
    const value = out.get(field);
    if (value === undefined) continue;
    out.drop(field);
    if (value !== null && value !== false) of.lose(field, "dropped");
  }
}

/** Fields that change what the model must do are not dropped; one choice, though, is what every backend gives. */
function refuse(out: Outgoing, traits: ChatTraits, of: CallContext): void {
  for (const field of traits.refuse ?? []) {
    const value = out.get(field);
    if (value === undefined) continue;
    const idle =
      value === null || value === false || (field === "n" && value === 1) || isEmpty(value);
    if (idle) out.drop(field);
    else
      fail("unsupported", `${of.model} does not support ${field}.`, {
        code: "unsupported_parameter",
        param: field,
      });
  }
}

const isEmpty = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

/** Never both names: some backends answer that with an error, and others take the wrong one. */
function limit(out: Outgoing, { maxTokens: known }: ChatTraits): void {
  if (!known) return;
  const other = known === "max_tokens" ? "max_completion_tokens" : "max_tokens";
  const tokens = number(out.get("max_completion_tokens")) ?? number(out.get("max_tokens"));
  if (out.get(other) !== undefined) out.drop(other);
  if (tokens !== undefined) out.set(known, tokens);
}

/** Asked for always: what a client is not shown is counted nevertheless. */
function usage(out: Outgoing, of: CallContext, traits: ChatTraits): void {
  const options = out.get("stream_options");
  if (!of.stream || traits.usage === "none") {
    if (options !== undefined) out.drop("stream_options");
  } else if (flag(object(options)?.["include_usage"]) !== true) {
    out.set("stream_options", { ...object(options), include_usage: true });
  }
}

function tools(out: Outgoing, of: CallContext, traits: ChatTraits): void {
  const all = list(out.get("tools"));
  const extra = present({
    ...traits.set?.always,
    ...(all.length > 0 && traits.set?.tools),
    ...(all.length > 0 && of.stream && traits.set?.streamedTools),
  });
  for (const [field, value] of Object.entries(extra))
    if (out.get(field) === undefined) out.set(field, value as Json);
  if (all.length === 0) return;
  // Taking a freeform input out of a function's arguments again is beyond bytes in passing.
  if (traits.customTools === false && all.some((tool) => object(tool)?.["type"] === "custom"))
    fail("unsupported", `${of.model} knows no freeform tools. Declare functions instead.`, {
      code: "unsupported_tool",
      param: "tools",
    });
  if (traits.strictTools === false) {
    const loose = all.map((tool) => unstrict(tool, of));
    if (loose.some((tool, i) => tool !== all[i])) out.set("tools", loose);
  }
  choice(out, of, traits);
}

function unstrict(raw: Json, of: CallContext): Json {
  const tool = object(raw);
  const fn = object(tool?.["function"]);
  if (!tool || fn?.["strict"] === undefined) return raw;
  if (fn["strict"] === true) of.lose("tools.strict", "dropped");
  const { strict: _, ...rest } = fn;
  return { ...tool, function: rest };
}

function choice(out: Outgoing, of: CallContext, { toolChoice }: ChatTraits): void {
  const said = out.get("tool_choice");
  if (said === undefined || toolChoice === undefined || said === "auto") return;
  if (toolChoice === "any") {
    if (said === "required") out.set("tool_choice", "any");
    return;
  }
  out.drop("tool_choice");
  if (said === null) return;
  if (said !== "none")
    fail("unsupported", `${of.model} chooses its tools itself. Use tool_choice: auto.`, {
      code: "unsupported_parameter",
      param: "tool_choice",
    });
  out.drop("tools");
  out.drop("parallel_tool_calls");
  of.lose("tools", "approximated", "tools_left_out");
}
