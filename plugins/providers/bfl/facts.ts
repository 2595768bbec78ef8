// Metadata of Black Forest Labs' models. The API has no model list, so the existing models are
// listed here. Operators can add others under the provider's `facts:`.
import type { Facts, ModelInfo } from "tollgate/plugin";

/** Maximum number of parallel jobs per request. A job makes one image. */
export const MAX_JOBS = 4;
const FORMATS = ["png", "jpeg"];

/**
 * Creates a model. Only prices from the vendor's own page are included. Other models are unpriced
 * here, because each job reports its cost.
 */
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

/** Whether the model takes an aspect ratio instead of a size. */
export const takesAspectRatio = (name: string): boolean => /ultra|kontext/.test(name);

/** Maximum number of input images of a job. */
export const MAX_INPUT_IMAGES = 10;

/**
 * Returns the field for input images, or undefined if the model takes none. The model that fills a
 * mask has its own field.
 */
export const inputImageField = (name: string): string | undefined =>
  name.endsWith("-fill") ? "image" : /^flux-2|kontext/.test(name) ? "input_image" : undefined;
