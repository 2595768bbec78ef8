// Encodes the request that starts a job, and decodes its status.
import {
  fail,
  type Call,
  type ImageRequest,
  type Json,
  type JsonObject,
  type Media,
  type Facts,
  type ModelInfo,
} from "tollgate/plugin";
import { ratioOf, sizeOf } from "tollgate/protocols/images";

/** These fields are dropped, because they could send the result to another destination. */
const WEBHOOK_FIELDS = ["webhook_url", "webhook_secret"];

export function encodeJob(r: ImageRequest, call: Call): JsonObject {
  const size = sizeOf(r.size);
  for (const field of ["quality", "background"] as const)
    if (r[field] !== undefined && r[field] !== "auto") call.reportLoss(field, "dropped");
  for (const field of Object.keys((r.ext["images"] ?? {}) as object))
    call.reportLoss(field, "dropped");
  if (r.user !== undefined) call.reportLoss("user", "dropped");
  if (r.compression !== undefined) call.reportLoss("output_compression", "dropped");
  const shape = size && takesAspectRatio(call.model);
  if (shape) call.reportLoss("size", "approximated", "size_approximated");
  return {
    ...passthroughFields(r.rest, call),
    ...inputImageFields(r, call),
    prompt: r.prompt,
    seed: r.seed,
    output_format: r.format,
    ...(shape && { aspect_ratio: ratioOf(size) }),
    ...(size && !shape && { ...size }),
  };
}

/** Encodes input images in the model's fields: bytes as base64, and URLs unchanged. */
function inputImageFields({ inputImages, mask }: ImageRequest, call: Call): Record<string, string> {
  if (inputImages.length === 0 && !mask) return {};
  const field = inputImageField(call.model);
  if (field === undefined)
    fail("unsupported", `${call.model} supports only text input, not images.`, {
      param: "image",
    });
  if (inputImages.length > (field === "image" ? 1 : MAX_INPUT_IMAGES))
    fail(
      "unsupported",
      `${call.model} accepts up to ${field === "image" ? 1 : MAX_INPUT_IMAGES} images.`,
      {
        param: "image",
      },
    );
  if (mask && field !== "image")
    fail(
      "unsupported",
      `${call.model} does not support masks. Describe the change in the prompt.`,
      {
        param: "mask",
      },
    );
  const fields: Record<string, string> = {};
  for (const [i, media] of inputImages.entries())
    fields[i === 0 ? field! : `${field}_${i + 1}`] = encodeMedia(media);
  if (mask) fields["mask"] = encodeMedia(mask);
  return fields;
}

function encodeMedia(media: Media): string {
  if ("url" in media) return media.url;
  if ("fileId" in media)
    return fail("unsupported", "A file ID of another provider cannot be used as an input image.", {
      param: "image",
      code: "foreign_file_id",
    });
  return "base64" in media ? media.base64 : media.bytes.toString("base64");
}

/** Returns the service's own fields as the client sent them. */
function passthroughFields(rest: JsonObject, call: Call): Record<string, Json | undefined> {
  const fields: Record<string, Json | undefined> = {};
  for (const [field, value] of Object.entries(rest))
    if (WEBHOOK_FIELDS.includes(field)) call.reportLoss(field, "dropped");
    else fields[field] = value;
  return fields;
}

export interface Job {
  id: string;
  pollingUrl: string;
  /** Cost in credits. A credit is 0.01 US dollars. */
  cost: number | undefined;
  megapixels: number | undefined;
}

export function parseJob(response: JsonObject): Job {
  const { id, polling_url: pollingUrl, cost, output_mp: megapixels } = response;
  if (typeof id !== "string" || typeof pollingUrl !== "string")
    return fail("upstream", "Black Forest Labs accepted a job without returning its polling URL.", {
      code: "bad_answer",
    });
  return { id, pollingUrl, cost: counted(cost), megapixels: counted(megapixels) };
}

const counted = (value: Json | undefined): number | undefined =>
  typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined;

/** Returns the URL of the finished image, or undefined while the job is running. */
export function parseResultUrl(response: JsonObject): string | undefined {
  const status = String(response["status"] ?? response["state"] ?? "");
  const result = response["result"] as JsonObject | null | undefined;
  switch (status) {
    case "Ready": {
      const sample = result?.["sample"];
      return typeof sample === "string"
        ? sample
        : fail("upstream", "Black Forest Labs completed a job without an image.", {
            code: "no_image",
          });
    }
    case "Request Moderated":
    case "Content Moderated":
      return fail("content_policy", `Black Forest Labs rejected the image: ${status}.`, {
        code: "moderation_blocked",
      });
    case "Error":
    case "Failed":
    case "Task not found":
      return fail("upstream", `The job at Black Forest Labs failed: ${status}.`, {
        code: "job_failed",
      });
    default:
      return undefined;
  }
}

/** Throws the error of an unsuccessful response, with the service's message. */
export function failJob(status: number, response: JsonObject, retryAfter: string | null): never {
  const message =
    wordsOf(response["detail"]) ??
    wordsOf(response["message"]) ??
    `Black Forest Labs returned status ${status}.`;
  const words = `Black Forest Labs: ${message}`;
  switch (status) {
    case 401:
    case 403:
      return fail("upstream_auth", words);
    case 402:
      return fail("upstream_quota", words);
    case 404:
      return fail("not_found", words, { param: "model" });
    case 429: {
      const seconds = Number(retryAfter ?? Number.NaN);
      return fail("rate_limited", words, {
        retryAfterMs: seconds >= 0 ? seconds * 1000 : undefined,
      });
    }
    case 400:
    case 422:
      return fail("invalid", words);
    case 503:
      return fail("overloaded", words);
    default:
      return fail("upstream", words);
  }
}

function wordsOf(detail: Json | undefined): string | undefined {
  if (typeof detail === "string") return detail.slice(0, 500);
  if (!Array.isArray(detail)) return undefined;
  return detail
    .map((one: JsonObject) => `${[one["loc"]].flat().join(".")}: ${String(one["msg"])}`)
    .join("; ")
    .slice(0, 500);
}

// Metadata of Black Forest Labs' models. The API has no model list, so the existing models are
// listed here. Operators can add others under the provider's `facts:`.

/** Maximum number of parallel jobs per request. A job makes one image. */
const MAX_JOBS = 4;
const FORMATS = ["png", "jpeg"];

/**
 * Creates a model. Only prices from the vendor's own page are included. Other models have no price
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
const takesAspectRatio = (name: string): boolean => /ultra|kontext/.test(name);

/** Maximum number of input images of a job. */
const MAX_INPUT_IMAGES = 10;

/**
 * Returns the field for input images, or undefined if the model supports none. The model that fills
 * a mask has its own field.
 */
const inputImageField = (name: string): string | undefined =>
  name.endsWith("-fill") ? "image" : /^flux-2|kontext/.test(name) ? "input_image" : undefined;
