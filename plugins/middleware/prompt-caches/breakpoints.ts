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
  const fields = ["tools", "system", "messages"].map((name): [string, Json | undefined] => [
    name,
    out.get(name) as Json | undefined,
  ]);
  let free = MAX_BREAKPOINTS - fields.reduce((sum, [, value]) => sum + countBreakpoints(value), 0);
  // The last message is worth most: its breakpoint covers everything before it.
  for (const [name, value] of fields.toReversed()) {
    if (free <= 0) return;
    if (countBreakpoints(value) > 0) continue;
    const marked = name === "messages" ? markLastMessage(value) : markLast(value, name === "tools");
    if (marked === undefined) continue;
    out.set(name, marked);
    free--;
  }
}

/** Counts the breakpoints in a value, at any depth. Bodies have a limited depth. */
function countBreakpoints(value: Json | undefined): number {
  if (typeof value !== "object" || value === null) return 0;
  if (Array.isArray(value))
    return value.reduce<number>((sum, each) => sum + countBreakpoints(each), 0);
  let count = 0;
  for (const name in value as JsonObject)
    if (name === "cache_control") count += (value as JsonObject)[name] ? 1 : 0;
    // Arguments of a tool and schemas are data of the client.
    else if (name !== "input" && name !== "input_schema")
      count += countBreakpoints((value as JsonObject)[name]);
  return count;
}

/** Returns the list with a breakpoint on its last item. Undefined if that item cannot have one. */
function markLast(value: Json | undefined, isTools: boolean): Json | undefined {
  if (typeof value === "string" && value !== "")
    return [{ type: "text", text: value, cache_control: BREAKPOINT }];
  if (!Array.isArray(value)) return undefined;
  const last = value.at(-1);
  if (!isObject(last) || !(isTools || isMarkable(last))) return undefined;
  return [...value.slice(0, -1), { ...last, cache_control: BREAKPOINT }];
}

function markLastMessage(value: Json | undefined): Json | undefined {
  if (!Array.isArray(value)) return undefined;
  const last = value.at(-1);
  if (!isObject(last)) return undefined;
  const content = markLast(last["content"] as Json | undefined, false);
  return content === undefined ? undefined : [...value.slice(0, -1), { ...last, content }];
}

/** An empty text must not have a breakpoint. */
const isMarkable = ({ type, text }: JsonObject): boolean =>
  typeof type === "string" && MARKABLE.has(type) && text !== "";

const isObject = (value: Json | undefined): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);
