// Decodes a client's blocks into the common form. A block with additional members keeps its
// original JSON, which is used if the provider speaks this protocol. Blocks that another protocol
// could express only partly are kept whole as opaque blocks.
import type { Block, Media, Proof } from "../../../model/request.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { unseal } from "../../proof-envelope.ts";
import { isObject, hasOnlyKeys, asText } from "../../json-values.ts";
import { rememberSource, ID, failMalformed } from "../constants.ts";

export function blocksOf(content: unknown, path: string): Block[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  if (content === undefined || content === null) return [];
  if (!Array.isArray(content))
    return failMalformed(`${path} must be a string or a list of blocks.`, path);
  const blocks: Block[] = [];
  for (const [i, raw] of content.entries()) {
    if (!isObject(raw)) return failMalformed(`${path}.${i} must be a block.`, `${path}.${i}`);
    const block = blockOf(raw, `${path}.${i}`, blocks.at(-1));
    if (block) blocks.push(block);
  }
  return blocks;
}

function blockOf(raw: JsonObject, path: string, before: Block | undefined): Block | undefined {
  const cache = raw["cache_control"] ?? undefined;
  switch (raw["type"]) {
    case "text":
      return textBlock(raw, cache);
    case "image":
      return image(raw, cache);
    case "document":
      return document(raw, cache);
    case "tool_use":
      return call(raw, cache);
    case "tool_result":
      return result(raw, cache, path);
    case "thinking":
      return thinking(raw);
    case "redacted_thinking":
      return redacted(raw, before);
    default:
      return opaque(raw, textOfOpaque(raw));
  }
}

const opaque = (raw: JsonObject, text?: string): Block => ({
  type: "opaque",
  origin: ID,
  raw,
  ...(text !== undefined && { text }),
});

const cached = (cache: Json | undefined) => (cache === undefined ? {} : { cache });

/** Returns the block, with its original JSON if that has members other than the known ones. */
const withSource = (raw: JsonObject, knownMembers: readonly string[], block: Block): Block =>
  hasOnlyKeys(raw, knownMembers) ? block : rememberSource(block, raw);

function textBlock(raw: JsonObject, cache: Json | undefined): Block {
  const citations = raw["citations"];
  return withSource(raw, ["type", "text", "cache_control", "citations"], {
    type: "text",
    text: asText(raw["text"]) ?? "",
    ...(Array.isArray(citations) && citations.length > 0 && { citations }),
    ...cached(cache),
  });
}

function image(raw: JsonObject, cache: Json | undefined): Block {
  const media = mediaOf(raw["source"]);
  if (!media) return opaque(raw);
  return withSource(raw, ["type", "source", "cache_control"], {
    type: "image",
    media,
    ...cached(cache),
  });
}

function document(raw: JsonObject, cache: Json | undefined): Block {
  const { title, context, citations } = raw;
  const media = mediaOf(raw["source"]);
  if (!media) return opaque(raw, textOfOpaque(raw));
  if (isObject(citations) && !hasOnlyKeys(citations, ["enabled"])) return opaque(raw);
  const cite = isObject(citations) ? citations["enabled"] : undefined;
  return withSource(raw, ["type", "source", "cache_control", "title", "context", "citations"], {
    type: "document",
    media,
    ...(typeof title === "string" && { title }),
    ...(typeof context === "string" && { context }),
    ...(typeof cite === "boolean" && { cite }),
    ...cached(cache),
  });
}

/** Returns the media of a source that the common form can express, or undefined. */
function mediaOf(source: unknown): Media | undefined {
  if (!isObject(source)) return undefined;
  const { type, media_type: mime, data, url, file_id: fileId } = source;
  if (
    type === "base64" &&
    typeof data === "string" &&
    hasOnlyKeys(source, ["type", "media_type", "data"])
  )
    return { ...(typeof mime === "string" && { mime }), base64: data };
  if (type === "url" && typeof url === "string" && hasOnlyKeys(source, ["type", "url"]))
    return { url };
  if (type === "file" && typeof fileId === "string" && hasOnlyKeys(source, ["type", "file_id"]))
    return { fileId, origin: ID };
  // Text with an unpaired surrogate cannot be encoded as bytes.
  if (type === "text" && typeof data === "string" && data.isWellFormed())
    if (hasOnlyKeys(source, ["type", "media_type", "data"]))
      return { mime: asText(mime) ?? "text/plain", bytes: Buffer.from(data) };
  return undefined;
}

