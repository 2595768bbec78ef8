// Content parts of messages and tool outputs, as the common vocabulary has them, and back.
import { fail } from "../../model/error.ts";
import type { Block, Json, JsonObject, Media, Opt } from "../../plugin/index.ts";
import { list, object, present, text } from "../json.ts";
import { base64Of, dataUrl, mediaOf } from "../media.ts";
import { ORIGIN } from "./words.ts";

/** A string is one text; null and nothing are no text at all. */
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
  const part = object(raw);
  if (!part || typeof part["type"] !== "string")
    return fail("invalid", `${at} must be a content part with a type.`, {
      param: at,
      code: "invalid_type",
    });
  const cache = part["prompt_cache_breakpoint"] ?? undefined;
  return present({ ...known(part, at), cache }) as Block;
}

function known(part: JsonObject, at: string): Block {
  const opaque: Block = { type: "opaque", origin: ORIGIN, raw: part };
  switch (part["type"]) {
    case "input_text":
    case "output_text":
    case "text": {
      const citations = list(part["annotations"]);
      return {
        type: "text",
        text: required(part, "text", at),
        ...(citations.length > 0 && { citations }),
      };
    }
    case "refusal":
      return { type: "refusal", text: required(part, "refusal", at) };
    case "input_image": {
      const detail = text(part["detail"]);
      const fileId = text(part["file_id"]);
      const url = text(part["image_url"]);
      if (url === undefined && fileId === undefined)
        return fail("invalid", `${at} needs image_url or file_id.`, { param: at });
      const media = url === undefined ? { fileId: fileId!, origin: ORIGIN } : mediaOf(url);
      return present({ type: "image" as const, media, detail });
    }
    case "input_file": {
      const data = text(part["file_data"]);
      const url = text(part["file_url"]);
      const fileId = text(part["file_id"]);
      const title = text(part["filename"]);
      const detail = text(part["detail"]);
      if (data !== undefined) {
        const media = mediaOf(data);
        // Bare base64, without the address around it, is common enough.
        return present({
          type: "document" as const,
          media: "url" in media ? { mime: "application/pdf", base64: data } : media,
          title,
          detail,
        });
      }
      if (url === undefined && fileId === undefined)
        return fail("invalid", `${at} needs file_data, file_url or file_id.`, { param: at });
      const media = url === undefined ? { fileId: fileId!, origin: ORIGIN } : { url };
      return present({ type: "document" as const, media, title, detail });
    }
    case "input_audio": {
      const audio = object(part["input_audio"]);
      const base64 = text(audio?.["data"]);
      if (base64 === undefined)
        return fail("invalid", `${at} needs input_audio.data.`, { param: at });
      return {
        type: "audio",
        media: { mime: `audio/${text(audio?.["format"]) ?? "wav"}`, base64 },
      };
    }
    default:
      return opaque;
  }
}

const required = (part: JsonObject, key: string, at: string): string =>
  text(part[key]) ??
  fail("invalid", `${at}.${key} must be a string.`, {
    param: `${at}.${key}`,
    code: "invalid_type",
  });

/** How far a part must get: the caller decides what a missing word costs. */
export interface PartContext {
  lose(field: string, how: "dropped" | "approximated", code?: string): void;
  /** Whether the upstream understands marks that end a reusable prefix. */
  marks: boolean;
}

const AUDIO: Readonly<Record<string, string>> = {
  "audio/wav": "wav",
  "audio/x-wav": "wav",
  "audio/wave": "wav",
  "audio/mp3": "mp3",
  "audio/mpeg": "mp3",
};

