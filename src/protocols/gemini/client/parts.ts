// Encodes blocks as parts. Content that this protocol cannot represent is rejected if the model
// would see content that differs from the client's content. If the model would only receive less
// information, the loss is reported.
import { parseShallow } from "../../../lib/json/json-scanner.ts";
import { fail } from "../../../model/error.ts";
import type { Block, Media, Proof } from "../../../model/request.ts";
import type { JsonObject, Opt } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { toFunctionName, failUnsupported, type GeminiEncoding } from "./encoding-context.ts";
import { sourceOf, ID } from "../constants.ts";
import { familyOf } from "../dialect.ts";
import { ownEntry, asObject, asText } from "../../json-values.ts";
import { isStoredFile } from "../../references/index.ts";
import { mimeOf } from "../../sniff-image.ts";
import { parseToolArguments } from "../../tool-calls.ts";

export function partsOf(
  block: Block,
  role: "user" | "model",
  at: string,
  e: GeminiEncoding,
): JsonObject[] {
  const own = sourceOf<JsonObject>(block);
  if (own) return own["text"] === "" && !own["thoughtSignature"] ? [] : [own];
  if (block.cache !== undefined) e.of.reportLoss("cache_control", "dropped");
  switch (block.type) {
    case "text":
      if (block.citations?.length) e.of.reportLoss("citations", "dropped");
      return textParts({ text: block.text }, block.proof, e);
    case "refusal":
      if (block.text === "") return [];
      e.of.reportLoss(`${at}.refusal`, "approximated", "refusal_as_text");
      return [{ text: block.text }];
    case "reasoning":
      return role === "model" ? thoughtParts(block, e) : [];
    case "image":
      if (block.detail !== undefined && block.detail !== "auto")
        e.of.reportLoss("image_url.detail", "dropped");
      return [withSignature(mediaTo(block.media, "image/png", at, e), block.proof, e)];
    case "audio":
      return [mediaTo(block.media, "audio/wav", at, e)];
    case "video":
      return [mediaTo(block.media, "video/mp4", at, e)];
    case "document":
      for (const field of ["title", "context", "cite"] as const)
        if (block[field]) e.of.reportLoss(`document.${field}`, "dropped");
      return [mediaTo(block.media, "application/pdf", at, e)];
    case "call":
      return [withSignature({ functionCall: callTo(block, at, e) }, block.proof, e)];
    case "result":
      return resultTo(block, at, e);
    case "opaque":
      return opaqueTo(block, role, at, e);
  }
}

/**
 * Returns a text with its signature, which is on the text or on an empty part after it. Returns no
 * part if there is neither text nor signature.
 */
function textParts(part: JsonObject, proof: Opt<Proof>, e: GeminiEncoding): JsonObject[] {
  const thoughtSignature = signatureOf(proof, e);
  if (!thoughtSignature) return part["text"] === "" ? [] : [part];
  if (part["text"] === "" || proof!.kind !== "after") return [{ ...part, thoughtSignature }];
  return [part, { ...part, text: "", thoughtSignature }];
}

/**
 * Returns the parts of reasoning. Only signed reasoning must be sent back. The model would not read
 * a summary of its reasoning.
 */
function thoughtParts(
  { proof, text, summary }: Extract<Block, { type: "reasoning" }>,
  e: GeminiEncoding,
): JsonObject[] {
  if (!signatureOf(proof, e)) return [];
  if (proof!.kind === "empty") return textParts({ text: "" }, proof, e);
  const thoughtText = text ?? summary?.join("\n\n") ?? "";
  return textParts({ text: thoughtText, thought: true }, proof, e);
}

function mediaTo(media: Media, usual: string, at: string, e: GeminiEncoding): JsonObject {
  if ("fileId" in media) return failUnsupported("A file ID", at, "foreign_file_id");
  if ("url" in media) {
    if (!e.traits.fetchesUrls && !isVideoPage(media.url))
      return failUnsupported("A file URL", at, "unsupported_media_source");
    const mimeType = media.mime ?? typeOf(media.url);
    return {
      fileData: { ...(mimeType && { mimeType }), fileUri: requirePublicUrl(media.url, at, e.of) },
    };
  }
  const normalizedType = media.mime?.toLowerCase().replace("image/jpg", "image/jpeg");
  const mimeType = normalizedType ?? (usual === "image/png" ? mimeOf(media) : usual);
  const data = "base64" in media ? media.base64 : media.bytes.toString("base64");
  return { inlineData: { mimeType, data } };
}

/**
 * Whether a URL is a YouTube video, which every model can watch, even if it cannot fetch other
 * URLs.
 */
const isVideoPage = (url: string): boolean =>
  /^https:\/\/(?:www\.)?youtu(?:be\.com|\.be)\//i.test(url);

const TYPES: Readonly<Record<string, string>> = {
  gif: "image/gif",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  mp3: "audio/mp3",
  mp4: "video/mp4",
  pdf: "application/pdf",
  png: "image/png",
  txt: "text/plain",
  wav: "audio/wav",
  webm: "video/webm",
  webp: "image/webp",
};

/**
 * Maximum length, in characters, of a URL whose file extension is parsed. A longer URL contains
 * more than a file name.
 */
