// Analyzes a request body in both modes: what it can cost and which model features it needs.
import type { Feature } from "../../model/facts.ts";
import { areaOf } from "../../model/operations/image-operation.ts";
import { isFilePart, type Body } from "../../model/values.ts";
import type { RequestFacts } from "../../plugin/request-facts.ts";
import { isObject, isTruthyFlag, parseNumber, asText } from "../json-values.ts";
import { referencedFeatures, findReferences } from "../references/index.ts";
import { analyzeCost } from "../cost-analysis.ts";
import { IMAGE_FIELDS } from "./constants.ts";

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
    // A URL is created from bytes, or bytes are fetched from a URL, by the gateway. This requires
    // translated mode.
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
