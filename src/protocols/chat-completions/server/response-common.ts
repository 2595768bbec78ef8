// Reads the client's tool declarations, which determine the tool names and the form of calls in the
// response.
import { parseShallow } from "../../../lib/json/json-scanner.ts";
import type { Fault } from "../../../model/error.ts";
import type { JsonObject } from "../../../model/values.ts";
import type { ResponseContext, Json, ModelEvent, OpenBlock, Proof } from "../../../plugin/index.ts";
import type { ErrorResponse } from "../../../plugin/protocol.ts";
import { proofContent, ID } from "../constants.ts";
import { SEALED_FORMAT } from "./reasoning.ts";
import { openaiError } from "../../failure/openai-error.ts";
import { asList, asObject, asText } from "../../json-values.ts";
import { toBase64, toUrl } from "../../media-url.ts";
import { seal } from "../../proof-envelope.ts";
import { createNameRestorer } from "../../tool-calls.ts";

export interface ChatDeclarations {
  /** Returns a tool's name as the client wrote it. */
  name(of: string): string;
  /** Whether the client declared a freeform tool with this name. */
  isCustomTool(name: string): boolean;
  /** Whether the client uses the legacy form, with one call and no IDs. */
  usesLegacyCalls: boolean;
}

export function readDeclarations(body: ResponseContext["body"]): ChatDeclarations {
  const tools = asList((body as JsonObject)["tools"]).map(asObject);
  const custom = new Set(tools.flatMap((t) => asText(asObject(t?.["custom"])?.["name"]) ?? []));
  const names = [
    ...tools.flatMap((t) => asText(asObject(t?.["function"])?.["name"]) ?? []),
    ...custom,
  ];
  const functions = asList((body as JsonObject)["functions"]);
  return {
    name: createNameRestorer(() => names),
    isCustomTool: (name) => custom.has(name),
    usesLegacyCalls: tools.length === 0 && functions.length > 0,
  };
}

export type CallBlock = Extract<OpenBlock, { type: "call" }>;

/** Returns the first piece of a call, or the whole call. */
export function toolCallDelta(
  call: CallBlock,
  args: string,
  declared: ChatDeclarations,
  proof?: Proof,
): JsonObject {
  const name = declared.name(call.name);
  const extra = proof && callExtra(proof);
  return call.tool === "custom" || declared.isCustomTool(name)
    ? { id: call.id, type: "custom", custom: { name, input: args }, ...extra }
    : { id: call.id, type: "function", function: { name, arguments: args }, ...extra };
}

/**
 * Whether a freeform tool was sent to the provider as a function. Its input is then inside the
 * arguments.
 */
export function isWrapped(call: CallBlock, declared: ChatDeclarations): boolean {
  return call.tool === "function" && declared.isCustomTool(declared.name(call.name));
}

export function unwrapped(args: string): string {
  try {
    return asText(asObject(parseShallow(args))?.["input"]) ?? args;
  } catch {
    return args;
  }
}

/**
 * Returns the field of a call that carries its signature and that clients send back. Signatures of
 * this protocol are sent as they are. Signatures of other protocols are sealed in an envelope.
 */
export function callExtra(proof: Proof): JsonObject {
  return proof.origin === ID && proof.kind === "extra_content"
    ? { extra_content: proofContent(proof) }
    : { extra_content: { google: { thought_signature: seal({ proof }) } } };
}

/**
 * Returns the `reasoning_details` entries that must come back with reasoning. Clients send them
 * back unread.
 */
export function reasoningDetails(
  proof: Proof,
  textContent: string,
  summary: boolean,
): readonly Json[] {
  if (proof.origin === ID && proof.kind === "reasoning_details") return asList(proofContent(proof));
  return [
    sealedDetail(
      seal({
        proof,
        text: textContent === "" ? undefined : textContent,
        summary: summary || undefined,
      }),
    ),
  ];
}

/** Returns the fields that carry the signature of a text. */
export function textDetail(proof: Proof): JsonObject {
  return proof.origin === ID && proof.kind === "extra_content"
    ? { extra_content: proofContent(proof) }
    : { reasoning_details: [sealedDetail(seal({ proof, precedingBlock: "text" }))] };
}

const sealedDetail = (data: string): JsonObject => ({
  type: "reasoning.encrypted",
  data,
  format: SEALED_FORMAT,
});

/**
 * Converts a citation to the nested form of this protocol. Returns undefined for a citation without
 * a URL, which only another protocol can represent.
 */
export function annotationOf(citation: Json): JsonObject | undefined {
  const c = asObject(citation);
  if (!c) return undefined;
  const type = asText(c["type"]) ?? "";
  if (asObject(c[type])) return c;
  const url = asText(c["url"]);
  if (url === undefined) return undefined;
  return {
    type: "url_citation",
    url_citation: {
      start_index: c["start_index"] ?? 0,
      end_index: c["end_index"] ?? 0,
      title: c["title"] ?? "",
      url,
    },
  };
}

/**
 * Returns generated media as a delta. Images are in the `images` field that aggregators introduced.
 * Audio has its own field.
 */
export function mediaDelta(
  type: "image" | "audio",
  media: Extract<ModelEvent, { type: "media" }>["media"],
  to: ResponseContext,
): JsonObject | undefined {
  if (type === "image") {
    const url = toUrl(media, "image/png");
    return url === undefined ? undefined : { images: [{ type: "image_url", image_url: { url } }] };
  }
  const data = toBase64(media);
  if (data === undefined) return undefined;
  return { audio: { id: `audio_${to.id}`, data, transcript: "", expires_at: to.created + 3600 } };
}

/** Encodes errors in this protocol's form. */
export const faultBody = (of: Fault): JsonObject => ({ error: openaiError(of) });

export const encodeFault = (of: Fault): ErrorResponse => ({ body: faultBody(of) });

/**
 * Returns an error as a stream event that does not have the form of a chunk, because SDKs then
 * throw. No `[DONE]` follows, because the response is not complete.
 */
export const faultChunk = (of: Fault): string => `data: ${JSON.stringify(faultBody(of))}\n\n`;

// Numbers the list entries of a stream. Some clients assemble lists by the index of each entry, and
// throw if an entry has no index.

/**
 * Returns a function that numbers the entries of a delta's lists. Numbers continue across deltas
 * for each list name.
 */
export function createListIndexer(): (delta: JsonObject) => JsonObject {
  const counts = new Map<string, number>();
  const placed = (key: string, entries: readonly Json[]): Json[] => {
    const from = counts.get(key) ?? 0;
    counts.set(key, from + entries.length);
    return entries.map((entry, i) => {
      const fields = asObject(entry);
      return fields ? { ...fields, index: from + i } : entry;
    });
  };
  return (delta) =>
    Object.fromEntries(
      Object.entries(delta).map(([key, value]) => [
        key,
        Array.isArray(value) ? placed(key, value as readonly Json[]) : value,
      ]),
    );
}
