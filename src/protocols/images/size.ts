import { fail } from "../../model/error.ts";
import type { ImageFacts, ModelInfo } from "../../model/facts.ts";
import type { Opt } from "../../model/values.ts";

export interface Size {
  width: number;
  height: number;
}

/**
 * Parses a size such as "1024x1536". Returns undefined for `auto` and for other backends' names.
 */
export function sizeOf(size: Opt<string>): Size | undefined {
  const [, width, height] = /^([1-9]\d{0,4})x([1-9]\d{0,4})$/.exec(size ?? "") ?? [];
  return width && height ? { width: Number(width), height: Number(height) } : undefined;
}

/** Returns the aspect ratio in lowest terms, for example "16:9", or the nearest known ratio. */
export function ratioOf({ width, height }: Size, known?: readonly string[]): string {
  const shared = gcd(width, height);
  const own = `${width / shared}:${height / shared}`;
  if (!known || known.length === 0 || known.includes(own)) return own;
  // The distance is logarithmic, so that twice as wide and half as wide are equally far from a
  // square.
  const far = (ratio: string): number => {
    const [w, h] = ratio.split(":").map(Number);
    return Math.abs(Math.log(width / height) - Math.log(w! / h!));
  };
  return known.reduce((best, ratio) => (far(ratio) < far(best) ? ratio : best));
}

const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b));

/** Parameters of an image request that a model may not support, according to the catalog. */
export interface ImageParameters {
  n?: Opt<number>;
  size?: Opt<string>;
  quality?: Opt<string>;
  format?: Opt<string>;
}

/**
 * Throws if the catalog states that the model does not support a parameter. The message names the
 * supported values. Parameters that the catalog does not mention are accepted.
 */
export function requireSupported(wish: ImageParameters, info: ModelInfo): void {
  const { sizes, sides, qualities, formats }: ImageFacts = info.image ?? {};
  const most = info.limits?.images;
  if (wish.n !== undefined && most !== undefined && wish.n > most)
    failUnsupportedParameter(
      "n",
      `at most ${most} ${most === 1 ? "image" : "images"} at a time`,
      info,
    );
  if (wish.size !== undefined && wish.size !== "auto" && !sizes?.includes(wish.size)) {
    const size = sizeOf(wish.size);
    const within = size && sides && isWithinSides(size, sides);
    if (!within && sizes && !sides)
      failUnsupportedParameter("size", `the sizes ${sizes.join(", ")}`, info);
    if (!within && sides)
      failUnsupportedParameter(
        "size",
        `${sizes ? `the sizes ${sizes.join(", ")}, or ` : ""}sides of ${sides.min} to ${sides.max} pixels${sides.step ? `, multiples of ${sides.step}` : ""}`,
        info,
      );
  }
  if (wish.quality !== undefined && qualities && !qualities.includes(wish.quality))
    failUnsupportedParameter("quality", `the qualities ${qualities.join(", ")}`, info);
  if (wish.format !== undefined && formats && !formats.includes(wish.format))
    failUnsupportedParameter("output_format", `the formats ${formats.join(", ")}`, info);
}

const isWithinSides = (
  { width, height }: Size,
  { min, max, step = 1 }: NonNullable<ImageFacts["sides"]>,
) => [width, height].every((side) => side >= min && side <= max && side % step === 0);

/** Throws `unsupported`, because another model behind the same name may support the parameter. */
const failUnsupportedParameter = (param: string, can: string, info: ModelInfo): never =>
  fail("unsupported", `${info.model} supports ${can}.`, { param, code: `unsupported_${param}` });
