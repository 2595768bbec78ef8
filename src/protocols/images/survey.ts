// One look at a body of this protocol, on both lanes: what it may cost, and what a model must be able to do.
import type { Feature } from "../../model/facts.ts";
import { areaOf } from "../../model/image-work.ts";
import { isFilePart, type Body } from "../../model/values.ts";
import type { Survey } from "../../plugin/survey.ts";
import { isObject, isOn, numeric, text } from "../json.ts";
import { featuresOf, look } from "../look/index.ts";
import { spending } from "../spending.ts";
import { PICTURES } from "./words.ts";

export function survey(body: Body): Survey {
  const named = look(body);
  const spent = spending(body, named, { output: undefined });
  const n = spent.n ?? 1;
  const features: Feature[] = [];
  if (isOn(body["stream"])) features.push("stream");
  if (n > 1) features.push("n");
  return {
    features: [...features, ...featuresOf(named)],
    ...(named.length > 0 && { named }),
    ...spent,
    media: broughtIn(body),
    n,
    size: sizeIn(body),
    quality: text(body["quality"]),
    // An address is made of bytes, or bytes are fetched, by the gateway: not while they pass.
    translate: body["response_format"] === "url",
  };
}

/** Pictures that come along, by whichever of the forms in use. */
function broughtIn(body: Body): Survey["media"] {
  const all = PICTURES.flatMap((field) => [body[field]].flat() as readonly unknown[]).filter(
    (one) => one !== undefined && one !== null,
  );
  if (all.length === 0) return undefined;
  return { count: all.length, bytes: all.reduce<number>((sum, one) => sum + bytesOf(one), 0) };
}

function bytesOf(said: unknown): number {
  if (isFilePart(said)) return said.data.length;
  if (typeof said === "string") return said.length;
  let bytes = 0;
  if (isObject(said)) for (const member in said) bytes += text(said[member])?.length ?? 0;
  return bytes;
}

/** What else makes a picture larger with some host. */
const LARGER: ReadonlySet<string> = new Set(
  "aspect_ratio resolution image_size imageSize image_resolution megapixels mega_pixels output_megapixels scale upscale upscale_factor upscaler hr_scale enable_hr target_width target_height".split(
    " ",
  ),
);

/**
 * A host that reads sides and a host that reads a size may both get both: the larger picture is the one to pay for. Undefined: the
 * size is stated in a form that only the host can read.
 */
function sizeIn(body: Body): string | undefined {
  for (const field in body)
    if (LARGER.has(field) && body[field] != null && body[field] !== false) return undefined;
  const size = text(body["size"]);
  const [width, height] = [body["width"], body["height"]];
  if (width == null && height == null) return size;
  const sides = [width, height].map((side) => numeric(side));
  if (sides[0] === undefined || sides[1] === undefined) return undefined;
  const stated = `${Math.ceil(sides[0])}x${Math.ceil(sides[1])}`;
  if (size === undefined) return stated;
  const area = areaOf(size);
  return area === undefined || area > (areaOf(stated) ?? 0) ? size : stated;
}
