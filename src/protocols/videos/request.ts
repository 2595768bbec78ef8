// Decodes OpenAI's request for a video, which is a form or JSON.
import type { Media, VideoRequest } from "../../model/request.ts";
import { fail } from "../../model/error.ts";
import { isFilePart, type Body, type Field, type Opt } from "../../model/values.ts";
import { asObject, omitUndefined } from "../json-values.ts";
import { unknownTopLevelFields } from "../unknown-fields.ts";

const FIELDS: readonly string[] = ["model", "prompt", "seconds", "size", "input_reference", "user"];
const MAX_PROMPT = 32_000;
const MAX_SECONDS = 3_600;
const SIZE = /^(?:\d{2,5}x\d{2,5}|\d{3,4}p|[248]k)$/;
const DATA_URL = /^data:(image\/[\w.+-]{1,64});base64,/;

/** Decodes a request for a video. Throws the error for the client if a field is not valid. */
export function decodeVideoRequest(body: Body): VideoRequest {
  const unreadable = Object.entries(body).find(
    ([name, value]) => name !== "input_reference" && hasFile(value),
  );
  if (unreadable) fail("invalid", `${unreadable[0]} must not be a file.`, { param: unreadable[0] });
  return omitUndefined({
    operation: "video" as const,
    model: readText(body, "model", 512),
    stream: false,
    prompt: readPrompt(body),
    seconds: readSeconds(body["seconds"]),
    size: readSize(body["size"]),
    image: readImage(body["input_reference"]),
    user: typeof body["user"] === "string" ? body["user"] : undefined,
    rest: unknownTopLevelFields(body, (name) => body[name] === null || FIELDS.includes(name)),
    ext: {},
  });
}

const hasFile = (value: Opt<Field>): boolean =>
  isFilePart(value) || (Array.isArray(value) && value.some(isFilePart));

/** Reads the prompt of a request for a video. */
export const readPrompt = (body: Body): string => readText(body, "prompt", MAX_PROMPT);

function readText(body: Body, name: string, maxLength: number): string {
  const value = body[name];
  if (typeof value !== "string" || value === "" || value.length > maxLength)
    return fail("invalid", `${name} must be text of 1 to ${maxLength} characters.`, {
      param: name,
    });
  return value;
}

function readSeconds(value: Opt<Field>): number | undefined {
  if (value === undefined || value === null) return undefined;
  const seconds =
    typeof value === "string" && /^\d{1,4}(?:\.\d{1,3})?$/.test(value) ? Number(value) : value;
  if (typeof seconds === "number" && seconds > 0 && seconds <= MAX_SECONDS) return seconds;
  return fail("invalid", `seconds must be a number from 1 to ${MAX_SECONDS}.`, {
    param: "seconds",
  });
}

function readSize(value: Opt<Field>): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string" && SIZE.test(value)) return value;
  return fail("invalid", 'size must be "<width>x<height>", such as "1280x720".', {
    param: "size",
  });
}

function readImage(value: Opt<Field>): Media | undefined {
  if (value === undefined || value === null) return undefined;
  const first: unknown = Array.isArray(value) && value.length === 1 ? value[0] : value;
  if (isFilePart(first)) return { bytes: first.data, mime: first.mime };
  const { image_url: url, file_id: file } = asObject(first as never) ?? {};
  if (file !== undefined)
    return fail("unsupported", "Stored files are not supported here. Send the image itself.", {
      param: "input_reference",
    });
  if (typeof url !== "string")
    return fail("invalid", "input_reference must be an image file or an object with image_url.", {
      param: "input_reference",
    });
  const mime = DATA_URL.exec(url)?.[1];
  if (mime !== undefined) return { base64: url.slice(url.indexOf(",") + 1), mime };
  if (url.startsWith("https://")) return { url };
  return fail("invalid", "image_url must be an https URL or a data URL of an image.", {
    param: "input_reference",
  });
}
