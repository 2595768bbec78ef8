// Beta features of Anthropic's API have two halves: a name in `anthropic-beta`, and fields of the
// body. A backend that receives only one half rejects the request. Both halves are therefore sent,
// or neither.
import type { Json, JsonObject } from "../../../model/values.ts";
import type { Outgoing } from "../../../plugin/outgoing.ts";
import type { LossReporter } from "../../../plugin/protocol.ts";
import { asList, asText, isObject } from "../../json-values.ts";

/** Name of betas that this file does not list. */
const UNLISTED = "*";

/**
 * Parts of the body, and the betas that allow each of them, without their dates. A part stays in
 * the body as long as one of its betas is sent. Parts have these forms:
 *
 * - `output_config.x`: a member of that field
 * - `tools[].x`: a member of each tool
 * - `tools[x*]`: each tool whose type has this prefix
 * - `cache_control.x`: a member of each cache mark
 * - `content[x]`: each content block of this type
 */
const BODY_PARTS: readonly (readonly [part: string, ...betas: string[]])[] = [
  ["context_management", "context-management", "compact"],
  ["compaction", "compact"],
  ["output_format", "structured-outputs"],
  ["output_config.format", "structured-outputs"],
  ["output_config.effort", "effort"],
  ["output_config.task_budget", "task-budgets"],
  ["tools[].strict", "structured-outputs"],
  ["tools[].defer_loading", "advanced-tool-use", "tool-search-tool"],
  ["tools[].allowed_callers", "advanced-tool-use"],
  ["tools[].input_examples", "advanced-tool-use", "tool-examples"],
  ["tools[].eager_input_streaming", "fine-grained-tool-streaming"],
  ["tools[tool_search_tool_*]", "advanced-tool-use", "tool-search-tool"],
  ["tools[advisor_*]", "advisor-tool"],
  ["tools[mcp_toolset*]", "mcp-client"],
  ["content[tool_reference]", "advanced-tool-use", "tool-search-tool"],
  ["cache_control.ttl", "extended-cache-ttl"],
  ["cache_control.scope", "prompt-caching-scope"],
  ["mcp_servers", "mcp-client"],
  ["speed", "fast-mode"],
  ["fallbacks", "server-side-fallback"],
  ["fallback_credit_token", "fallback-credit"],
  ["user_profile_id", "user-profiles"],
  ["diagnostics", "cache-diagnosis"],
  // Claude Code sends it with a beta whose name no public page lists.
  ["safeguards", UNLISTED],
];

/** Betas without a body part, and betas of hosted tools, which the data policy decides. */
const HEADER_ONLY_BETAS: ReadonlySet<string> = new Set([
  "claude-code",
  "code-execution",
  "computer-use",
  "context-1m",
  "dev-full-thinking",
  "files-api",
  "interleaved-thinking",
  "message-batches",
  "model-context-window-exceeded",
  "oauth",
  "output-128k",
  "output-300k",
  "pdfs",
  "prompt-caching",
  "redact-thinking",
  "skills",
  "token-counting",
  "token-efficient-tools",
  "web-fetch",
  "web-search",
]);

const LISTED_BETAS: ReadonlySet<string> = new Set(BODY_PARTS.flatMap(([, ...betas]) => betas));

/** Returns the name of a beta without its date, or `UNLISTED`. */
function betaName(beta: string): string {
  const name = beta.replace(/-\d{4}-?\d{2}-?\d{2}$/, "");
  return LISTED_BETAS.has(name) || HEADER_ONLY_BETAS.has(name) ? name : UNLISTED;
}

/** Returns the betas that a request asks for, in their order. */
export const requestedBetas = (out: Pick<Outgoing, "headers">): readonly string[] =>
  (out.headers["anthropic-beta"] ?? "")
    .split(",")
    .map((beta) => beta.trim())
    .filter((beta) => beta !== "");

/**
 * Sends only the betas that `isAllowed` accepts, and removes the body parts of the other betas. A
 * body part that came without its beta stays, because the client does not regard it as beta.
 * Returns the betas that are sent.
 * @param sent Parts that the backend accepts without a beta.
 */
export function filterBetas(
  out: Outgoing,
  of: LossReporter,
  isAllowed: (beta: string) => boolean,
  sent: readonly string[] = [],
): readonly string[] {
  const requested = requestedBetas(out);
  const kept = requested.filter(isAllowed);
  if (kept.length === requested.length) return kept;
  out.setHeader("anthropic-beta", kept.length > 0 ? kept.join(",") : undefined);
  const keptNames = new Set(kept.map(betaName));
  const gone = new Set(requested.filter((beta) => !isAllowed(beta)).map(betaName));
  const parts = BODY_PARTS.filter(
    ([part, ...betas]) =>
      !sent.includes(part) &&
      betas.some((beta) => gone.has(beta)) &&
      !betas.some((beta) => keptNames.has(beta)),
  ).map(([part]) => part);
  if (parts.length > 0) removeParts(out, of, parts);
  return kept;
}

/** Returns the names of betas all of whose body parts are among these top-level fields. */
export function betasWithin(fields: readonly string[]): ReadonlySet<string> {
  const names = BODY_PARTS.filter(([part]) => fields.includes(part)).flatMap(
    ([, ...betas]) => betas,
  );
  return new Set(
    names.filter((name) =>
      BODY_PARTS.every(([part, ...betas]) => !betas.includes(name) || fields.includes(part)),
    ),
  );
}

/** Whether a beta has one of these names. */
export const isNamed = (beta: string, names: ReadonlySet<string>): boolean =>
  names.has(betaName(beta));

