// Decodes parts into blocks. Each block remembers its part, which is sent back unchanged in this
// protocol.
import type { Block, Media, Proof } from "../../../model/request.ts";
import type { JsonObject } from "../../../model/values.ts";
import { isSealedBytes } from "../../proof-envelope.ts";
import { isObject, asList, asObject, hasOnlyKeys, asText } from "../../json-values.ts";
import { rememberSource, ID, failMalformed } from "../constants.ts";

/** Assigns IDs to calls and results, which clients may omit. */
export interface CallTracking {
  recordCall(id: string | undefined, name: string): string;
  recordResult(id: string | undefined, name: string): string;
}

/** Placeholders that clients send in place of a missing signature. They prove nothing. */
const PLACEHOLDER_SIGNATURE =
  /^(?:skip_thought_signature_validator|context_engineering_is_the_way_to_go)$/;

export function blockOf(part: JsonObject, at: string, calls: CallTracking): Block {
  const signature = asText(part["thoughtSignature"]) ?? "";
  const sealed = isSealedBytes(signature);
  const proof =
    signature === "" || sealed || PLACEHOLDER_SIGNATURE.test(signature) ? undefined : signature;
  const block = read(part, at, calls, proof);
  // An envelope is opened here and never sent to Google.
  return sealed ? block : rememberSource(block, part);
}

function read(
  part: JsonObject,
  at: string,
  calls: CallTracking,
  signature: string | undefined,
): Block {
  const signed = (kind: string): { proof?: Proof } =>
    signature === undefined ? {} : { proof: { origin: ID, kind, data: signature } };
  const call = asObject(part["functionCall"]);
  if (call) return { ...functionCallBlock(call, at, calls), ...signed("part") };
  const response = asObject(part["functionResponse"]);
  if (response) return functionResultBlock(response, at, calls);
  const media = mediaOf(part);
  if (media) return { ...media, ...signed("part") };
  const partText = asText(part["text"]);
  const thought = part["thought"] === true;
  if (partText === undefined && !(hasOnlyKeys(part, ["thoughtSignature", "thought"]) && signature))
    return { type: "opaque", origin: ID, raw: part };
  if (thought || (!partText && signature !== undefined))
    return {
      type: "reasoning",
      ...(partText && { summary: [partText] }),
      ...signed(partText ? "words" : thought ? "after" : "empty"),
    };
  return { type: "text", text: partText!, ...signed("words") };
}

function functionCallBlock(
  call: JsonObject,
  at: string,
  calls: CallTracking,
): Block & { type: "call" } {
  const name = asText(call["name"]) || failMalformed(`${at}.functionCall.name`, "is required");
  const id = calls.recordCall(asText(call["id"]) || undefined, name);
  return {
    type: "call",
    id,
    name,
    tool: "function",
    args: JSON.stringify(call["args"] ?? {}),
  };
}

/**
 * Decodes a function result. `output` and `error` are the API's own names for the outcome. Any
 * other object is passed to the model as JSON.
 */
function functionResultBlock(of: JsonObject, at: string, calls: CallTracking): Block {
  const name = asText(of["name"]) || failMalformed(`${at}.functionResponse.name`, "is required");
  const response = asObject(of["response"]) ?? {};
  const error = onlyText(response, "error");
  const result =
    error ??
    onlyText(response, "output") ??
    onlyText(response, "result") ??
    // The AI SDK repeats the function name.
    (response["name"] === name ? onlyText({ ...response, name: undefined }, "content") : undefined);
  const words = result ?? (Object.keys(response).length > 0 ? JSON.stringify(response) : "");
  const media = asList(of["parts"]).flatMap((part): Block[] => {
    const block = isObject(part) ? mediaOf(part) : undefined;
    return block ? [rememberSource(block, part)] : [{ type: "opaque", origin: ID, raw: part }];
  });
  return {
    type: "result",
    callId: calls.recordResult(asText(of["id"]) || undefined, name),
    name,
    blocks: [...(words === "" ? [] : [{ type: "text" as const, text: words }]), ...media],
    isError: error !== undefined,
  };
}

const onlyText = (of: JsonObject, member: string): string | undefined =>
  hasOnlyKeys(of, [member]) ? asText(of[member]) : undefined;

const KINDS = ["image", "audio", "video"] as const;

function mediaOf(
  part: JsonObject,
): (Block & { type: "image" | "document" | "audio" | "video" }) | undefined {
  const inline = asObject(part["inlineData"]);
  const file = asObject(part["fileData"]);
  const mime = asText((inline ?? file)?.["mimeType"]);
  const media: Media | undefined = inline
    ? {
        ...(mime !== undefined && { mime }),
        base64: toStandardBase64(asText(inline["data"]) ?? ""),
      }
    : file && { ...(mime !== undefined && { mime }), url: asText(file["fileUri"]) ?? "" };
  if (!media) return undefined;
  const kind = KINDS.find((one) => mime?.startsWith(`${one}/`));
  // A URL without a type is treated as an image if its extension is one of an image, else as a
  // video that every model can watch.
  const usual = mime !== undefined ? "document" : file && !isPicture(media) ? "video" : "image";
  return { type: kind ?? usual, media };
}

const isPicture = (media: Media): boolean =>
  "url" in media && /\.(?:gif|jpe?g|png|webp)(?:[?#]|$)/i.test(media.url);

/**
 * Converts base64 to the standard alphabet. This protocol accepts both alphabets, others only one.
 */
const toStandardBase64 = (base64: string): string =>
  /[-_]/.test(base64) ? base64.replaceAll("-", "+").replaceAll("_", "/") : base64;
