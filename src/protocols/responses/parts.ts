// Decodes content parts of messages and tool outputs into the common form, and encodes them.
import { fail } from "../../model/error.ts";
import type { Block, Json, JsonObject, Media, Opt } from "../../plugin/index.ts";
import { asList, asObject, omitUndefined, asText } from "../json-values.ts";
import { toBase64, toDataUrl, parseMediaUrl } from "../media-url.ts";
import { ORIGIN } from "./constants.ts";

/** Decodes content. A string is one text block, and null or undefined is not a block. */
export function blocksOf(content: Opt<Json>, at: string): Block[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (content === undefined || content === null) return [];
  if (!isList(content))
    return fail("invalid", `${at} must be a string or a list of content parts.`, {
      param: at,
      code: "invalid_type",
    });
  return content.map((part, i) => blockOf(part, `${at}[${i}]`));
}

const isList = (v: Json): v is readonly Json[] => Array.isArray(v);

function blockOf(raw: Json, at: string): Block {
  const part = asObject(raw);
  if (!part || typeof part["type"] !== "string")
    return fail("invalid", `${at} must be a content part with a type.`, {
      param: at,
      code: "invalid_type",
    });
  const cache = part["prompt_cache_breakpoint"] ?? undefined;
  return omitUndefined({ ...known(part, at), cache }) as Block;
}

function known(part: JsonObject, at: string): Block {
  const opaque: Block = { type: "opaque", origin: ORIGIN, raw: part };
  switch (part["type"]) {
    case "input_text":
    case "output_text":
    case "text": {
      const citations = asList(part["annotations"]);
      return {
        type: "text",
        text: required(part, "text", at),
        ...(citations.length > 0 && { citations }),
      };
    }
    case "refusal":
      return { type: "refusal", text: required(part, "refusal", at) };
    case "input_image": {
      const detail = asText(part["detail"]);
      const fileId = asText(part["file_id"]);
      const url = asText(part["image_url"]);
      if (url === undefined && fileId === undefined)
        return fail("invalid", `${at} needs image_url or file_id.`, { param: at });
      const media = url === undefined ? { fileId: fileId!, origin: ORIGIN } : parseMediaUrl(url);
      return omitUndefined({ type: "image" as const, media, detail });
    }
    case "input_file": {
      const data = asText(part["file_data"]);
      const url = asText(part["file_url"]);
      const fileId = asText(part["file_id"]);
      const title = asText(part["filename"]);
      const detail = asText(part["detail"]);
      if (data !== undefined) {
        const media = parseMediaUrl(data);
        // Base64 without a data URL around it is common.
        return omitUndefined({
          type: "document" as const,
          media: "url" in media ? { mime: "application/pdf", base64: data } : media,
          title,
          detail,
        });
      }
      if (url === undefined && fileId === undefined)
        return fail("invalid", `${at} needs file_data, file_url or file_id.`, { param: at });
      const media = url === undefined ? { fileId: fileId!, origin: ORIGIN } : { url };
      return omitUndefined({ type: "document" as const, media, title, detail });
    }
    case "input_audio": {
      const audio = asObject(part["input_audio"]);
      const base64 = asText(audio?.["data"]);
      if (base64 === undefined)
        return fail("invalid", `${at} needs input_audio.data.`, { param: at });
      return {
        type: "audio",
        media: { mime: `audio/${asText(audio?.["format"]) ?? "wav"}`, base64 },
      };
    }
    default:
      return opaque;
  }
}

const required = (part: JsonObject, key: string, at: string): string =>
  asText(part[key]) ??
  fail("invalid", `${at}.${key} must be a string.`, {
    param: `${at}.${key}`,
    code: "invalid_type",
  });

/** Settings for the encoding of parts. The caller implements the reports of losses. */
export interface PartContext {
  reportLoss(field: string, how: "dropped" | "approximated", code?: string): void;
  /** Whether the provider supports marks that end a cacheable prefix. */
  acceptsCacheMarks: boolean;
}

const AUDIO: Readonly<Record<string, string>> = {
  "audio/wav": "wav",
  "audio/x-wav": "wav",
  "audio/wave": "wav",
  "audio/mp3": "mp3",
  "audio/mpeg": "mp3",
};