function removeParts(out: Outgoing, of: LossReporter, parts: readonly string[]): void {
  const lose = (field: string) => of.reportLoss(field, "dropped", "beta_not_allowed");
  const members = (prefix: string) =>
    parts.filter((part) => part.startsWith(prefix)).map((part) => part.slice(prefix.length));
  for (const part of parts)
    if (/^\w+$/.test(part) && out.get(part) !== undefined) {
      out.remove(part);
      lose(part);
    }
  removeOutputMembers(out, members("output_config."), lose);
  const types = members("tools[").flatMap((part) => /^(\w+)\*\]$/.exec(part)?.[1] ?? []);
  removeToolParts(out, { fields: members("tools[]."), types }, lose);
  const marks = members("cache_control.");
  const blocks = members("content[").map((part) => part.slice(0, -1));
  if (marks.length + blocks.length > 0) removeFromContent(out, marks, blocks, lose);
}

type Lose = (field: string) => void;

function removeOutputMembers(out: Outgoing, members: readonly string[], lose: Lose): void {
  const config = out.get("output_config");
  if (!isObject(config)) return;
  const gone = members.filter((member) => config[member] !== undefined);
  if (gone.length === 0) return;
  const left = without(config, gone);
  if (Object.keys(left).length > 0) out.set("output_config", left);
  else out.remove("output_config");
  for (const member of gone) lose(`output_config.${member}`);
}

function removeToolParts(
  out: Outgoing,
  { fields, types }: { fields: readonly string[]; types: readonly string[] },
  lose: Lose,
): void {
  const tools = out.get("tools");
  if (!Array.isArray(tools)) return;
  const lost = new Set<string>();
  const dropped: JsonObject[] = [];
  const left = (tools as readonly Json[]).flatMap((tool): Json[] => {
    if (!isObject(tool)) return [tool];
    const type = asText(tool["type"]) ?? "";
    if (types.some((prefix) => type.startsWith(prefix))) {
      lost.add(`tools.${type}`);
      dropped.push(tool);
      return [];
    }
    const gone = fields.filter((field) => tool[field] !== undefined);
    for (const field of gone) lost.add(`tools.${field}`);
    return [gone.length > 0 ? without(tool, gone) : tool];
  });
  if (lost.size === 0) return;
  if (left.length > 0) out.set("tools", left);
  else out.remove("tools");
  if (dropped.length > 0) adaptToolChoice(out, { left, dropped }, lost);
  for (const field of lost) lose(field);
}

/**
 * Lets the model choose if `tool_choice` names a tool that was removed. Without any tool, the field
 * is removed, because backends reject it. A toolset without a name has tools of any name.
 */
function adaptToolChoice(
  out: Outgoing,
  { left, dropped }: { readonly left: readonly Json[]; readonly dropped: readonly JsonObject[] },
  lost: Set<string>,
): void {
  const choice = out.get("tool_choice");
  if (!isObject(choice)) return;
  const { type, name, ...others } = choice;
  const isForced =
    type === "tool" &&
    !left.some((tool) => isObject(tool) && tool["name"] === name) &&
    dropped.some((tool) => tool["name"] === undefined || tool["name"] === name);
  if (left.length > 0 && !isForced) return;
  if (type === "tool" || type === "any") lost.add("tool_choice");
  if (left.length === 0) out.remove("tool_choice");
  else out.set("tool_choice", { ...others, type: "auto" });
}

/** Content that contains blocks, below the top level of the body. */
const CONTENT_FIELDS = ["system", "messages", "tools"] as const;

/**
 * Removes members of cache marks, and replaces blocks that the backend does not know. A
 * `tool_reference` becomes the name of the tool, which the model finds among the tools.
 */
function removeFromContent(
  out: Outgoing,
  marks: readonly string[],
  blocks: readonly string[],
  lose: Lose,
): void {
  const lost = new Set<string>();
  const each = (value: Json): Json => {
    if (!isObject(value)) return value;
    if (blocks.includes(asText(value["type"]) ?? "")) {
      lost.add(`content.${asText(value["type"])}`);
      return { type: "text", text: asText(value["tool_name"]) ?? "" };
    }
    let changed: JsonObject = value;
    const mark = value["cache_control"];
    if (isObject(mark) && marks.some((member) => mark[member] !== undefined)) {
      for (const member of marks)
        if (mark[member] !== undefined) lost.add(`cache_control.${member}`);
      changed = { ...changed, cache_control: without(mark, marks) };
    }
    const content = value["content"];
    if (Array.isArray(content)) {
      const mapped = mapChanged(content as readonly Json[], each);
      if (mapped !== content) changed = { ...changed, content: mapped };
    }
    return changed;
  };
  for (const field of CONTENT_FIELDS) {
    const list = asList(out.get(field));
    const mapped = mapChanged(list, each);
    if (mapped !== list) out.set(field, mapped as Json[]);
  }
  const own = out.get("cache_control");
  if (isObject(own)) {
    const changed = each({ cache_control: own }) as { cache_control: JsonObject };
    if (changed.cache_control !== own) out.set("cache_control", changed.cache_control);
  }
  for (const field of lost) lose(field);
}

/** Maps a list. Returns the same list if no item changed. */
function mapChanged(list: readonly Json[], each: (item: Json) => Json): readonly Json[] {
  const mapped = list.map(each);
  return mapped.some((item, i) => item !== list[i]) ? mapped : list;
}

const without = (value: JsonObject, members: readonly string[]): JsonObject =>
  Object.fromEntries(
    Object.entries(value).filter(([member]) => !members.includes(member)),
  ) as JsonObject;
