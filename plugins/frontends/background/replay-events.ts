// The events of a response that was not streamed, as a stream would have had them. Each text is one
// event.
import type { Json, JsonObject } from "tollgate/plugin";

/** Adds an event. */
type Emit = (type: string, event: JsonObject) => void;

/** Returns the events of a response in their order, without their numbers. */
export function replayEvents(response: JsonObject): readonly JsonObject[] {
  const events: JsonObject[] = [];
  const emit: Emit = (type, event) => void events.push({ type, ...event });
  const open = { ...response, status: "in_progress", output: [], usage: null, completed_at: null };
  emit("response.created", { response: open });
  emit("response.in_progress", { response: open });
  for (const [index, item] of listOf(response["output"]).entries()) replayItem(emit, index, item);
  const status = response["status"];
  emit(`response.${status === "incomplete" || status === "failed" ? status : "completed"}`, {
    response,
  });
  return events;
}

/** Members of an item that its events add, as they are before. */
const EMPTY: JsonObject = { content: [], summary: [], arguments: "", input: "" };

function replayItem(emit: Emit, output_index: number, item: JsonObject): void {
  const empty = Object.fromEntries(
    Object.entries(EMPTY).filter(([name, value]) => typeof item[name] === typeof value),
  );
  const started = item["status"] === undefined ? empty : { ...empty, status: "in_progress" };
  const at = { item_id: item["id"] ?? null, output_index };
  emit("response.output_item.added", { output_index, item: { ...item, ...started } });
  for (const [summary_index, part] of listOf(item["summary"]).entries())
    replaySummary(emit, { ...at, summary_index }, part);
  for (const [content_index, part] of listOf(item["content"]).entries())
    replayPart(emit, { ...at, content_index }, part);
  if (item["type"] === "function_call")
    replayText(emit, "function_call_arguments", at, "arguments", item);
  if (item["type"] === "custom_tool_call")
    replayText(emit, "custom_tool_call_input", at, "input", item);
  emit("response.output_item.done", { output_index, item });
}

function replaySummary(emit: Emit, at: JsonObject, part: JsonObject): void {
  emit("response.reasoning_summary_part.added", { ...at, part: { ...part, text: "" } });
  replayText(emit, "reasoning_summary_text", at, "text", part);
  emit("response.reasoning_summary_part.done", { ...at, part });
}

/** Names of the events of a part, and of the member with its text. */
const PARTS: { readonly [type: string]: readonly [event: string, member: string] } = {
  output_text: ["output_text", "text"],
  refusal: ["refusal", "refusal"],
  reasoning_text: ["reasoning_text", "text"],
};

function replayPart(emit: Emit, at: JsonObject, part: JsonObject): void {
  const type = String(part["type"]);
  const [event, member] = (Object.hasOwn(PARTS, type) ? PARTS[type] : undefined) ?? [];
  const empty = member === undefined ? {} : { [member]: "" };
  const without = part["annotations"] === undefined ? empty : { ...empty, annotations: [] };
  emit("response.content_part.added", { ...at, part: { ...part, ...without } });
  if (event !== undefined) replayText(emit, event, at, member!, part);
  for (const [annotation_index, annotation] of listOf(part["annotations"]).entries())
    emit("response.output_text.annotation.added", { ...at, annotation_index, annotation });
  emit("response.content_part.done", { ...at, part });
}

function replayText(
  emit: Emit,
  event: string,
  at: JsonObject,
  member: string,
  of: JsonObject,
): void {
  const text = of[member];
  if (typeof text !== "string") return;
  const more = event === "output_text" ? { logprobs: of["logprobs"] ?? [] } : {};
  if (text !== "") emit(`response.${event}.delta`, { ...at, ...more, delta: text });
  emit(`response.${event}.done`, { ...at, ...more, [member]: text });
}

/** Returns the objects of a list. */
const listOf = (value: Json | undefined): readonly JsonObject[] =>
  Array.isArray(value)
    ? (value as readonly Json[]).filter(
        (one): one is JsonObject => typeof one === "object" && one !== null && !Array.isArray(one),
      )
    : [];
