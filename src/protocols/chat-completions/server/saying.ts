// What the client declared decides how it must be answered: by which names, in which form of call.
import type {
  AnswerContext,
  Json,
  JsonObject,
  ModelEvent,
  OpenBlock,
  Proof,
} from "../../../plugin/index.ts";
import { parseShallow } from "../../../lib/json.ts";
import { seal } from "../../envelope.ts";
import { unfitting } from "../../names.ts";
import { list, object, text } from "../../json.ts";
import { base64Of, urlOf } from "../../media.ts";
import { heldIn, ID } from "../words.ts";
import { SEALED } from "./reasoning.ts";

export interface ChatDeclarations {
  /** A tool's name as the client wrote it. */
  name(of: string): string;
  /** The client declared a freeform tool by that name. */
  custom(name: string): boolean;
  /** The client speaks the oldest form, with one call and no ids. */
  legacy: boolean;
}

export function declaredBy(body: AnswerContext["body"]): ChatDeclarations {
  const tools = list((body as JsonObject)["tools"]).map(object);
  const custom = new Set(tools.flatMap((t) => text(object(t?.["custom"])?.["name"]) ?? []));
  const names = [...tools.flatMap((t) => text(object(t?.["function"])?.["name"]) ?? []), ...custom];
  const functions = list((body as JsonObject)["functions"]);
  return {
    name: unfitting(() => names),
    custom: (name) => custom.has(name),
    legacy: tools.length === 0 && functions.length > 0,
  };
}

export type CallBlock = Extract<OpenBlock, { type: "call" }>;

/** The first piece of a call, or all of it. */
export function callWith(
  call: CallBlock,
  args: string,
  declared: ChatDeclarations,
  proof?: Proof,
): JsonObject {
  const name = declared.name(call.name);
  const extra = proof && extraOf(proof);
  return call.tool === "custom" || declared.custom(name)
    ? { id: call.id, type: "custom", custom: { name, input: args }, ...extra }
    : { id: call.id, type: "function", function: { name, arguments: args }, ...extra };
}

/** A freeform tool that upstream was told of as a function: its input stands inside the arguments. */
export function isWrapped(call: CallBlock, declared: ChatDeclarations): boolean {
  return call.tool === "function" && declared.custom(declared.name(call.name));
}

export function unwrapped(args: string): string {
  try {
    return text(object(parseShallow(args))?.["input"]) ?? args;
  } catch {
    return args;
  }
}

/** Native signatures bare, foreign ones in an envelope, in the one place of a call that clients send back. */
export function extraOf(proof: Proof): JsonObject {
  return proof.origin === ID && proof.kind === "extra_content"
    ? { extra_content: heldIn(proof) }
    : { extra_content: { google: { thought_signature: seal({ proof }) } } };
}

/** What must come back with reasoning: entries that clients echo unread. */
export function detailsOf(proof: Proof, said: string, summary: boolean): readonly Json[] {
  if (proof.origin === ID && proof.kind === "reasoning_details") return list(heldIn(proof));
  return [
    sealedDetail(
      seal({ proof, text: said === "" ? undefined : said, summary: summary || undefined }),
    ),
  ];
}

/** A signature on what was said. */
export function textDetail(proof: Proof): JsonObject {
  return proof.origin === ID && proof.kind === "extra_content"
    ? { extra_content: heldIn(proof) }
    : { reasoning_details: [sealedDetail(seal({ proof, of: "text" }))] };
}

const sealedDetail = (data: string): JsonObject => ({
  type: "reasoning.encrypted",
  data,
  format: SEALED,
});

/** Nested here, flat elsewhere; a citation without an address is another protocol's own affair. */
export function annotationOf(citation: Json): JsonObject | undefined {
  const c = object(citation);
  if (!c) return undefined;
  const type = text(c["type"]) ?? "";
  if (object(c[type])) return c;
  const url = text(c["url"]);
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
  to: AnswerContext,
): JsonObject | undefined {
  if (type === "image") {
    const url = urlOf(media, "image/png");
    return url === undefined ? undefined : { images: [{ type: "image_url", image_url: { url } }] };
  }
  const data = base64Of(media);
  if (data === undefined) return undefined;
  return { audio: { id: `audio_${to.id}`, data, transcript: "", expires_at: to.created + 3600 } };
}
