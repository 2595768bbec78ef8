// What the client declared decides how it must be answered: by which names, in which form of call.
import type {
  ResponseContext,
  Json,
  JsonObject,
  ModelEvent,
  OpenBlock,
  Proof,
} from "../../../plugin/index.ts";
import { parseShallow } from "../../../lib/json/json-scanner.ts";
import { seal } from "../../proof-envelope.ts";
import { createNameRestorer } from "../../tool-names.ts";
import { asList, asObject, asText } from "../../json-values.ts";
import { toBase64, toUrl } from "../../media-url.ts";
import { proofContent, ID } from "../constants.ts";
import { SEALED_FORMAT } from "./reasoning.ts";

export interface ChatDeclarations {
  /** A tool's name as the client wrote it. */
  name(of: string): string;
  /** The client declared a freeform tool by that name. */
  isCustomTool(name: string): boolean;
  /** The client speaks the oldest form, with one call and no ids. */
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

/** The first piece of a call, or all of it. */
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

/** A freeform tool that upstream was told of as a function: its input stands inside the arguments. */
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

/** Native signatures bare, foreign ones in an envelope, in the one place of a call that clients send back. */
export function callExtra(proof: Proof): JsonObject {
  return proof.origin === ID && proof.kind === "extra_content"
    ? { extra_content: proofContent(proof) }
    : { extra_content: { google: { thought_signature: seal({ proof }) } } };
}

/** What must come back with reasoning: entries that clients echo unread. */
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

/** A signature on what was said. */
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

/** Nested here, flat elsewhere; a citation without an address is another protocol's own affair. */
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

/** Pictures among the answer, as aggregators have taught clients to look for them; sound has a field of its own. */
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
