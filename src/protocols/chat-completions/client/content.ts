// Converts blocks into content parts. Content that the provider cannot receive is reported or
// rejected here, never dropped silently.
import { ownEntry, asObject, omitUndefined, asText } from "../../json-values.ts";
import { fail } from "../../../model/error.ts";
import type { CallContext, Block, Json, JsonObject, Turn } from "../../../plugin/index.ts";
import type { ChatTraits } from "../dialect.ts";
import { toBase64, toUrl } from "../../media-url.ts";
import { ID } from "../constants.ts";

/**
 * The call that is being encoded and the traits of its backend. Each loss is reported once per
 * request, not once per message.
 */
export interface ContentContext {
  of: CallContext;
  traits: ChatTraits;
  lose(field: string, how: "dropped" | "approximated", code?: string): void;
}

export interface ToolNames {
  /**
   * Returns a tool's name as the provider receives it. Requests in this protocol keep their names,
   * even if the provider rejects them.
   */
  name(of: string): string;
}

export function createContentContext(of: CallContext, traits: ChatTraits): ContentContext {
  const reported = new Set<string>();
  return {
    of,
    traits,
    lose(field, how, code) {
      if (reported.has(field + how)) return;
      reported.add(field + how);
      of.reportLoss(field, how, code);
    },
  };
}

const AUDIO: Readonly<Record<string, string>> = {
  "audio/wav": "wav",
  "audio/wave": "wav",
  "audio/x-wav": "wav",
  "audio/mp3": "mp3",
  "audio/mpeg": "mp3",
};

const unsupported = (message: string, param: string): never =>
  fail("unsupported", message, { code: "unsupported_content", param });

/** Returns one content part of a user or tool message. */
export function partOf(block: Block, at: string, to: ContentContext): JsonObject {
  return { ...partWithoutMark(block, at, to), ...cacheMark(block.cache, to) };
}

function partWithoutMark(block: Block, at: string, to: ContentContext): JsonObject {
  switch (block.type) {
    case "text":
      if (block.citations?.length) to.lose("citations", "dropped");
      return { type: "text", text: block.text };
    case "refusal":
      to.lose("refusal", "approximated");
      return { type: "text", text: block.text };
    case "image": {
      const url =
        toUrl(block.media, "image/png") ??
        unsupported("A file in another provider's file store cannot be sent to this model.", at);
      return { type: "image_url", image_url: omitUndefined({ url, detail: block.detail }) };
    }
    case "audio": {
      const data = toBase64(block.media);
      const format = ownEntry(AUDIO, block.media.mime ?? "audio/wav");
      if (data !== undefined && format !== undefined)
        return { type: "input_audio", input_audio: { data, format } };
      if ("url" in block.media && to.traits.mediaUrls)
        return { type: "audio_url", audio_url: { url: block.media.url } };
      return unsupported("Audio must be sent as WAV or MP3 bytes to this model.", at);
    }
    case "video": {
      const url = toUrl(block.media, "video/mp4");
      if (!to.traits.mediaUrls || url === undefined)
        return unsupported("This model's protocol does not support video.", at);
      return { type: "video_url", video_url: { url } };
    }
    case "document":
      return documentOf(block, at, to);
    case "opaque": {
      const raw = asObject(block.raw);
      if (block.origin === ID && raw && typeof raw["type"] === "string") return raw;
      if (block.text === undefined)
        return unsupported(
          `Content of type ${asText(raw?.["type"]) ?? block.origin} cannot be sent to this model.`,
          at,
        );
      to.lose(`${asText(raw?.["type"]) ?? block.origin}`, "approximated", "content_as_text");
      return { type: "text", text: block.text };
    }
    case "reasoning":
    case "call":
    case "result":
      return fail("invalid", `${at}: ${block.type} is not allowed here.`, { param: at });
  }
}

type MediaBlock = Extract<Block, { media: unknown }>;

function documentOf(block: MediaBlock, at: string, to: ContentContext): JsonObject {
  const { media, title } = block;
  if (block.context !== undefined) to.lose("document.context", "dropped");
  if (block.cite) to.lose("document.citations", "dropped");
  if ("fileId" in media) {
    if (media.origin !== ID && media.origin !== "responses")
      return unsupported(
        "A file in another provider's file store cannot be sent to this model.",
        at,
      );
    return { type: "file", file: omitUndefined({ file_id: media.fileId, filename: title }) };
  }
  if ("url" in media)
    return unsupported("This model accepts documents as bytes, not as a URL.", at);
  const data = toBase64(media)!;
  if (media.mime?.startsWith("text/") === true) {
    to.lose("document", "approximated", "document_as_text");
    const textContent = Buffer.from(data, "base64").toString("utf8");
    return { type: "text", text: title === undefined ? textContent : `${title}\n\n${textContent}` };
  }
  const mime = media.mime ?? "application/pdf";
  // The protocol requires a file name together with bytes.
  return {
    type: "file",
    file: { filename: title ?? "document.pdf", file_data: `data:${mime};base64,${data}` },
  };
}

/** Returns the mark for the end of a reusable prefix in this backend's form. */
function cacheMark(cache: Json | undefined, to: ContentContext): JsonObject | undefined {
  if (cache === undefined) return undefined;
  const own = asObject(cache);
  const { cacheMarks } = to.traits;
  if (cacheMarks === "cache_control")
    return { cache_control: own?.["type"] === undefined ? { type: "ephemeral" } : cache };
  if (cacheMarks === "prompt_cache_breakpoint") {
    if (own?.["mode"] === undefined) to.lose("cache_control", "approximated");
    return { prompt_cache_breakpoint: own?.["mode"] === undefined ? { mode: "explicit" } : cache };
  }
  to.lose("cache_control", "dropped");
  return undefined;
}

/**
 * Returns text blocks as one string, or the list of parts if there is other content. Several texts
 * are joined only if the backend does not accept parts.
 */
export function contentOf(
  blocks: readonly Block[],
  at: string,
  to: ContentContext,
  between = "\n\n",
): Json {
  const parts = blocks.map((b, i) => partOf(b, `${at}[${i}]`, to));
  const plain = parts.every((p) => p["type"] === "text" && Object.keys(p).length === 2);
  if (parts.length === 0) return "";
  if (plain && (parts.length === 1 || to.traits.contentParts === false)) {
    if (parts.length > 1) to.lose("content", "approximated", "parts_joined");
    return parts.map((p) => p["text"] as string).join(between);
  }
  return parts;
}

export const withName = (turn: Turn, message: JsonObject): JsonObject =>
  turn.name === undefined ? message : { ...message, name: turn.name };