function call(raw: JsonObject, cache: Json | undefined): Block {
  const { id, name, input, caller, toolset_name: toolset } = raw;
  const direct = isObject(caller) ? caller["type"] === "direct" : !caller;
  if (!direct || toolset || typeof id !== "string" || typeof name !== "string") return opaque(raw);
  const args = typeof input === "string" ? input : JSON.stringify(input ?? {});
  const knownMembers = ["type", "id", "name", "input", "cache_control", "toolset_name"];
  return withSource(
    raw,
    isObject(caller) && !hasOnlyKeys(caller, ["type"]) ? knownMembers : [...knownMembers, "caller"],
    {
      type: "call",
      id,
      name,
      tool: "function",
      args,
      ...cached(cache),
    },
  );
}

function result(raw: JsonObject, cache: Json | undefined, path: string): Block {
  const { tool_use_id: callId, content, is_error: isError, toolset_name: toolset } = raw;
  if (toolset || typeof callId !== "string") return opaque(raw);
  const blocks = blocksOf(content, `${path}.content`);
  return withSource(
    raw,
    ["type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"],
    { type: "result", callId, blocks, isError: isError === true, ...cached(cache) },
  );
}

const ownProof = (kind: string, data: string): Proof => ({ origin: ID, kind, data });

/**
 * Decodes thinking. The signature is the provider's own, or a gateway envelope that contains
 * another provider's proof.
 */
function thinking(raw: JsonObject): Block {
  const thinkingText = asText(raw["thinking"]) ?? "";
  const signature = asText(raw["signature"]) ?? "";
  if (!hasOnlyKeys(raw, ["type", "thinking", "signature"])) return opaque(raw);
  const sealed = unseal(signature);
  if (sealed) {
    const text = sealed.text ?? thinkingText;
    const proof = sealed.proof && { proof: sealed.proof };
    return sealed.summary
      ? { type: "reasoning", summary: [text], ...proof }
      : { type: "reasoning", text, ...proof };
  }
  return {
    type: "reasoning",
    text: thinkingText,
    ...(signature !== "" && { proof: ownProof("signature", signature) }),
  };
}

/**
 * Decodes redacted thinking. The data is the provider's own or a gateway envelope. An envelope
 * contains reasoning without text, or a proof that belongs to the block before it.
 */
function redacted(raw: JsonObject, before: Block | undefined): Block | undefined {
  const data = asText(raw["data"]) ?? "";
  if (!hasOnlyKeys(raw, ["type", "data"])) return opaque(raw);
  const sealed = unseal(data);
  if (!sealed) return { type: "reasoning", proof: ownProof("redacted", data) };
  const proof = sealed.proof && { proof: sealed.proof };
  if (sealed.precedingBlock !== undefined) {
    if (before?.type === sealed.precedingBlock) Object.assign(before, proof);
    // An empty signed text had no separate block.
    else if (sealed.precedingBlock === "text") return { type: "text", text: "", ...proof };
    return undefined;
  }
  return { type: "reasoning", ...(sealed.text !== undefined && { text: sealed.text }), ...proof };
}

/**
 * Returns the text that represents an opaque block in another protocol, or undefined if text cannot
 * express all of it.
 */
function textOfOpaque(raw: JsonObject): string | undefined {
  if (raw["type"] === "search_result") {
    const body = plainText(raw["content"]);
    return body === undefined
      ? undefined
      : [raw["title"], raw["source"], body].filter((s) => typeof s === "string").join("\n");
  }
  // Protocols without deferred tools declare all tools in full, so this tool can already be called.
  if (raw["type"] === "tool_reference" && typeof raw["tool_name"] === "string")
    return `The tool ${raw["tool_name"]} can be called now.`;
  if (raw["type"] === "document" && isObject(raw["source"])) {
    const { type, content } = raw["source"];
    const body = type === "content" ? plainText(content) : undefined;
    return body === undefined
      ? undefined
      : [raw["title"], raw["context"], body].filter((s) => typeof s === "string").join("\n");
  }
  return undefined;
}

/** Returns the text of content that consists only of text. */
function plainText(content: unknown): string | undefined {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return undefined;
  const parts: string[] = [];
  for (const block of content as readonly Json[]) {
    if (!isObject(block) || block["type"] !== "text" || typeof block["text"] !== "string")
      return undefined;
    parts.push(block["text"]);
  }
  return parts.join("\n");
}
