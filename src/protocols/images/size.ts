import { fail } from "../../model/error.ts";
import type { ImageFacts, ModelInfo } from "../../model/facts.ts";
import type { Opt } from "../../model/values.ts";

export interface Size {
  width: number;
  height: number;
}

/** "1024x1536" in numbers; undefined for `auto` and for words that are another host's. */
export function sizeOf(size: Opt<string>): Size | undefined {
  const [, width, height] = /^([1-9]\d{0,4})x([1-9]\d{0,4})$/.exec(size ?? "") ?? [];
  return width && height ? { width: Number(width), height: Number(height) } : undefined;
}

/** In lowest terms, "16:9", or the nearest of those that are known. */
export function ratioOf({ width, height }: Size, known?: readonly string[]): string {
  const shared = gcd(width, height);
  const own = `${width / shared}:${height / shared}`;
  if (!known || known.length === 0 || known.includes(own)) return own;
  // Twice as wide and half as wide are equally far from a square.
  const far = (ratio: string): number => {
    const [w, h] = ratio.split(":").map(Number);
    return Math.abs(Math.log(width / height) - Math.log(w! / h!));
  };
  return known.reduce((best, ratio) => (far(ratio) < far(best) ? ratio : best));
}

const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b));

/** What of an image request a model may be unable to do, as the catalog knows it. */
export interface ImageParameters {
  n?: Opt<number>;
  size?: Opt<string>;
  quality?: Opt<string>;
  format?: Opt<string>;
}

/** Refuses what the catalog says that a model cannot do, naming what it can. Unknown is let through. */
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

/** Another model behind the same name may be able to. */
const failUnsupportedParameter = (param: string, can: string, info: ModelInfo): never =>
  fail("unsupported", `${info.model} takes ${can}.`, { param, code: `unsupported_${param}` });
