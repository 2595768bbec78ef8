// What differs between hosts that speak this wire. Data, so that a provider can be a row; where the models of one
// provider differ, `models` says how. Everything absent is what the compatible hosts have in common.

export interface ImageTraits {
  /**
   * How bytes are asked for. b64_json, base64: by that word in `response_format` · bytes: not at all, and the field is
   * an error · url: cannot be had, every image is an address. Absent: b64_json.
   */
  responseFormat?: "b64_json" | "base64" | "bytes" | "url";
  /** wxh: `size` · width_height: `width` and `height` · ratio: `aspect_ratio`, the nearest of `ratios`. Absent: wxh. */
  size?: "wxh" | "width_height" | "ratio";
  /** The ratios that are known: "16:9". Absent: any. */
  ratios?: readonly string[];
  /** With ratio: words for `resolution`, each with the longer side that it reaches up to. */
  resolutions?: readonly (readonly [word: string, upTo: number])[];
  /** Other words for `quality`: { hd: "high" }. */
  qualityNames?: { readonly [quality: string]: string };
  /** Most images of one request. */
  maxImages?: number;
  /** Top-level fields that are answered with an error; dropped, and the client is told. */
  dropFields?: readonly string[];
}

export interface ImageDialect extends ImageTraits {
  /** It changes pictures that come along, at `/images/edits`, in a form or by address. Absent: it makes them from words alone. */
  edits?: boolean;
  /** Where models differ: the last that fits adds to, or replaces, what stands above it. One `*` stands for anything. */
  models?: readonly (ImageTraits & { of: readonly string[] })[];
}

/** What holds for one model. */
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
