// Content parts, as the common vocabulary has them. What is newer than us stays whole, as an opaque block.
import { fail } from "../../../model/error.ts";
import type { Block, Json, JsonObject, Opt } from "../../../plugin/index.ts";
import { list, object, present, text } from "../../json.ts";
import { mediaOf } from "../../media.ts";
import { ID } from "../words.ts";

/** A string is one text; null and nothing are no text at all. */
export function blocksOf(content: Opt<Json>, at: string): Block[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  if (content === undefined || content === null) return [];
  if (!Array.isArray(content)) return malformed(at, "must be a string or a list of parts");
  return content.map((part: Json, i) =>
    typeof part === "string" ? { type: "text", text: part } : blockOf(part, `${at}[${i}]`),
  );
}

function blockOf(raw: Json, at: string): Block {
  const part = object(raw);
  const type = text(part?.["type"]);
  if (!part || type === undefined) return malformed(at, "must be a part with a type");
  const cache = part["cache_control"] ?? part["prompt_cache_breakpoint"] ?? undefined;
  return present({ ...meaning(part, type, at), cache }) as Block;
}

function meaning(part: JsonObject, type: string, at: string): Block {
  switch (type) {
    case "text":
    case "input_text":
    case "output_text":
      return { type: "text", text: need(part, "text", at) };
    case "refusal":
      return { type: "refusal", text: need(part, "refusal", at) };
    case "image_url":
    case "input_image": {
      const image = object(part["image_url"]);
      const url = text(part["image_url"]) ?? text(image?.["url"]);
      if (url === undefined) return malformed(`${at}.image_url.url`, "must be a string");
      const detail = text(image?.["detail"]) ?? text(part["detail"]);
      return present({ type: "image" as const, media: mediaOf(url), detail });
    }
    case "image":
      return pasted(part) ?? { type: "opaque", origin: ID, raw: part };
    case "input_audio": {
      const audio = object(part["input_audio"]);
      const base64 = text(audio?.["data"]);
      if (base64 === undefined) return malformed(`${at}.input_audio.data`, "must be a string");
      const mime = `audio/${text(audio?.["format"]) ?? "wav"}`;
      return { type: "audio", media: { mime, base64 } };
    }
    case "video_url":
    case "audio_url": {
      const url = text(part[type]) ?? text(object(part[type])?.["url"]);
      if (url === undefined) return malformed(`${at}.${type}.url`, "must be a string");
      return { type: type === "video_url" ? "video" : "audio", media: mediaOf(url) };
    }
    case "file":
      return fileOf(part, at);
    case "thinking":
      return { type: "reasoning", text: thoughtOf(part["thinking"]) };
    default:
      return { type: "opaque", origin: ID, raw: part };
  }
}

/** An image as another protocol writes it; people paste them. */
function pasted(part: JsonObject): Block | undefined {
  const source = object(part["source"]);
  const base64 = text(source?.["data"]);
  const url = text(source?.["url"]);
  if (base64 !== undefined)
    return { type: "image", media: present({ mime: text(source?.["media_type"]), base64 }) };
  return url === undefined ? undefined : { type: "image", media: mediaOf(url) };
}

function fileOf(part: JsonObject, at: string): Block {
  const file = object(part["file"]);
  const data = text(file?.["file_data"]);
  const fileId = text(file?.["file_id"]);
  const title = text(file?.["filename"]);
  if (data !== undefined) {
    const media = mediaOf(data);
    // Bare base64, without the address around it, is common enough.
    const bytes = "url" in media && !/^https?:/i.test(data);
    return present({
      type: "document" as const,
      media: bytes ? { mime: "application/pdf", base64: data } : media,
      title,
    });
  }
  if (fileId === undefined) return malformed(`${at}.file`, "needs file_data or file_id");
  return present({ type: "document" as const, media: { fileId, origin: ID }, title });
}

/** Some imitators write reasoning as a list of texts inside a part. */
export function thoughtOf(thinking: Opt<Json>): string {
  if (typeof thinking === "string") return thinking;
  return list(thinking)
    .map((t) => text(object(t)?.["text"]) ?? "")
    .join("");
}

const need = (part: JsonObject, key: string, at: string): string =>
  text(part[key]) ?? malformed(`${at}.${key}`, "must be a string");

export const malformed = (at: string, what: string): never =>
  fail("invalid", `${at} ${what}.`, { param: at, code: "invalid_type" });