const LONGEST = 8_192;

/** Returns the MIME type that the file extension of a URL suggests. */
function typeOf(url: string): string | undefined {
  const path = url.length > LONGEST ? undefined : URL.parse(url)?.pathname;
  return ownEntry(TYPES, /\.([a-z0-9]{1,8})$/i.exec(path ?? "")?.[1]?.toLowerCase());
}

function callTo(
  block: Extract<Block, { type: "call" }>,
  at: string,
  e: GeminiEncoding,
): JsonObject {
  const args = block.tool === "custom" ? { input: block.args } : parseToolArguments(block.args);
  if (args === undefined)
    return fail(
      "unsupported",
      `The arguments of the call ${block.id} to ${block.name} are not a JSON object.`,
      { param: at, code: "invalid_tool_arguments" },
    );
  return { ...(e.traits.callIds && { id: block.id }), name: toFunctionName(block.name, e), args };
}

/** Encodes a function result, which is an object. Its text is in the member `output` or `error`. */
function resultTo(
  block: Extract<Block, { type: "result" }>,
  at: string,
  e: GeminiEncoding,
): JsonObject[] {
  const words: string[] = [];
  const media: JsonObject[] = [];
  for (const inner of block.blocks)
    for (const part of partsOf(inner, "user", at, e))
      if (typeof part["text"] === "string") words.push(part["text"]);
      else media.push(part);
  const name = e.functionNames.get(block.callId) ?? block.name ?? block.callId;
  const resultText = words.join("\n");
  const inside = e.traits.toolMedia && media.length > 0;
  if (!inside && media.length > 0) e.of.reportLoss(at, "approximated", "tool_image_moved");
  const response: JsonObject = {
    ...(e.traits.callIds && { id: block.callId }),
    name: toFunctionName(name, e),
    response: block.isError ? { error: resultText } : { output: resultText },
    ...(inside && { parts: media }),
  };
  return [{ functionResponse: response }, ...(inside ? [] : media)];
}

function opaqueTo(
  block: Extract<Block, { type: "opaque" }>,
  role: "user" | "model",
  at: string,
  e: GeminiEncoding,
): JsonObject[] {
  const raw = asObject(block.raw);
  if (block.origin === ID && raw) return [raw];
  if (block.text) {
    e.of.reportLoss(`${at}.${block.origin}`, "approximated", "shown_as_text");
    return [{ text: block.text }];
  }
  // A call of another vendor's hosted tool is history. The response after the call contains the
  // outcome of the call.
  if (role === "model") {
    e.of.reportLoss(`${at}.${block.origin}`, "dropped", "hosted_history");
    return [];
  }
  return failUnsupported("A content part that is specific to another protocol", at);
}

// Checks file URLs. Stored files of an account can be read with its key, and all clients share the
// gateway's key.

/**
 * Returns the URL unchanged if the provider may fetch it for any client. Throws if it is a stored
 * file.
 */
export function requirePublicUrl(
  url: string,
  param: string,
  of: Pick<CallContext, "stateMode">,
): string {
  if (of.stateMode !== "relay" && isStoredFile(url))
    failUnsupported("A file that Google stores for an account", param, "state_unsupported");
  return url;
}

// Sends signatures back to the model that created them, on the same part. Without them, newer
// models reject their own calls.

/** Documented placeholder for the signature of a call that another model made. */
const SKIP_VALIDATOR = "skip_thought_signature_validator";

/**
 * Returns the signature of a part. Returns undefined if another provider or another model family
 * signed it.
 */
function signatureOf(proof: Opt<Proof>, e: GeminiEncoding): string | undefined {
  if (!proof) return undefined;
  if (proof.origin !== ID) return compatibleSignature(proof);
  const [made, requested] = [familyOf(proof.model), familyOf(e.of.model)];
  return made !== undefined && requested !== undefined && made !== requested
    ? undefined
    : proof.data;
}

/**
 * Returns a signature from Google's chat completions API, which issues the same signatures in a
 * different field.
 */
function compatibleSignature(proof: Proof): string | undefined {
  if (proof.origin !== "chat-completions" || proof.kind !== "extra_content") return undefined;
  try {
    const google = asObject(asObject(parseShallow(proof.data))?.["google"]);
    return asText(google?.["thought_signature"]) || undefined;
  } catch {
    return undefined;
  }
}

function withSignature(part: JsonObject, proof: Opt<Proof>, e: GeminiEncoding): JsonObject {
  const signature = signatureOf(proof, e);
  return signature ? { ...part, thoughtSignature: signature } : part;
}

/**
 * Adds the placeholder to the first call of a step, which must be signed. The signature is missing
 * if another model made the call or if the client lost it.
 */
export function withRequiredSignatures(
  parts: readonly JsonObject[],
  e: GeminiEncoding,
): readonly JsonObject[] {
  if (!e.traits.signatures) return parts;
  const first = parts.findIndex((part) => "functionCall" in part);
  if (first < 0 || "thoughtSignature" in parts[first]!) return parts;
  return parts.with(first, { ...parts[first], thoughtSignature: SKIP_VALIDATOR });
}