/** One part of a user's, system's or tool's content; undefined for what was dropped. */
export function inputPart(block: Block, of: PartContext): JsonObject | undefined {
  const cache = mark(block.cache, of);
  switch (block.type) {
    case "text":
      if (block.citations) of.lose("citations", "dropped");
      return present({ type: "input_text", text: block.text, prompt_cache_breakpoint: cache });
    case "refusal":
      of.lose("refusal", "approximated");
      return { type: "input_text", text: block.text };
    case "image": {
      const { media } = block;
      const url = "url" in media ? media.url : dataUrl(media, "image/png");
      return present({
        type: "input_image",
        ...(url === undefined ? { file_id: ownFile(media, "image") } : { image_url: url }),
        detail: block.detail,
        prompt_cache_breakpoint: cache,
      });
    }
    case "document": {
      const { media } = block;
      if (block.context !== undefined) of.lose("document.context", "dropped");
      if (block.cite) of.lose("document.citations", "dropped");
      const data = dataUrl(media, "application/pdf");
      return present({
        type: "input_file",
        // A name is required beside bytes.
        filename: block.title ?? (data === undefined ? undefined : "document"),
        ...(data !== undefined
          ? { file_data: data }
          : "url" in media
            ? { file_url: media.url }
            : { file_id: ownFile(media, "document") }),
        detail: block.detail,
        prompt_cache_breakpoint: cache,
      });
    }
    case "audio": {
      const data = base64Of(block.media);
      const format = AUDIO[block.media.mime ?? "audio/wav"];
      if (data === undefined || format === undefined)
        return fail("unsupported", "Audio must be sent as WAV or MP3 bytes to this model.", {
          code: "unsupported_audio",
        });
      return { type: "input_audio", input_audio: { data, format } };
    }
    case "video":
      return fail("unsupported", "This model's protocol takes no video.", {
        code: "unsupported_video",
      });
    case "opaque":
      if (block.origin === ORIGIN && object(block.raw)) return block.raw as JsonObject;
      if (!block.text)
        return fail("unsupported", `Content that only ${block.origin} knows cannot be sent here.`, {
          code: "unknown_content",
        });
      of.lose(`${block.origin} content`, "approximated", "shown_as_text");
      return { type: "input_text", text: block.text };
    case "reasoning":
      return undefined;
    case "call":
    case "result":
      return fail("invalid", `A ${block.type} cannot stand inside a message's content.`);
  }
}

/** What the assistant said, as it is sent back. */
export function outputPart(
  block: Extract<Block, { type: "text" | "refusal" }>,
  of: PartContext,
): JsonObject {
  if (block.cache !== undefined) of.lose("cache_control", "dropped");
  if (block.type === "refusal") return { type: "refusal", refusal: block.text };
  const annotations = (block.citations ?? []).map(annotationOf).filter((a) => a !== undefined);
  if (annotations.length < (block.citations ?? []).length) of.lose("citations", "dropped");
  return { type: "output_text", text: block.text, annotations };
}

const OWN_FILES = new Set([ORIGIN, "chat-completions", "openai"]);

/** A file is an upstream's own: its id says nothing anywhere else. */
function ownFile(media: Media, what: string): string {
  if ("fileId" in media && OWN_FILES.has(media.origin)) return media.fileId;
  return fail("unsupported", `An ${what} of another provider's file store cannot be reached.`, {
    code: "foreign_file",
  });
}

/** Marks are this wire's own when they say `mode`; another's are hints, translated where the model knows them. */
function mark(cache: Opt<Json>, of: PartContext): Json | undefined {
  if (cache === undefined) return undefined;
  const own = object(cache);
  if (own?.["mode"] !== undefined) return cache;
  if (!of.marks) {
    of.lose("cache_control", "dropped");
    return undefined;
  }
  const long = own?.["ttl"] === "1h";
  of.lose("cache_control", "approximated");
  return present({ mode: "explicit", ttl: long ? "12h" : undefined });
}

const ANNOTATIONS = new Set([
  "url_citation",
  "file_citation",
  "container_file_citation",
  "file_path",
]);

/** A citation in this wire's own form; chat nests the same members one level deeper. */
export function annotationOf(citation: Json): JsonObject | undefined {
  const c = object(citation);
  if (!c || !ANNOTATIONS.has(text(c["type"]) ?? "")) return undefined;
  const nested = object(c[text(c["type"]) ?? ""]);
  return nested ? { type: c["type"], ...nested } : c;
}
