// What is known of Black Forest Labs' models. It has no list to ask for, so these are the ones that exist; an operator
// adds others under the provider's `facts:`.
import type { Facts, ModelInfo } from "tollgate/plugin";

/** One image a job; more are as many jobs, and this many may run for one request. */
export const MAX_JOBS = 4;
const FORMATS = ["png", "jpeg"];

/** Only the prices that the vendor's own page states; the others are told with each job, and unpriced here. */
const model = (name: string, words: string, usd?: string): ModelInfo => ({
  model: name,
  operation: "image",
  name: words,
  limits: { images: MAX_JOBS },
  image: { formats: FORMATS },
  ...(usd !== undefined && { price: { lines: [{ unit: "images", usd, per: 1 }] } }),
});

export const facts: Facts = {
  asOf: "2026-08-01",
  models: [
    model("flux-2-max", "FLUX.2 [max]"),
    model("flux-2-pro", "FLUX.2 [pro]"),
    model("flux-2-flex", "FLUX.2 [flex]"),
    model("flux-2-klein-9b", "FLUX.2 [klein] 9B"),
    model("flux-2-klein-4b", "FLUX.2 [klein] 4B"),
    model("flux-pro-1.1", "FLUX1.1 [pro]", "0.04"),
    model("flux-pro-1.1-ultra", "FLUX1.1 [pro] Ultra", "0.06"),
    model("flux-kontext-pro", "FLUX.1 Kontext [pro]", "0.04"),
    model("flux-kontext-max", "FLUX.1 Kontext [max]", "0.08"),
  ],
};

/** These take a shape instead of a size. */
export const takesAspectRatio = (name: string): boolean => /ultra|kontext/.test(name);

/** Pictures that one job may be given. */
export const MAX_INPUT_IMAGES = 10;

/** The field for pictures that are to be changed; the one that fills a mask has one of its own. Undefined: it takes none. */
export const inputImageField = (name: string): string | undefined =>
  name.endsWith("-fill") ? "image" : /^flux-2|kontext/.test(name) ? "input_image" : undefined;
