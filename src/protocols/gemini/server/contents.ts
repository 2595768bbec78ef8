// Decodes a conversation into turns. Results refer to calls by ID. Some client helpers drop the
// IDs, and then results are matched by function name, in the order of the calls.
import type { Block, Turn, Media, Proof } from "../../../model/request.ts";
import type { Json, JsonObject } from "../../../model/values.ts";
import { isObject, asList, hasOnlyKeys, asText, ownEntry, asObject } from "../../json-values.ts";
import { rememberSource, digest, failMalformed, ID } from "../constants.ts";
import { TurnBlocks } from "./pending-proofs.ts";
import { isSealedBytes } from "../../proof-envelope.ts";

/** Members of a content other than its role and its parts. */
export interface ContentSource {
  more: JsonObject;
}

const ROLES: { readonly [role: string]: "user" | "assistant" } = {
  user: "user",
  function: "user",
  model: "assistant",
};

export function instructionsOf(content: unknown): Block[] {
  if (content === undefined || content === null) return [];
  if (!isObject(content)) return failMalformed("systemInstruction", "must be a content with parts");
  const calls = new CallTracker();
  return asList(content["parts"]).flatMap((part, i) => {
    const at = `systemInstruction.parts[${i}]`;
    return isObject(part) ? blockOf(part, at, calls) : failMalformed(at, "must be a part");
  });
}

interface PartialTurn {
  role: Turn["role"];
  blocks: TurnBlocks;
  more?: JsonObject;
}

/**
 * Decodes contents into turns. Consecutive contents of one role become one turn. Each function
 * result becomes its own turn.
 */
export function turnsOf(contents: unknown): Turn[] {
  if (!Array.isArray(contents)) return failMalformed("contents", "must be a list of contents");
  const turns: PartialTurn[] = [];
  const calls = new CallTracker();
  for (const [i, content] of (contents as readonly Json[]).entries()) {
    const at = `contents[${i}]`;
    if (!isObject(content)) return failMalformed(at, "must be a content with parts");
    const role = roleOf(content["role"], at);
    // A content with additional members starts a new turn.
    const more = hasOnlyKeys(content, ["role", "parts"]) ? undefined : extraFields(content);
    let open = more ? undefined : turns.at(-1);
    if (more) turns.push((open = { role, blocks: new TurnBlocks(), more }));
    if (role === "assistant" && (more || open?.role !== role)) calls.begin();
    for (const [k, part] of asList(content["parts"]).entries()) {
      const place = `${at}.parts[${k}]`;
      if (!isObject(part)) return failMalformed(place, "must be a part");
      const block = blockOf(part, place, calls);
      const who = block.type === "result" ? "tool" : role;
      if (open?.role !== who || who === "tool")
        turns.push((open = { role: who, blocks: new TurnBlocks() }));
      open.blocks.add(block, asText(part["thoughtSignature"]));
    }
  }
  return turns.map(({ role, blocks, more }) => {
    const turn: Turn = { role, blocks: blocks.all() };
    return more ? rememberSource(turn, { more } satisfies ContentSource) : turn;
  });
}

function roleOf(value: unknown, at: string): "user" | "assistant" {
  const role = ownEntry(ROLES, value ?? "user");
  return role ?? failMalformed(`${at}.role`, "must be user or model");
}

function extraFields({ role: _role, parts: _parts, ...more }: JsonObject): JsonObject {
  return more;
}

/** Tracks the calls of a conversation and their results. */
class CallTracker implements CallTracking {
  #made = 0;
  /**
   * IDs of calls of the last step that have no result yet. `#named` contains all calls of that step
   * by name.
   */
  #open = new Set<string>();
  #named = new Map<string, { ids: string[]; next: number }>();

  begin(): void {
    this.#open = new Set();
    this.#named = new Map();
  }

  recordCall(id: string | undefined, name: string): string {
    // The ID is derived from the position and name, so that the same conversation yields the same
    // IDs every time it is sent.
    const own = id ?? `call_${digest(`${this.#made}:${name}`, 24)}`;
    this.#made++;
    this.#open.add(own);
    const same = this.#named.get(name);
    if (same) same.ids.push(own);
    else this.#named.set(name, { ids: [own], next: 0 });
    return own;
  }

  recordResult(id: string | undefined, name: string): string {
    const own = id ?? this.#next(name) ?? `call_${digest(`none:${name}`, 24)}`;
    this.#open.delete(own);
    return own;
  }

  /** Returns the first call with this name that has no result yet. */
  #next(name: string): string | undefined {
    const same = this.#named.get(name);
    while (same && same.next < same.ids.length) {
      const id = same.ids[same.next++]!;
      if (this.#open.has(id)) return id;
    }
    return undefined;
  }
}

// Decodes parts into blocks. Each block keeps its part, which is sent back unchanged in this
// protocol.

/** Assigns IDs to calls and results, which clients may omit. */
interface CallTracking {
  recordCall(id: string | undefined, name: string): string;
  recordResult(id: string | undefined, name: string): string;
}

/** Placeholders that clients send in place of a missing signature. They prove nothing. */
const PLACEHOLDER_SIGNATURE =
  /^(?:skip_thought_signature_validator|context_engineering_is_the_way_to_go)$/;

function blockOf(part: JsonObject, at: string, calls: CallTracking): Block {
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
