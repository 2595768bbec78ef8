// A part as a block. Each remembers the part that it was read from, which goes back to this wire as it is.
import type { Block, Media, Proof } from "../../../model/request.ts";
import type { JsonObject } from "../../../model/values.ts";
import { isSealedBytes } from "../../envelope.ts";
import { isObject, list, object, only, text } from "../../json.ts";
import { came, ID, malformed } from "../words.ts";

/** Which call is meant, where a client need not say it. */
export interface Calling {
  made(id: string | undefined, name: string): string;
  answered(id: string | undefined, name: string): string;
}

/** It stands in for a signature that a client does not have: it proves nothing. */
const NO_PROOF = /^(?:skip_thought_signature_validator|context_engineering_is_the_way_to_go)$/;

export function blockOf(part: JsonObject, at: string, calls: Calling): Block {
  const signature = text(part["thoughtSignature"]) ?? "";
  const sealed = isSealedBytes(signature);
  const proof = signature === "" || sealed || NO_PROOF.test(signature) ? undefined : signature;
  const block = read(part, at, calls, proof);
  // An envelope is opened here, and never goes to Google.
  return sealed ? block : came(block, part);
}

function read(part: JsonObject, at: string, calls: Calling, signature: string | undefined): Block {
  const signed = (kind: string): { proof?: Proof } =>
    signature === undefined ? {} : { proof: { origin: ID, kind, data: signature } };
  const call = object(part["functionCall"]);
  if (call) return { ...called(call, at, calls), ...signed("part") };
  const response = object(part["functionResponse"]);
  if (response) return answered(response, at, calls);
  const media = mediaOf(part);
  if (media) return { ...media, ...signed("part") };
  const said = text(part["text"]);
  const thought = part["thought"] === true;
  if (said === undefined && !(only(part, ["thoughtSignature", "thought"]) && signature))
    return { type: "opaque", origin: ID, raw: part };
  if (thought || (!said && signature !== undefined))
    return {
      type: "reasoning",
      ...(said && { summary: [said] }),
      ...signed(said ? "words" : thought ? "after" : "empty"),
    };
  return { type: "text", text: said!, ...signed("words") };
}

function called(call: JsonObject, at: string, calls: Calling): Block & { type: "call" } {
  const name = text(call["name"]) || malformed(`${at}.functionCall.name`, "is required");
  const id = calls.made(text(call["id"]) || undefined, name);
  return { type: "call", id, name, tool: "function", args: JSON.stringify(call["args"] ?? {}) };
}

/** `output` and `error` are the API's own names for what came of a call; anything else a function says is shown as it is. */
function answered(of: JsonObject, at: string, calls: Calling): Block {
  const name = text(of["name"]) || malformed(`${at}.functionResponse.name`, "is required");
  const response = object(of["response"]) ?? {};
  const error = onlyText(response, "error");
  const said =
    error ??
    onlyText(response, "output") ??
    onlyText(response, "result") ??
    // The AI SDK names the function once more.
    (response["name"] === name ? onlyText({ ...response, name: undefined }, "content") : undefined);
  const words = said ?? (Object.keys(response).length > 0 ? JSON.stringify(response) : "");
  const media = list(of["parts"]).flatMap((part): Block[] => {
    const block = isObject(part) ? mediaOf(part) : undefined;
    return block ? [came(block, part)] : [{ type: "opaque", origin: ID, raw: part }];
  });
  return {
    type: "result",
    callId: calls.answered(text(of["id"]) || undefined, name),
    name,
    blocks: [...(words === "" ? [] : [{ type: "text" as const, text: words }]), ...media],
    isError: error !== undefined,
  };
}

const onlyText = (of: JsonObject, member: string): string | undefined =>
  only(of, [member]) ? text(of[member]) : undefined;

const KINDS = ["image", "audio", "video"] as const;

function mediaOf(
  part: JsonObject,
): (Block & { type: "image" | "document" | "audio" | "video" }) | undefined {
  const inline = object(part["inlineData"]);
  const file = object(part["fileData"]);
  const mime = text((inline ?? file)?.["mimeType"]);
  const media: Media | undefined = inline
    ? { ...(mime !== undefined && { mime }), base64: plainly(text(inline["data"]) ?? "") }
    : file && { ...(mime !== undefined && { mime }), url: text(file["fileUri"]) ?? "" };
  if (!media) return undefined;
  const kind = KINDS.find((one) => mime?.startsWith(`${one}/`));
  // An address without a type is a video that every model watches, or a picture.
  const usual = mime !== undefined ? "document" : file && !isPicture(media) ? "video" : "image";
  return { type: kind ?? usual, media };
}

const isPicture = (media: Media): boolean =>
  "url" in media && /\.(?:gif|jpe?g|png|webp)(?:[?#]|$)/i.test(media.url);

/** Bytes are written in either alphabet here; other wires know one. */
const plainly = (base64: string): string =>
  /[-_]/.test(base64) ? base64.replaceAll("-", "+").replaceAll("_", "/") : base64;
