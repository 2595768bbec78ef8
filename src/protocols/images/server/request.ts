// A client's words in the common vocabulary, and back in this wire's.
import { unknownIn } from "../../strangers.ts";
import { fail } from "../../../model/error.ts";
import type { Feature } from "../../../model/facts.ts";
import type { ImageRequest } from "../../../model/request.ts";
import type { Body, JsonObject } from "../../../model/values.ts";
import type { CallContext, Survey } from "../../../plugin/protocol.ts";
import { featuresOf, look } from "../../look/index.ts";
import { multiplies, spending } from "../../spending.ts";
import { flag, number, object, present, text } from "../../json.ts";

export const ID = "images";

/** In the common vocabulary, under another name or the same. */
const COMMON = [
  "model",
  "prompt",
  "n",
  "size",
  "quality",
  "response_format",
  "stream",
  "partial_images",
  "background",
  "output_format",
  "output_compression",
  "seed",
  "user",
];

/** Documented here and nowhere else: they go back to this wire only. */
const OWN = [
  "moderation",
  "style",
  "safety_identifier",
  "complexity",
  "frame_count",
  "frame_duration_ms",
  "svg",
];

export function survey(body: Body): Survey {
  const named = look(body);
  const spent = spending(body, named, { output: undefined });
  const n = spent.n ?? 1;
  const features: Feature[] = [];
  if (body["stream"] === true) features.push("stream");
  if (n > 1) features.push("n");
  return {
    features: [...features, ...featuresOf(named)],
    ...(named.length > 0 && { named }),
    ...spent,
    n,
    size: sizeIn(body),
    quality: text(body["quality"]),
    // An address is made of bytes, or bytes are fetched, by the gateway: not while they pass.
    translate: body["response_format"] === "url",
  };
}

/** A host that reads sides and a host that reads a size may both get both: the larger picture is the one to pay for. */
function sizeIn(body: Body): string | undefined {
  const size = text(body["size"]);
  const [width, height] = [number(body["width"]), number(body["height"])];
  if (width === undefined || height === undefined) return size;
  const sides = `${Math.ceil(width)}x${Math.ceil(height)}`;
  return size === undefined || areaOf(sides) > areaOf(size) ? sides : size;
}

const areaOf = (size: string): number => {
  const [width = 0, height = 0] = size.split("x").map(Number);
  return width * height || 0;
};

/** All that this wire knows, in any dialect of it. */
export const knows = (field: string): boolean =>
  COMMON.includes(field) || OWN.includes(field) || multiplies(field);

export function request(body: Body): ImageRequest {
  const own = picked(body, (field) => OWN.includes(field));
  return present({
    kind: "image" as const,
    model: text(body["model"]) ?? "",
    prompt: text(body["prompt"]) ?? "",
    stream: flag(body["stream"]) ?? false,
    n: number(body["n"]) ?? 1,
    refs: [],
    want: body["response_format"] === "url" ? ("url" as const) : ("bytes" as const),
    size: text(body["size"]),
    quality: text(body["quality"]),
    background: text(body["background"]),
    format: text(body["output_format"]),
    compression: number(body["output_compression"]),
    seed: number(body["seed"]),
    partials: number(body["partial_images"]),
    user: text(body["user"]),
    rest: picked(body, (field) => !COMMON.includes(field) && !OWN.includes(field)),
    ext: Object.keys(own).length > 0 ? { [ID]: own } : {},
  });
}

/** A null is a field that was left out, to every SDK of this protocol. */
function picked(body: Body, wanted: (field: string) => boolean): JsonObject {
  return unknownIn(body, (field) => body[field] === null || !wanted(field));
}

/** As OpenAI has it; what a host says differently is the dialect's, in `prepare`, for both lanes alike. */
export function encode(r: ImageRequest, of: Pick<CallContext, "model" | "stream" | "lose">): Body {
  if (r.partials && !of.stream) of.lose("partial_images", "dropped");
  if (r.refs.length > 0 || r.mask)
    fail("unsupported", "This endpoint makes images from words alone, not from other images.", {
      param: "image",
    });
  return present({
    model: of.model,
    prompt: r.prompt,
    n: r.n === 1 ? undefined : r.n,
    size: r.size,
    quality: r.quality,
    background: r.background,
    output_format: r.format,
    output_compression: r.compression,
    seed: r.seed,
    user: r.user,
    response_format: r.want === "url" ? "url" : "b64_json",
    stream: of.stream ? true : undefined,
    partial_images: of.stream ? r.partials : undefined,
    ...object(r.ext[ID]),
  });
}
