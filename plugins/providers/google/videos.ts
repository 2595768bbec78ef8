// Videos of the Gemini API. A request starts an operation, and its result names the files. The API
// reports neither the length nor the size of a video, so both are sent with every request and kept in
// the reference.
import {
  fail,
  type BatchClient,
  type EndpointVideos,
  type JsonObject,
  type VideoContent,
  type VideoRequest,
  type VideoStatus,
} from "tollgate/plugin";
import { fetchObject, jsonRequest } from "tollgate/protocols/batches";
import { asNonEmptyText, asObject } from "tollgate/protocols/compatible";
import { fetchContent } from "tollgate/protocols/videos";

/** Sizes by the API's resolution and aspect ratio. */
const SIZES: { readonly [size: string]: { aspectRatio: string; resolution: string } } = {
  "1280x720": { aspectRatio: "16:9", resolution: "720p" },
  "720x1280": { aspectRatio: "9:16", resolution: "720p" },
  "1920x1080": { aspectRatio: "16:9", resolution: "1080p" },
  "1080x1920": { aspectRatio: "9:16", resolution: "1080p" },
  "3840x2160": { aspectRatio: "16:9", resolution: "4k" },
  "2160x3840": { aspectRatio: "9:16", resolution: "4k" },
};
/** Length and size that are requested if the client states none: the API's own defaults. */
const DEFAULTS = { seconds: 8, size: "1280x720" };
/** Name of an operation, as a path. */
const OPERATION = /^(?:[\w.-]+\/)*operations\/[\w.-]+$/;

/** The videos of the API. */
export const geminiVideos: EndpointVideos = {
  async create({ model, request }, client) {
    const { seconds, size } = settingsOf(request);
    const operation = await fetchObject(
      client,
      `models/${encodeURIComponent(model)}:predictLongRunning`,
      jsonRequest(encodeRequest(request, seconds, size)),
    );
    const name = asNonEmptyText(operation["name"]);
    if (name === undefined || !OPERATION.test(name))
      return fail("upstream", "Google returned an operation without a name.", {
        code: "bad_answer",
      });
    const reference = JSON.stringify({ name, seconds, size });
    return { reference, status: { state: "queued", seconds, size } };
  },
  async poll(reference, client) {
    const known = parseReference(reference);
    return readStatus(await fetchObject(client, known.name), known);
  },
  async readContent(reference, variant, client) {
    if (variant !== "video")
      fail("unsupported", "Google has no previews of videos.", { param: "variant" });
    const { name } = parseReference(reference);
    const [uri] = urisOf(await fetchObject(client, name));
    return fetchFile(uri ?? fail("not_found", "Google has deleted the video."), client);
  },
};

interface Reference {
  readonly name: string;
  readonly seconds: number;
  readonly size: string;
}

function parseReference(reference: string): Reference {
  const { name, seconds, size } = JSON.parse(reference) as Partial<Reference>;
  return typeof name === "string" && OPERATION.test(name) && seconds !== undefined && size
    ? { name, seconds, size }
    : fail("internal", "The reference of a video is not valid.");
}

function settingsOf({ seconds, size }: VideoRequest): { seconds: number; size: string } {
  const wanted = size ?? DEFAULTS.size;
  if (!Object.hasOwn(SIZES, wanted))
    fail("unsupported", `size must be one of ${Object.keys(SIZES).join(", ")} for this model.`, {
      param: "size",
    });
  return { seconds: seconds ?? DEFAULTS.seconds, size: wanted };
}

function encodeRequest(
  { prompt, image, rest }: VideoRequest,
  seconds: number,
  size: string,
): JsonObject {
  return {
    instances: [{ prompt, ...(image && { image: encodeImage(image) }) }],
    parameters: { ...rest, ...SIZES[size]!, durationSeconds: seconds, sampleCount: 1 },
  };
}

function encodeImage(image: NonNullable<VideoRequest["image"]>): JsonObject {
  const mimeType = image.mime ?? "image/png";
  if ("bytes" in image) return { bytesBase64Encoded: image.bytes.toString("base64"), mimeType };
  if ("base64" in image) return { bytesBase64Encoded: image.base64, mimeType };
  return fail("unsupported", "Google accepts no URL here. Send the image itself.", {
    param: "input_reference",
  });
}

function readStatus(operation: JsonObject, { seconds, size }: Reference): VideoStatus {
  if (operation["done"] !== true) return { state: "running", seconds, size };
  const error = asObject(operation["error"]);
  if (error)
    return {
      state: "failed",
      error: {
        code: "video_failed",
        message: asNonEmptyText(error["message"]) ?? "Google could not generate the video.",
      },
    };
  const { length } = urisOf(operation);
  if (length > 0) return { state: "completed", seconds: seconds * length, size };
  const reasons = resultOf(operation)?.["raiMediaFilteredReasons"];
  const reason = Array.isArray(reasons) ? asNonEmptyText(reasons[0]) : undefined;
  return {
    state: "failed",
    error: { code: "content_filtered", message: reason ?? "Google filtered the video." },
  };
}

const resultOf = (operation: JsonObject): JsonObject | undefined =>
  asObject(asObject(operation["response"])?.["generateVideoResponse"]);

/** Returns the URLs of the files of an operation. */
function urisOf(operation: JsonObject): readonly string[] {
  const samples = resultOf(operation)?.["generatedSamples"];
  if (!Array.isArray(samples)) return [];
  return samples.flatMap((sample) => {
    const uri = asNonEmptyText(asObject(asObject(sample)?.["video"])?.["uri"]);
    return uri === undefined ? [] : [uri];
  });
}

/**
 * Requests a file. A URL of the API is requested below the base URL, which an operator may have
 * changed. The API redirects to a storage, to which no key is sent.
 */
function fetchFile(uri: string, client: BatchClient): Promise<VideoContent> {
  const own = /\/(files\/[\w.-]+:download)(?:\?|$)/.exec(uri)?.[1];
  return fetchContent(client, own === undefined ? uri : `${own}?alt=media`);
}
