// Encodes canonical blocks for Converse. Content that Converse cannot represent is rejected if the
// model would receive content that differs from the client's content. If the model only receives
// less information, a translation warning is reported.
import {
  fail,
  type Block,
  type CallContext,
  type JsonObject,
  type Media,
  type Opt,
} from "tollgate/plugin";
import { toBase64, fitName, parseToolArguments } from "tollgate/protocols/codec";
import { isObject } from "../json.ts";
import {
  DOCUMENT_FORMATS,
  ID,
  IMAGE_FORMATS,
  AUDIO_FORMATS,
  failUnsupported,
  VIDEO_FORMATS,
} from "./constants.ts";

type Role = "user" | "assistant";

/** Encodes the blocks of a turn, each followed by its cache point. */
export function blocksTo(
  blocks: readonly Block[],
  role: Role,
  at: string,
  of: CallContext,
): JsonObject[] {
  return blocks.flatMap((block) => {
    const converted = blockTo(block, role, at, of);
    return converted === undefined ? [] : [converted, ...cacheTo(block, of)];
  });
}

/** Encodes instructions, which can only be text. */
export const systemTo = (blocks: readonly Block[], of: CallContext): JsonObject[] =>
  blocks.flatMap((block) => {
    if (block.type !== "text")
      return failUnsupported("A system instruction that is not text", "system");
    return block.text.trim() === "" ? [] : [{ text: block.text }, ...cacheTo(block, of)];
  });

/** Encodes a cache point. Its lifetime is rounded to a supported value. */
export function cacheTo({ cache }: Pick<Block, "cache">, of: CallContext): JsonObject[] {
  if (!isObject(cache)) return [];
  const { ttl } = cache;
  if (ttl !== undefined && ttl !== "5m" && ttl !== "1h")
    of.reportLoss("cache_control.ttl", "approximated");
  return [{ cachePoint: { type: "default", ...(ttl === "1h" && { ttl: "1h" }) } }];
}

function blockTo(block: Block, role: Role, at: string, of: CallContext): JsonObject | undefined {
  switch (block.type) {
    case "text":
      if (block.citations?.length) of.reportLoss("citations", "dropped");
      // Converse rejects text that contains only whitespace, so the block is omitted.
      return block.text.trim() === "" ? undefined : { text: block.text };
    case "refusal":
      of.reportLoss(`${at}.refusal`, "approximated", "refusal_as_text");
      return block.text.trim() === "" ? undefined : { text: block.text };
    case "reasoning":
      return role === "assistant" ? reasoningTo(block) : undefined;
    case "image":
      if (block.detail !== undefined && block.detail !== "auto")
        of.reportLoss("image_url.detail", "dropped");
      return { image: mediaTo(block.media, IMAGE_FORMATS, "image/png", at) };
    case "video":
      return { video: mediaTo(block.media, VIDEO_FORMATS, "video/mp4", at) };
    case "audio":
      return { audio: mediaTo(block.media, AUDIO_FORMATS, "audio/wav", at) };
    case "document":
      return { document: documentTo(block, at) };
    case "call":
      return { toolUse: callTo(block, at) };
    case "result":
      return { toolResult: resultTo(block, at, of) };
    case "opaque":
      return opaqueTo(block, role, at, of);
  }
}

/** Returns reasoning only if a Converse model signed it. */
function reasoningTo({
  proof,
  text,
  summary,
}: Extract<Block, { type: "reasoning" }>): JsonObject | undefined {
  if (proof?.origin !== ID) return undefined;
  if (proof.kind === "redacted") return { reasoningContent: { redactedContent: proof.data } };
  const thoughtContent = text ?? summary?.join("\n\n") ?? "";
  return { reasoningContent: { reasoningText: { text: thoughtContent, signature: proof.data } } };
}

/**
 * Encodes media from its bytes. URLs and file IDs are rejected, because this provider does not
 * fetch files.
 */
function mediaTo(
  media: Media,
  formats: ReadonlyMap<string, string>,
  usual: string,
  at: string,
): JsonObject {
  if ("fileId" in media) return failUnsupported("A file id", at, "foreign_file_id");
  const mime = media.mime?.toLowerCase() ?? usual;
  const format =
    formats.get(mime) ?? failUnsupported(`Media of type ${mime}`, at, "unsupported_media_type");
  const bytes = toBase64(media);
  if (bytes === undefined) return failUnsupported("Media by URL", at, "unsupported_media_source");
  return { format, source: { bytes } };
}

/** A document: its media and its description. */
interface Document {
  readonly media: Media;
  readonly title?: Opt<string>;
  readonly context?: Opt<string>;
  readonly cite?: Opt<boolean>;
}

function documentTo(block: Document, at: string): JsonObject {
  return {
    ...mediaTo(block.media, DOCUMENT_FORMATS, "application/pdf", at),
    name: titleTo(block.title),
    ...(block.context !== undefined && { context: block.context }),
    ...(block.cite !== undefined && { citations: { enabled: block.cite } }),
  };
}

/**
 * Returns a valid document name. A name is required and may contain only letters, digits, spaces,
 * and the characters `-()[]`.
 */
const titleTo = (title: string | undefined): string =>
  (title ?? "")
    .slice(0, 200)
    .replace(/[^a-zA-Z0-9\-()[\]]+/g, " ")
    .trim() || "document";

/** Maximum length of names and IDs. */
const LONGEST = 64;
export const nameTo = (name: string): string => fitName(name, LONGEST);

function callTo(block: Extract<Block, { type: "call" }>, at: string): JsonObject {
  const input = block.tool === "custom" ? { input: block.args } : parseToolArguments(block.args);
  if (input === undefined)
    return fail(
      "unsupported",
      `The arguments of the call ${block.id} to ${block.name} must be a JSON object.`,
      { param: at, code: "invalid_tool_arguments" },
    );
  return { toolUseId: nameTo(block.id), name: nameTo(block.name), input };
}

function resultTo(
  block: Extract<Block, { type: "result" }>,
  at: string,
  of: CallContext,
): JsonObject {
  const content = block.blocks
    .map((inner) => blockTo(inner, "user", at, of))
    .filter((inner) => inner !== undefined);
  return {
    toolUseId: nameTo(block.callId),
    // Converse rejects a result without content, so an empty result gets a placeholder text.
    content: content.length > 0 ? content : [{ text: "(no output)" }],
    ...(block.isError && { status: "error" }),
  };
}

function opaqueTo(
  block: Extract<Block, { type: "opaque" }>,
  role: Role,
  at: string,
  of: CallContext,
): JsonObject | undefined {
  if (block.origin === ID && isObject(block.raw)) return block.raw;
  if (block.text) {
    of.reportLoss(`${at}.${block.origin}`, "approximated", "shown_as_text");
    return { text: block.text };
  }
  if (role === "assistant") {
    of.reportLoss(`${at}.${block.origin}`, "dropped", "hosted_history");
    return undefined;
  }
  return failUnsupported("A content part that is specific to another protocol", at);
}
