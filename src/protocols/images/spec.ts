// Fields, dialects, and usage that both halves of the images protocol share.
import type { UsageReport } from "../../model/event.ts";
import type { Feature } from "../../model/facts.ts";
import { areaOf } from "../../model/operations/image-operation.ts";
import type { Usage } from "../../model/usage.ts";
import { isFilePart, type Body, type JsonObject, type Opt } from "../../model/values.ts";
import type { FieldAllowlist } from "../../plugin/index.ts";
import type { RequestFacts } from "../../plugin/references.ts";
import { analyzeCost } from "../cost-analysis.ts";
import {
  isObject,
  isTruthyFlag,
  parseNumber,
  asText,
  asNumber,
  asObject,
  omitUndefined,
} from "../json-values.ts";
import { valueFields, referencedFeatures, findReferences } from "../references/index.ts";
import { isMultiplierField } from "../requested-amounts.ts";
import type { ImageHead } from "../sniff-image.ts";

/** ID of this protocol and its known fields. */
export const ID = "images";

/** Action of routes that edit images. Only endpoints with a path of this name are called. */
export const EDITS = "edits";

/** Fields that the common form can represent. */
export const COMMON_FIELDS: readonly string[] = [
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

/** Fields that contain input images. */
export const IMAGE_FIELDS: readonly string[] = ["image", "images", "mask"];

/** Fields that only this protocol documents. They are sent back only in this protocol. */
export const PROTOCOL_FIELDS: readonly string[] = [
  "input_fidelity",
  "moderation",
  "style",
  "safety_identifier",
  "complexity",
  "frame_count",
  "frame_duration_ms",
  "svg",
];

/** Whether this protocol has a field, in any dialect. */
export const knowsField = (field: string): boolean =>
  COMMON_FIELDS.includes(field) ||
  IMAGE_FIELDS.includes(field) ||
  PROTOCOL_FIELDS.includes(field) ||
  isMultiplierField(field);

/**
 * Describes how backends that speak this protocol differ. It is plain data, so that a provider can
 * be a row. `models` describes differences between the models of one provider. Unset options mean
 * the behavior that compatible backends have in common.
 */
export interface ImageTraits {
  /**
   * How image bytes are requested. Default: `b64_json`.
   *
   * - `b64_json`, `base64`: with this value of `response_format`
   * - `bytes`: bytes are always returned, and `response_format` is rejected with an error
   * - `url`: not possible, every image is returned as a URL
   */
  responseFormat?: "b64_json" | "base64" | "bytes" | "url";
  /**
   * How the size is sent. Default: `wxh`.
   *
   * - `wxh`: in `size`
   * - `width_height`: in `width` and `height`
   * - `ratio`: in `aspect_ratio`, as the nearest of `ratios`
   */
  size?: "wxh" | "width_height" | "ratio";
  /** Supported aspect ratios, for example "16:9". Default: any. */
  ratios?: readonly string[];
  /**
   * With `size: "ratio"`: values of `resolution`, each with the longest side in pixels that it
   * covers.
   */
  resolutions?: readonly (readonly [word: string, upTo: number])[];
  /** Values of `quality` to rename, for example `{ hd: "high" }`. */
  qualityNames?: { readonly [quality: string]: string };
  /** Maximum number of images per request. */
  maxImages?: number;
  /**
   * Top-level fields that the backend rejects with an error. They are dropped, and the client
   * receives a warning.
   */
  dropFields?: readonly string[];
}

export interface ImageDialect extends ImageTraits {
  /**
   * Whether the backend edits input images at `/images/edits`, sent as form files or URLs. Default:
   * it only generates images from text.
   */
  edits?: boolean;
  /**
   * Differences between models. Later matching entries add to or replace earlier entries. A pattern
   * may contain one `*`, which matches any text.
   */
  models?: readonly (ImageTraits & { of: readonly string[] })[];
}

/** Returns the traits of one model. */
export function traitsOf({ models, ...common }: ImageDialect, model: string): ImageTraits {
  let traits: ImageTraits = common;
  for (const { of, ...more } of models ?? [])
    if (of.some((pattern) => fits(pattern, model))) traits = { ...traits, ...more };
  return traits;
}

function fits(pattern: string, model: string): boolean {
  const star = pattern.indexOf("*");
  if (star < 0) return pattern === model;
  const tail = pattern.slice(star + 1);
  return (
    model.length >= star + tail.length &&
    model.startsWith(pattern.slice(0, star)) &&
    model.endsWith(tail)
  );
}

/**
 * Lists the request fields that may be sent under zero data retention, from the documentation of
 * OpenAI and of compatible backends.
 */
export const ZDR_ALLOWED_FIELDS: FieldAllowlist = [
  ["which model", valueFields("model")],
  ["description of the image", valueFields("prompt negative_prompt style")],
  [
    "format of the image",
    valueFields(
      "n size width height aspect_ratio resolution quality background response_format output_format output_compression " +
        "complexity frame_count frame_duration_ms stream partial_images",
    ),
  ],
  [
    "parameters of a single image",
    valueFields("seed steps num_inference_steps guidance guidance_scale"),
  ],
  [
    "input images, their mask, and how closely the result follows them",
    {
      ...valueFields("input_fidelity"),
      image: valueFields("image_url url type"),
      images: valueFields("image_url url type"),
      mask: valueFields("image_url"),
    },
  ],
  ["strictness of the content filter, which stores nothing", valueFields("moderation")],
  ["the user identifier, sent as a hash", valueFields("user safety_identifier")],
];

/** Analyzes a request body in both modes: what it can cost and which model features it needs. */
export function analyze(body: Body): RequestFacts {
  const named = findReferences(body);
  const spent = analyzeCost(body, named, { maxOutput: undefined });
  const n = spent.n ?? 1;
  const features: Feature[] = [];
  if (isTruthyFlag(body["stream"])) features.push("stream");
  if (n > 1) features.push("n");
  return {
    features: [...features, ...referencedFeatures(named)],
    ...(named.length > 0 && { references: named }),
    ...spent,
    media: countMedia(body),
    n,
    size: sizeIn(body),
    quality: asText(body["quality"]),
    // The gateway creates a URL from bytes, or fetches bytes from a URL. This requires translated
    // mode.
    requiresTranslation: body["response_format"] === "url",
  };
}

/** Returns the number and size of input images, in any accepted form. */
function countMedia(body: Body): RequestFacts["media"] {
  const all = IMAGE_FIELDS.flatMap((field) => [body[field]].flat() as readonly unknown[]).filter(
    (one) => one !== undefined && one !== null,
  );
  if (all.length === 0) return undefined;
  return { count: all.length, bytes: all.reduce<number>((sum, one) => sum + bytesOf(one), 0) };
}

function bytesOf(value: unknown): number {
  if (isFilePart(value)) return value.data.length;
  if (typeof value === "string") return value.length;
  let bytes = 0;
  if (isObject(value)) for (const member in value) bytes += asText(value[member])?.length ?? 0;
  return bytes;
}

/** Fields that make images larger with some backend. */
const SIZE_FIELDS: ReadonlySet<string> = new Set(
  "aspect_ratio resolution image_size imageSize image_resolution megapixels mega_pixels output_megapixels scale upscale upscale_factor upscaler hr_scale enable_hr target_width target_height".split(
    " ",
  ),
);

/**
 * Returns the requested size. If the body has both `size` and `width` and `height`, backends may
 * read either, so the larger size is used for billing. Returns undefined if only the backend can
 * interpret the size.
 */
function sizeIn(body: Body): string | undefined {
  for (const field in body)
    if (SIZE_FIELDS.has(field) && body[field] != null && body[field] !== false) return undefined;
  const size = asText(body["size"]);
  const [width, height] = [body["width"], body["height"]];
  if (width == null && height == null) return size;
  const sides = [width, height].map((side) => parseNumber(side));
  if (sides[0] === undefined || sides[1] === undefined) return undefined;
  const stated = `${Math.ceil(sides[0])}x${Math.ceil(sides[1])}`;
  if (size === undefined) return stated;
  const area = areaOf(size);
  return area === undefined || area > (areaOf(stated) ?? 0) ? size : stated;
}

// Converts the usage of image requests: tokens if the backend reports them, else images and
// megapixels, which such backends bill.

/** Ticks per nanodollar. A tick is one ten-thousandth of a microdollar. */
const TICKS_PER_NANO = 10;

/** Returns the reported tokens, or undefined if the response reports no tokens. */
export function parseTokenUsage(report: Opt<JsonObject>): Usage | undefined {
  const read = asNumber(report?.["input_tokens"]);
  const written = asNumber(report?.["output_tokens"]);
  if (read === undefined && written === undefined) return undefined;
  const into = asObject(report!["input_tokens_details"]);
  const out = asObject(report!["output_tokens_details"]);
  const picturesIn = asNumber(into?.["image_tokens"]);
  const cached = asNumber(into?.["cached_tokens"]);
  // If the type of the output tokens is not reported, they count as image tokens, because the model
  // generates images.
  const picturesOut =
    asNumber(out?.["image_tokens"]) ?? subtract(written, asNumber(out?.["text_tokens"]));
  return omitUndefined({
    input: subtract(read, (picturesIn ?? 0) + (cached ?? 0)),
    cache_read: cached,
    image_in: picturesIn,
    image_out: picturesOut,
    output: out ? subtract(written, picturesOut) : undefined,
  });
}

/** Returns the usage in images, and in megapixels if all sizes are known. */
function imageUnits(pictures: readonly Opt<ImageHead>[]): Usage {
  const pixels = pictures.map((p) => (p?.size ? p.size.width * p.size.height : undefined));
  const known = pixels.every((p) => p !== undefined);
  return {
    images: pictures.length,
    ...(known && { megapixels: pixels.reduce((sum, p) => sum + p, 0) / 1e6 }),
  };
}

export function usageSeen(
  report: Opt<JsonObject>,
  pictures: readonly Opt<ImageHead>[],
): UsageReport {
  const ticks = asNumber(report?.["cost_in_usd_ticks"]);
  return {
    type: "usage",
    usage: parseTokenUsage(report) ?? imageUnits(pictures),
    ...(ticks !== undefined &&
      ticks >= 0 && { costNano: BigInt(Math.round(ticks / TICKS_PER_NANO)) }),
  };
}

/** Encodes usage for a client. Returns undefined if no tokens were counted. */
export function usageTo(u: Usage): JsonObject | undefined {
  if (u.input === undefined && u.output === undefined && u.image_out === undefined)
    return undefined;
  const text = (u.input ?? 0) + (u.cache_read ?? 0);
  const read = text + (u.image_in ?? 0);
  const written = (u.output ?? 0) + (u.image_out ?? 0);
  return {
    input_tokens: read,
    output_tokens: written,
    total_tokens: read + written,
    input_tokens_details: {
      text_tokens: text,
      image_tokens: u.image_in ?? 0,
      ...(u.cache_read !== undefined && { cached_tokens: u.cache_read }),
    },
    output_tokens_details: { text_tokens: u.output ?? 0, image_tokens: u.image_out ?? 0 },
  };
}

const subtract = (all: Opt<number>, part: Opt<number>): Opt<number> =>
  all === undefined ? undefined : Math.max(0, all - (part ?? 0));
