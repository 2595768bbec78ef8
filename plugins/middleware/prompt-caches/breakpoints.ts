// Adds cache breakpoints to a request in the format of Anthropic's Messages API: on the last tool,
// the last system block, and the last message.
import type { Json, JsonObject, Outgoing } from "tollgate/plugin";

/** Maximum number of breakpoints in one request. */
const MAX_BREAKPOINTS = 4;
const BREAKPOINT = { type: "ephemeral" } as const;
/** Blocks that may have a breakpoint. Reasoning may not. */
const MARKABLE = new Set(["text", "image", "document", "tool_use", "tool_result"]);

/** Adds breakpoints where the client set none and the maximum allows more. */
export function addBreakpoints(out: Outgoing): void {
  const marks: Json[] = [];
  collectBreakpoints({ cache_control: (out.get("cache_control") ?? null) as Json }, marks);
  const fields = ["tools", "system", "messages"].map((name) => {
    const value = out.get(name) as Json | undefined;
    const before = marks.length;
    collectBreakpoints(value, marks);
    return { name, value, hasBreakpoint: marks.length > before };
  });
  // Claude rejects a breakpoint of 1 hour after one of 5 minutes, so none is added to those of 1 hour.
  if (marks.some((one) => isObject(one) && one["ttl"] === "1h")) return;
  let free = MAX_BREAKPOINTS - marks.length;
  // The last message is worth most: its breakpoint covers everything before it.
  for (const { name, value, hasBreakpoint } of fields.toReversed()) {
    if (free <= 0) return;
    if (hasBreakpoint) continue;
    const marked = name === "messages" ? markLastMessage(value) : mark(value, name === "tools");
    if (marked === undefined) continue;
    out.set(name, marked);
    free--;
  }
}

/** Adds the breakpoints in a value to a list, at any depth. Bodies have a limited depth. */
function collectBreakpoints(value: Json | undefined, marks: Json[]): void {
  if (typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    for (const each of value) collectBreakpoints(each, marks);
    return;
  }
  for (const [name, member] of Object.entries(value as JsonObject))
    if (name === "cache_control") {
      if (member) marks.push(member);
    }
    // Arguments of a tool and schemas are data of the client.
    else if (name !== "input" && name !== "input_schema") collectBreakpoints(member, marks);
}

/**
 * Returns the list with a breakpoint on its last item. Undefined if that item cannot have one. A
 * deferred tool cannot have one, so the last tool before it has it.
 */
function mark(value: Json | undefined, isTools: boolean): Json | undefined {
  if (typeof value === "string" && value !== "")
    return [{ type: "text", text: value, cache_control: BREAKPOINT }];
  if (!Array.isArray(value)) return undefined;
  const at = isTools ? value.findLastIndex((tool) => !isDeferred(tool)) : value.length - 1;
  const last = value[at];
  if (!isObject(last) || !(isTools || isMarkable(last))) return undefined;
  return value.with(at, { ...last, cache_control: BREAKPOINT });
}

function markLastMessage(value: Json | undefined): Json | undefined {
  if (!Array.isArray(value)) return undefined;
  const last = value.at(-1);
  if (!isObject(last)) return undefined;
  const content = mark(last["content"] as Json | undefined, false);
  return content === undefined ? undefined : [...value.slice(0, -1), { ...last, content }];
}

/** An empty text must not have a breakpoint. */
const isMarkable = ({ type, text }: JsonObject): boolean =>
  typeof type === "string" && MARKABLE.has(type) && text !== "";

const isDeferred = (tool: Json): boolean => isObject(tool) && tool["defer_loading"] === true;

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);
