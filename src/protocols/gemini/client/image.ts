// Encodes image requests. An image model is called like a chat model, and its image is a part of
// the response.
import { setOwnProperty } from "../../../lib/set-own-property.ts";
import { requirePublicUrl } from "./parts.ts";
import { fail } from "../../../model/error.ts";
import type { ModelEvent } from "../../../model/event.ts";
import type { ImageRequest, Media } from "../../../model/request.ts";
import type { Body, Json, JsonObject } from "../../../model/values.ts";
import type { CallContext } from "../../../plugin/protocol.ts";
import { requireSupported, ratioOf, sizeOf } from "../../images/index.ts";
import { mimeOf } from "../../sniff-image.ts";
import { asObject, omitUndefined, omitUndefinedOrNothing } from "../../json-values.ts";
import { parseExtraConfig, isGeminiFieldName, knowsField } from "../constants.ts";

/** Aspect ratios that all of these models support. */
const RATIOS = ["1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9"];

/** Names of image sizes, each with the longest side in pixels that it covers. */
const SIZES = [
  ["1K", 1536],
  ["2K", 3072],
  ["4K", Infinity],
] as const;

export function request(r: ImageRequest, of: CallContext): Body {
  requireSupported(
    { n: r.n, quality: r.quality === "auto" ? undefined : r.quality, format: r.format },
    of.info,
  );
  if (r.n > 1)
    fail("unsupported", `${of.model} generates one image at a time. Use n: 1.`, { param: "n" });
  if (r.background === "transparent")
    fail(
      "unsupported",
      `${of.model} does not support transparent backgrounds. Use auto or opaque.`,
      {
        param: "background",
        code: "unsupported_value",
      },
    );
  if (r.mask)
    fail("unsupported", `${of.model} does not support masks. Describe the change in the prompt.`, {
      param: "mask",
    });
  const { config, kept } = restOf(r, of);
  reportForeignFields(r, of);
  return {
    contents: [
      {
        role: "user",
        parts: [...r.inputImages.map((ref) => imagePart(ref, of)), { text: r.prompt }],
      },
    ],
    generationConfig: {
      ...config,
      seed: r.seed,
      responseModalities: ["TEXT", "IMAGE"],
      imageConfig: omitUndefinedOrNothing({ ...toImageConfig(r, of) }),
    },
    ...kept,
  };
}

/** Returns the image settings. Only an aspect ratio and a size class can be requested. */
function toImageConfig(r: ImageRequest, of: CallContext): { [field: string]: Json | undefined } {
  const size = sizeOf(r.size);
  if (!size) {
    if (r.size !== undefined && r.size !== "auto")
      fail("unsupported", `Invalid size ${r.size}: use the form 1024x1024.`, { param: "size" });
    return {};
  }
  of.reportLoss("size", "approximated", "size_approximated");
  const longer = Math.max(size.width, size.height);
  // The smallest size is the default of all models, and some support no other, so it is not sent.
  const word = SIZES.find(([, upTo]) => longer <= upTo)![0];
  return { aspectRatio: ratioOf(size, RATIOS), imageSize: word === "1K" ? undefined : word };
}

function imagePart(media: Media, of: CallContext): Json {
  if ("url" in media) {
    const fileUri = requirePublicUrl(media.url, "image", of);
    return { fileData: { ...(media.mime && { mimeType: media.mime }), fileUri } };
  }
  if ("fileId" in media)
    return fail("unsupported", "A file ID of another provider cannot be used as an input image.", {
      param: "image",
      code: "foreign_file_id",
    });
  const data = "base64" in media ? media.base64 : media.bytes.toString("base64");
  return { inlineData: { mimeType: mimeOf(media), data } };
}

function restOf(r: ImageRequest, of: CallContext) {
  let config: JsonObject = {};
  const kept: Record<string, undefined> = {};
  for (const [field, value] of Object.entries(r.rest))
    if (field === "generationConfig")
      config = parseExtraConfig(value, (member) =>
        of.reportLoss(member, "dropped", "foreign_field"),
      );
    else if (!isGeminiFieldName(field) || knowsField(field)) {
      setOwnProperty(kept, field, undefined);
      of.reportLoss(field, "dropped", knowsField(field) ? "foreign_field" : "unknown_to_gemini");
    }
  return { config, kept };
}

function reportForeignFields(r: ImageRequest, of: CallContext): void {
  const lost: Record<string, unknown> = {
    quality: r.quality === "auto" ? undefined : r.quality,
    background: r.background === "auto" ? undefined : r.background,
    output_format: r.format === "png" ? undefined : r.format,
    output_compression: r.compression,
    partial_images: r.partialImages || undefined,
    user: r.user,
    ...omitUndefined(asObject(r.ext["images"]) ?? {}),
  };
  for (const field in lost) if (lost[field] !== undefined) of.reportLoss(field, "dropped");
}

/**
 * Returns a function that forwards only image events. If the response contains no image, it throws
 * an error with the reason.
 */
export function imageEventsOnly(emit: (event: ModelEvent) => void): (event: ModelEvent) => void {
  const passed = new Set<number>();
  let words = "";
  let pictures = 0;
  return (event) => {
    switch (event.type) {
      case "open":
        if (event.block.type !== "image") return;
        passed.add(event.index);
        return emit(event);
      case "media":
        pictures += passed.has(event.index) ? 1 : 0;
        return passed.has(event.index) ? emit(event) : undefined;
      case "delta":
        words += event.text;
        return;
      case "close":
        return passed.has(event.index) ? emit(event) : undefined;
      case "proof":
      case "cite":
        return;
      case "finish":
        if (pictures === 0) failNoImage(event.reason === "filtered", event.detail, words);
        return emit(event);
      default:
        return emit(event);
    }
  };
}

function failNoImage(filtered: boolean, reason: string | undefined, words: string): never {
  if (filtered)
    fail("content_policy", `The provider withheld the image: ${reason ?? "its filters"}.`, {
      code: "moderation_blocked",
    });
  const explanation = words.trim().slice(0, 500);
  return fail(
    "upstream",
    `The model returned no image.${explanation && ` It said: ${explanation}`}`,
    {
      code: "no_image",
    },
  );
}
