// Decodes content parts into blocks. A part of an unknown type, which may be newer than the
// gateway, becomes an opaque block.
import { fail } from "../../../model/error.ts";
import type { Block, Json, JsonObject, Opt } from "../../../plugin/index.ts";
import { asList, asObject, omitUndefined, asText } from "../../json-values.ts";
import { parseMediaUrl } from "../../media-url.ts";
import { ID } from "../constants.ts";

/**
 * Decodes content. A string becomes one text block. Null, undefined, and the empty string become no
 * block.
 */
export function blocksOf(content: Opt<Json>, at: string): Block[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  if (content === undefined || content === null) return [];
  if (!Array.isArray(content)) return failMalformed(at, "must be a string or a list of parts");
  return content.map((part: Json, i) =>
    typeof part === "string" ? { type: "text", text: part } : blockOf(part, `${at}[${i}]`),
  );
}

function blockOf(raw: Json, at: string): Block {
  const part = asObject(raw);
  const type = asText(part?.["type"]);
  if (!part || type === undefined) return failMalformed(at, "must be a part with a type");
  const cache = part["cache_control"] ?? part["prompt_cache_breakpoint"] ?? undefined;
  return omitUndefined({ ...partToBlock(part, type, at), cache }) as Block;
}

function partToBlock(part: JsonObject, type: string, at: string): Block {
  switch (type) {
    case "text":
    case "input_text":
    case "output_text":
      return { type: "text", text: need(part, "text", at) };
    case "refusal":
      return { type: "refusal", text: need(part, "refusal", at) };
    case "image_url":
    case "input_image": {
      const image = asObject(part["image_url"]);
      const url = asText(part["image_url"]) ?? asText(image?.["url"]);
      if (url === undefined) return failMalformed(`${at}.image_url.url`, "must be a string");
      const detail = asText(image?.["detail"]) ?? asText(part["detail"]);
      return omitUndefined({ type: "image" as const, media: parseMediaUrl(url), detail });
    }
    case "image":
      return foreignImage(part) ?? { type: "opaque", origin: ID, raw: part };
    case "input_audio": {
      const audio = asObject(part["input_audio"]);
      const base64 = asText(audio?.["data"]);
      if (base64 === undefined) return failMalformed(`${at}.input_audio.data`, "must be a string");
      const mime = `audio/${asText(audio?.["format"]) ?? "wav"}`;
      return { type: "audio", media: { mime, base64 } };
    }
    case "video_url":
    case "audio_url": {
      const url = asText(part[type]) ?? asText(asObject(part[type])?.["url"]);
      if (url === undefined) return failMalformed(`${at}.${type}.url`, "must be a string");
      return { type: type === "video_url" ? "video" : "audio", media: parseMediaUrl(url) };
    }
    case "file":
      return fileOf(part, at);
    case "thinking":
      return { type: "reasoning", text: reasoningTextOf(part["thinking"]) };
    default:
      return { type: "opaque", origin: ID, raw: part };
  }
}

/** Decodes an image part in another protocol's form, which users sometimes paste. */
function foreignImage(part: JsonObject): Block | undefined {
  const source = asObject(part["source"]);
  const base64 = asText(source?.["data"]);
  const url = asText(source?.["url"]);
  if (base64 !== undefined)
    return {
      type: "image",
      media: omitUndefined({ mime: asText(source?.["media_type"]), base64 }),
    };
  return url === undefined ? undefined : { type: "image", media: parseMediaUrl(url) };
}

function fileOf(part: JsonObject, at: string): Block {
  const file = asObject(part["file"]);
  const data = asText(file?.["file_data"]);
  const fileId = asText(file?.["file_id"]);
  const title = asText(file?.["filename"]);
  if (data !== undefined) {
    const media = parseMediaUrl(data);
    // Some clients send base64 without the prefix of a data URL.
    const bytes = "url" in media && !/^https?:/i.test(data);
    return omitUndefined({
      type: "document" as const,
      media: bytes ? { mime: "application/pdf", base64: data } : media,
      title,
    });
  }
  if (fileId === undefined) return failMalformed(`${at}.file`, "needs file_data or file_id");
  return omitUndefined({ type: "document" as const, media: { fileId, origin: ID }, title });
}

/**
 * Returns the text of reasoning. Some compatible APIs write it as a list of texts inside a part.
 */
export function reasoningTextOf(thinking: Opt<Json>): string {
  if (typeof thinking === "string") return thinking;
  return asList(thinking)
    .map((t) => asText(asObject(t)?.["text"]) ?? "")
    .join("");
}

const need = (part: JsonObject, key: string, at: string): string =>
  asText(part[key]) ?? failMalformed(`${at}.${key}`, "must be a string");

export const failMalformed = (at: string, what: string): never =>
  fail("invalid", `${at} ${what}.`, { param: at, code: "invalid_type" });
