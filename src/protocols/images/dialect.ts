// Describes how backends that speak this protocol differ. It is plain data, so that a provider can
// be a row. `models` describes differences between the models of one provider. Unset options mean
// the behavior that compatible backends have in common.

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
   * Differences between models. Later matching entries add to or replace earlier ones. A pattern
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
