// Image generation from text through InvokeModel. Amazon's own models and Stability's have
// different bodies, which AWS documents. A filtered image is reported within a successful response.
import {
  fail,
  type Call,
  type ImageRequest,
  type Json,
  type JsonObject,
  type ModelEvent,
} from "tollgate/plugin";
import { requireSupported, ratioOf, sizeOf, sniffImage } from "tollgate/protocols/images";
import { listOf, objectOf, some, textOf } from "./json.ts";
import { invokeModel } from "./invoke-model.ts";

/** Aspect ratios of Stability's models. */
const RATIOS = ["16:9", "1:1", "21:9", "2:3", "3:2", "4:5", "5:4", "9:16", "9:21"];
/** Amazon's two quality levels, by the names that clients send. */
const QUALITIES: Readonly<Record<string, string>> = {
  low: "standard",
  medium: "standard",
  standard: "standard",
  high: "premium",
  hd: "premium",
  premium: "premium",
};
const FILTERED = /filter/i;

export const isAmazonImageModel = (model: string): boolean =>
  /(?:^|[./])amazon\.(?:nova-canvas|titan-image-generator)/.test(model);
export const isStability = (model: string): boolean => /(?:^|[./])stability\./.test(model);

export async function* generateImages(r: ImageRequest, call: Call): AsyncGenerator<ModelEvent> {
  if (r.inputImages.length > 0 || r.mask)
    fail("unsupported", `${call.model} supports only text input here.`, {
      param: r.mask ? "mask" : "image",
    });
  requireSupported({ n: r.n, size: r.size, format: r.format }, call.info);
  reportForeignFields(r, call);
  const response = await invokeModel(
    call,
    isStability(call.model) ? stabilityRequest(r, call) : amazonRequest(r, call),
  );
  const drawn = listOf(response["images"]).flatMap((one) => textOf(one) ?? []);
  const held = filterReason(response);
  if (drawn.length === 0) failNoImage(held);
  // If only some images are withheld, the others are returned. Only a translation warning can
  // report the withheld images.
  if (held !== undefined) call.reportLoss("n", "approximated", "filtered");
  yield { type: "start" };
  for (const [index, base64] of drawn.entries()) {
    const mime = sniffImage({ base64 })?.mime;
    yield { type: "open", index, block: { type: "image" } };
    yield { type: "media", index, media: { base64, ...(mime !== undefined && { mime }) } };
    yield { type: "close", index };
  }
  yield { type: "usage", usage: { images: drawn.length } };
  yield { type: "finish", reason: "stop" };
}

function amazonRequest(r: ImageRequest, call: Call): JsonObject {
  if (r.format !== undefined && r.format !== "png") call.reportLoss("output_format", "dropped");
  const { taskType, textToImageParams, imageGenerationConfig, ...rest } = r.rest;
  if (taskType !== undefined && taskType !== "TEXT_IMAGE") call.reportLoss("taskType", "dropped");
  return {
    ...rest,
    taskType: "TEXT_IMAGE",
    textToImageParams: { ...objectOf(textToImageParams), text: r.prompt },
    imageGenerationConfig: {
      ...objectOf(imageGenerationConfig),
      ...sizeOf(r.size),
      ...some({ quality: qualityOf(r, call), seed: r.seed }),
      numberOfImages: r.n,
    },
  };
}

function stabilityRequest(r: ImageRequest, call: Call): JsonObject {
  if (r.n > 1)
    fail("unsupported", `${call.model} creates one image per request. Set n to 1.`, { param: "n" });
  if (r.quality !== undefined && r.quality !== "auto") call.reportLoss("quality", "dropped");
  const size = sizeOf(r.size);
  if (size) call.reportLoss("size", "approximated", "size_approximated");
  const aspect = size && ratioOf(size, RATIOS);
  return {
    ...r.rest,
    prompt: r.prompt,
    ...some({ aspect_ratio: aspect, seed: r.seed, output_format: r.format }),
  };
}

function qualityOf({ quality }: ImageRequest, call: Call): string | undefined {
  if (quality === undefined || quality === "auto") return undefined;
  const own = Object.hasOwn(QUALITIES, quality) ? QUALITIES[quality] : undefined;
  if (own !== quality) call.reportLoss("quality", own === undefined ? "dropped" : "approximated");
  return own;
}

function reportForeignFields(r: ImageRequest, call: Call): void {
  if (r.size !== undefined && r.size !== "auto" && !sizeOf(r.size))
    fail("unsupported", `Invalid size ${r.size}. Use the form 1024x1024.`, { param: "size" });
  const lost: Readonly<Record<string, Json | undefined>> = {
    background: r.background === "auto" ? undefined : r.background,
    output_compression: r.compression,
    partial_images: r.partialImages || undefined,
    user: r.user,
    ...objectOf(r.ext["images"]),
  };
  for (const field in lost) if (lost[field] !== undefined) call.reportLoss(field, "dropped");
}

/** Returns why images are missing, from Amazon's `error` or Stability's reasons. */
const filterReason = (response: JsonObject): string | undefined =>
  textOf(response["error"]) ?? listOf(response["finish_reasons"]).map(textOf).find(Boolean);

function failNoImage(why: string | undefined): never {
  const words = why === undefined ? "" : ` Reason: ${why.slice(0, 500)}`;
  return why !== undefined && FILTERED.test(why)
    ? fail("content_policy", `The provider withheld the image.${words}`, {
        code: "moderation_blocked",
      })
    : fail("upstream", `The provider returned no image.${words}`, { code: "no_image" });
}
