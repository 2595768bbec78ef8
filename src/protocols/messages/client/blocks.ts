// Encodes blocks of the common form for providers. Content that this protocol cannot express is
// rejected if the model would see something other than the client wrote. It is reported as a
// translation warning if the model would only have less information.
import { fail } from "../../../model/error.ts";
import type { Block, Media } from "../../../model/request.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { fitName, parseToolArguments } from "../../tool-calls.ts";
import type { MessagesSettings } from "../dialect.ts";
import { toBase64 } from "../../media-url.ts";
import { isObject } from "../../json-values.ts";
import { sourceOf, ID, isNativeCitation } from "../constants.ts";

export interface MessagesEncoding {
  of: CallContext;
  settings: MessagesSettings;
}

export const failUnsupported = (what: string, param: string, code = "unsupported_content"): never =>
  fail("unsupported", `${what} cannot be sent to a messages endpoint.`, { param, code });

/** Encodes the blocks of one user or assistant turn. Blocks with nothing to send are omitted. */
export function blocksTo(
  blocks: readonly Block[],
  role: "user" | "assistant",
  path: string,
  e: MessagesEncoding,
): JsonObject[] {
  const out: JsonObject[] = [];
  for (const block of blocks) {
    const to = blockTo(block, role, path, e);
    if (to) out.push(to);
  }
  return out;
}

function blockTo(
  block: Block,
  role: "user" | "assistant",
  path: string,
  e: MessagesEncoding,
): JsonObject | undefined {
  const own = sourceOf<JsonObject>(block);
  if (own && !(block.type === "text" && block.text === "")) return own;
  const cache = cacheTo(block.cache, e);
  switch (block.type) {
    case "text":
      return textTo(block, cache, e);
    case "refusal":
      if (block.text === "") return undefined;
      e.of.reportLoss(`${path}.refusal`, "approximated", "refusal_as_text");
      return { type: "text", text: block.text, ...cache };
    case "reasoning":
      return role === "assistant" ? reasoningTo(block, e) : undefined;
    case "image":
      if (role === "assistant") failUnsupported("An image in an assistant turn", path);
      if (block.detail !== undefined && block.detail !== "auto")
        e.of.reportLoss("image_url.detail", "dropped");
      return { type: "image", source: imageSource(block.media, path), ...cache };
    case "document":
      return {
        type: "document",
        source: documentSource(block.media, path),
        title: block.title,
        context: block.context,
        ...(block.cite !== undefined && { citations: { enabled: block.cite } }),
        ...cache,
      };
    case "audio":
    case "video":
      return failUnsupported(block.type === "audio" ? "Audio" : "Video", path);
    case "call":
      return { ...callTo(block, path), ...cache };
    case "result":
      return { ...resultTo(block, path, e), ...cache };
    case "opaque":
      return opaqueTo(block, role, path, e);
  }
}

function textTo(
  block: Extract<Block, { type: "text" }>,
  cache: JsonObject,
  e: MessagesEncoding,
): JsonObject | undefined {
  // This protocol rejects empty text blocks, and they carry no information.
  if (block.text === "") return undefined;
  const citations = block.citations?.filter(isNativeCitation) ?? [];
  if (citations.length < (block.citations?.length ?? 0)) e.of.reportLoss("citations", "dropped");
  return {
    type: "text",
    text: block.text,
    ...(citations.length > 0 && { citations }),
    ...cache,
  };
}

/**
 * Encodes reasoning. A proof is sent only to the provider that made it. Reasoning that another
 * provider signed is dropped, which is the intended behavior after a model change.
 */
function reasoningTo(
  { proof, text, summary }: Extract<Block, { type: "reasoning" }>,
  { settings: { signer, acceptsUnsignedThinking } }: MessagesEncoding,
): JsonObject | undefined {
  const thinking = text ?? summary?.join("\n\n") ?? "";
  if (proof?.origin === signer)
    return proof.kind === "redacted"
      ? { type: "redacted_thinking", data: proof.data }
      : { type: "thinking", thinking, signature: proof.data };
  if (acceptsUnsignedThinking && !proof && text)
    return { type: "thinking", thinking, signature: "" };
  return undefined;
}