/** Encodes one part of a user, system, or tool message. Returns undefined if it was dropped. */
export function inputPart(block: Block, of: PartContext): JsonObject | undefined {
  const cache = toCacheMark(block.cache, of);
  switch (block.type) {
    case "text":
      if (block.citations) of.reportLoss("citations", "dropped");
      return omitUndefined({
        type: "input_text",
        text: block.text,
        prompt_cache_breakpoint: cache,
      });
    case "refusal":
      of.reportLoss("refusal", "approximated");
      return { type: "input_text", text: block.text };
    case "image": {
      const { media } = block;
      const url = "url" in media ? media.url : toDataUrl(media, "image/png");
      return omitUndefined({
        type: "input_image",
        ...(url === undefined ? { file_id: requireOwnFile(media, "image") } : { image_url: url }),
        detail: block.detail,
        prompt_cache_breakpoint: cache,
      });
    }
    case "document": {
      const { media } = block;
      if (block.context !== undefined) of.reportLoss("document.context", "dropped");
      if (block.cite) of.reportLoss("document.citations", "dropped");
      const data = toDataUrl(media, "application/pdf");
      return omitUndefined({
        type: "input_file",
        // A file name is required together with bytes.
        filename: block.title ?? (data === undefined ? undefined : "document"),
        ...(data !== undefined
          ? { file_data: data }
          : "url" in media
            ? { file_url: media.url }
            : { file_id: requireOwnFile(media, "document") }),
        detail: block.detail,
        prompt_cache_breakpoint: cache,
      });
    }
    case "audio": {
      const data = toBase64(block.media);
      const format = AUDIO[block.media.mime ?? "audio/wav"];
      if (data === undefined || format === undefined)
        return fail("unsupported", "Audio must be sent as WAV or MP3 bytes to this model.", {
          code: "unsupported_audio",
        });
      return { type: "input_audio", input_audio: { data, format } };
    }
    case "video":
      return fail("unsupported", "This model's protocol does not support video.", {
        code: "unsupported_video",
      });
    case "opaque":
      if (block.origin === ORIGIN && asObject(block.raw)) return block.raw as JsonObject;
      if (!block.text)
        return fail(
          "unsupported",
          `Content that is specific to ${block.origin} cannot be sent to this model.`,
          {
            code: "unknown_content",
          },
        );
      of.reportLoss(`${block.origin} content`, "approximated", "shown_as_text");
      return { type: "input_text", text: block.text };
    case "reasoning":
      return undefined;
    case "call":
    case "result":
      return fail("invalid", `${block.type} is not allowed in the content of a message.`);
  }
}

/** Encodes a part of an assistant message. */
export function outputPart(
  block: Extract<Block, { type: "text" | "refusal" }>,
  of: PartContext,
): JsonObject {
  if (block.cache !== undefined) of.reportLoss("cache_control", "dropped");
  if (block.type === "refusal") return { type: "refusal", refusal: block.text };
  const annotations = (block.citations ?? []).map(annotationOf).filter((a) => a !== undefined);
  if (annotations.length < (block.citations ?? []).length) of.reportLoss("citations", "dropped");
  return { type: "output_text", text: block.text, annotations };
}

const OWN_FILES = new Set([ORIGIN, "chat-completions", "openai"]);

/**
 * Returns the file ID. Throws if the file belongs to another provider, because its ID is unknown to
 * this provider.
 */
function requireOwnFile(media: Media, what: string): string {
  if ("fileId" in media && OWN_FILES.has(media.origin)) return media.fileId;
  return fail("unsupported", `An ${what} in another provider's file store cannot be used.`, {
    code: "foreign_file",
  });
}

/**
 * Encodes a cache mark. A mark with `mode` is in this protocol's format. Other marks are hints and
 * are translated if the model supports cache marks.
 */
function toCacheMark(cache: Opt<Json>, of: PartContext): Json | undefined {
  if (cache === undefined) return undefined;
  const own = asObject(cache);
  if (own?.["mode"] !== undefined) return cache;
  if (!of.acceptsCacheMarks) {
    of.reportLoss("cache_control", "dropped");
    return undefined;
  }
  const long = own?.["ttl"] === "1h";
  of.reportLoss("cache_control", "approximated");
  return omitUndefined({ mode: "explicit", ttl: long ? "12h" : undefined });
}

const ANNOTATIONS = new Set([
  "url_citation",
  "file_citation",
  "container_file_citation",
  "file_path",
]);

/**
 * Returns a citation in this protocol's form, or undefined. Chat completions nests the same members
 * one level deeper.
 */
export function annotationOf(citation: Json): JsonObject | undefined {
  const c = asObject(citation);
  if (!c || !ANNOTATIONS.has(asText(c["type"]) ?? "")) return undefined;
  const nested = asObject(c[asText(c["type"]) ?? ""]);
  return nested ? { type: c["type"], ...nested } : c;
}
