// Pictures by InvokeModel, drawn from words: Amazon's own models have one body, Stability's another. AWS's pages say both, and that
// what a filter held back is told inside an answer that is a success.
import {
  fail,
  type Call,
  type ImageRequest,
  type Json,
  type JsonObject,
  type ModelEvent,
} from "tollgate/plugin";
import { fitting, ratioOf, sizeOf, sniff } from "tollgate/protocols/images";
import { listOf, objectOf, some, textOf } from "./json.ts";
import { invoked } from "./invoked.ts";

/** What Stability's models draw. */
const RATIOS = ["16:9", "1:1", "21:9", "2:3", "3:2", "4:5", "5:4", "9:16", "9:21"];
/** Amazon's two, by the words that clients have for how good. */
const QUALITIES: Readonly<Record<string, string>> = {
  low: "standard",
  medium: "standard",
  standard: "standard",
  high: "premium",
  hd: "premium",
  premium: "premium",
};
const FILTERED = /filter/i;

export const isAmazonPicture = (model: string): boolean =>
  /(?:^|[./])amazon\.(?:nova-canvas|titan-image-generator)/.test(model);
export const isStability = (model: string): boolean => /(?:^|[./])stability\./.test(model);

export async function* pictures(r: ImageRequest, call: Call): AsyncGenerator<ModelEvent> {
  if (r.refs.length > 0 || r.mask)
    fail("unsupported", `${call.model} is asked here to draw from words alone.`, {
      param: r.mask ? "mask" : "image",
    });
  fitting({ n: r.n, size: r.size, format: r.format }, call.info);
  foreign(r, call);
  const said = await invoked(
    call,
    isStability(call.model) ? ofStability(r, call) : ofAmazon(r, call),
  );
  const drawn = listOf(said["images"]).flatMap((one) => textOf(one) ?? []);
  const held = heldBack(said);
  if (drawn.length === 0) none(held);
  // One that is held back has no other place: of several, the others are an answer.
  if (held !== undefined) call.lose("n", "approximated", "filtered");
  yield { type: "start" };
  for (const [index, base64] of drawn.entries()) {
    const mime = sniff({ base64 })?.mime;
    yield { type: "open", index, block: { type: "image" } };
    yield { type: "media", index, media: { base64, ...(mime !== undefined && { mime }) } };
    yield { type: "close", index };
  }
  yield { type: "usage", usage: { images: drawn.length } };
  yield { type: "finish", reason: "stop" };
}

function ofAmazon(r: ImageRequest, call: Call): JsonObject {
  if (r.format !== undefined && r.format !== "png") call.lose("output_format", "dropped");
  const { taskType, textToImageParams, imageGenerationConfig, ...rest } = r.rest;
  if (taskType !== undefined && taskType !== "TEXT_IMAGE") call.lose("taskType", "dropped");
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

function ofStability(r: ImageRequest, call: Call): JsonObject {
  if (r.n > 1)
    fail("unsupported", `${call.model} makes one image at a time. Ask for n: 1.`, { param: "n" });
  if (r.quality !== undefined && r.quality !== "auto") call.lose("quality", "dropped");
  const size = sizeOf(r.size);
  if (size) call.lose("size", "approximated", "size_approximated");
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
  if (own !== quality) call.lose("quality", own === undefined ? "dropped" : "approximated");
  return own;
}

function foreign(r: ImageRequest, call: Call): void {
  if (r.size !== undefined && r.size !== "auto" && !sizeOf(r.size))
    fail("unsupported", `${r.size} is no size of the form 1024x1024.`, { param: "size" });
  const lost: Readonly<Record<string, Json | undefined>> = {
    background: r.background === "auto" ? undefined : r.background,
    output_compression: r.compression,
    partial_images: r.partials || undefined,
    user: r.user,
    ...objectOf(r.ext["images"]),
  };
  for (const field in lost) if (lost[field] !== undefined) call.lose(field, "dropped");
}

/** Why pictures are missing: Amazon's `error`, Stability's reasons. */
const heldBack = (said: JsonObject): string | undefined =>
  textOf(said["error"]) ?? listOf(said["finish_reasons"]).map(textOf).find(Boolean);

function none(why: string | undefined): never {
  const words = why === undefined ? "" : ` It said: ${why.slice(0, 500)}`;
  return why !== undefined && FILTERED.test(why)
    ? fail("content_policy", `The provider withheld the image.${words}`, {
        code: "moderation_blocked",
      })
    : fail("upstream", `The provider answered without an image.${words}`, { code: "no_image" });
}