const IMAGES = new Set(["image/jpeg", "image/png", "image/gif", "image/webp"]);

function imageSource(media: Media, path: string): JsonObject {
  if ("url" in media) return { type: "url", url: media.url };
  if ("fileId" in media) return fileSource(media, path);
  const mime = media.mime?.toLowerCase().replace("image/jpg", "image/jpeg");
  if (mime === undefined || !IMAGES.has(mime))
    failUnsupported(`An image of type ${mime ?? "unknown"}`, path, "unsupported_media_type");
  return { type: "base64", media_type: mime, data: toBase64(media) };
}

function documentSource(media: Media, path: string): JsonObject {
  if ("url" in media) return { type: "url", url: media.url };
  if ("fileId" in media) return fileSource(media, path);
  const mime = media.mime?.toLowerCase() ?? "application/pdf";
  if (mime.startsWith("text/")) {
    const data = "bytes" in media ? media.bytes : Buffer.from(media.base64, "base64");
    return { type: "text", media_type: "text/plain", data: data.toString() };
  }
  if (mime !== "application/pdf")
    failUnsupported(`A document of type ${mime}`, path, "unsupported_media_type");
  return { type: "base64", media_type: mime, data: toBase64(media) };
}

/** Rejects file IDs of another vendor, which would refer to no file here or to a wrong one. */
const fileSource = ({ fileId, origin }: { fileId: string; origin: string }, path: string) =>
  origin === ID
    ? { type: "file", file_id: fileId }
    : failUnsupported("A file ID of another provider", path, "foreign_file_id");

const idTo = (id: string): string => fitName(id, 128);
export const nameTo = (name: string): string => fitName(name, 128);

function callTo(block: Extract<Block, { type: "call" }>, path: string): JsonObject {
  const input = block.tool === "custom" ? { input: block.args } : parseToolArguments(block.args);
  return {
    type: "tool_use",
    id: idTo(block.id),
    name: nameTo(block.name),
    input:
      input ??
      fail(
        "unsupported",
        `The arguments of the call ${block.id} to ${block.name} are not a JSON object.`,
        { param: path, code: "invalid_tool_arguments" },
      ),
  };
}

function resultTo(
  block: Extract<Block, { type: "result" }>,
  path: string,
  e: MessagesEncoding,
): JsonObject {
  const blocks = blocksTo(block.blocks, "user", path, e);
  const [first] = blocks;
  const plain =
    blocks.length === 1 && first!["type"] === "text" && Object.keys(first!).length === 2;
  return {
    type: "tool_result",
    tool_use_id: idTo(block.callId),
    ...(blocks.length > 0 && { content: plain ? first!["text"] : blocks }),
    ...(block.isError && { is_error: true }),
  };
}

function opaqueTo(
  block: Extract<Block, { type: "opaque" }>,
  role: "user" | "assistant",
  path: string,
  e: MessagesEncoding,
): JsonObject | undefined {
  if (block.origin === ID && isObject(block.raw)) return block.raw;
  if (block.text) {
    e.of.reportLoss(`${path}.${block.origin}`, "approximated", "shown_as_text");
    return { type: "text", text: block.text };
  }
  // The hosted tool call of another vendor is history. The response after it contains the outcome.
  if (role === "assistant") {
    e.of.reportLoss(`${path}.${block.origin}`, "dropped", "hosted_history");
    return undefined;
  }
  return failUnsupported("A content part that is specific to another protocol", path);
}

const LONG = /^(?:30m|1h|12h|24h)$/;

/**
 * Encodes a cache mark in this protocol's form. The lifetime is rounded to one that the protocol
 * has.
 */
export function cacheTo(cache: Json | undefined, e: MessagesEncoding): JsonObject {
  if (!isObject(cache)) return {};
  if (cache["type"] === "ephemeral") return { cache_control: cache };
  const { ttl } = cache;
  if (ttl !== undefined && ttl !== "5m" && ttl !== "1h")
    e.of.reportLoss("cache_control.ttl", "approximated");
  const long = typeof ttl === "string" && LONG.test(ttl);
  return { cache_control: { type: "ephemeral", ...(long && { ttl: "1h" }) } };
}
