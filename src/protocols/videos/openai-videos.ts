// Videos of backends that have OpenAI's API for videos: a form creates a video, an object describes
// it, and its content is read from its own path.
import {
  fail,
  type BatchClient,
  type EndpointVideos,
  type JsonObject,
  type Media,
  type VideoContent,
  type VideoRequest,
  type VideoStatus,
} from "../../plugin/index.ts";
import {
  deleteObject,
  fetchObject,
  jsonRequest,
  requireSuccess,
} from "../batches/batch-response.ts";
import { asNumber, asObject, asText, omitUndefined } from "../json-values.ts";

/** Differences between the videos of a backend and those of OpenAI. */
export interface VideoDialect {
  /** Path of all videos, relative to the base URL. Default: `videos`. */
  path?: string;
  /** Whether a video can be changed by a new prompt. Default: true. */
  remix?: boolean;
}

/** Maximum number of requests for one content, with those of redirects. */
const MAX_REQUESTS = 3;

const STATES: { readonly [status: string]: VideoStatus["state"] } = {
  queued: "queued",
  pending: "queued",
  in_progress: "running",
  processing: "running",
  completed: "completed",
  failed: "failed",
  cancelled: "failed",
  expired: "failed",
};

/** Returns the videos of an endpoint of OpenAI's API, or of an API that is compatible with it. */
export function openAiVideos({ path = "videos", remix = true }: VideoDialect = {}): EndpointVideos {
  const urlOf = (id: string) => `${path}/${encodeURIComponent(id)}`;
  return {
    canRemix: remix,
    async create({ model, request, remixOf }, client) {
      const created =
        remixOf == null
          ? await fetchObject(client, path, await formOf(model, request))
          : await fetchObject(
              client,
              `${urlOf(remixOf)}/remix`,
              jsonRequest({ prompt: request.prompt }),
            );
      const reference =
        asText(created["id"]) ||
        fail("upstream", "The provider returned a video without an ID.", { code: "bad_answer" });
      // The video was started. If its status is unknown, polls report how it ends.
      return { reference, status: readStatus(created, "queued") };
    },
    poll: async (reference, client) => readStatus(await fetchObject(client, urlOf(reference))),
    async readContent(reference, variant, client) {
      const query = variant === "video" ? "" : `?variant=${variant}`;
      return fetchContent(client, `${urlOf(reference)}/content${query}`);
    },
    delete: (reference, client) => deleteObject(client, urlOf(reference)),
  };
}

/**
 * Requests the content of a video. Up to 2 redirects are followed, such as those to a storage. The
 * client sends its credential to the origins of the endpoint only.
 */
export async function fetchContent(client: BatchClient, url: string): Promise<VideoContent> {
  const response = await fetchRedirected(client, url);
  await requireSuccess(response);
  const length = response.headers.get("content-length");
  return {
    headers: {
      "content-type": response.headers.get("content-type") ?? "video/mp4",
      ...(length !== null && { "content-length": length }),
    },
    body: (response.body as AsyncIterable<Uint8Array> | null) ?? NOTHING,
  };
}
const NOTHING: AsyncIterable<Uint8Array> = { async *[Symbol.asyncIterator]() {} };

async function fetchRedirected(client: BatchClient, url: string): Promise<Response> {
  let next = url;
  for (let requests = 0; requests < MAX_REQUESTS; requests++) {
    const response = await client.fetch(next);
    const location = response.headers.get("location");
    if (response.status < 300 || response.status >= 400 || location === null) return response;
    await response.body?.cancel();
    next = location;
  }
  return fail("upstream", "The provider redirects the download of the video too often.", {
    code: "too_many_redirects",
  });
}

/** Encodes the form that creates a video. */
async function formOf(model: string, { prompt, seconds, size, image, user, rest }: VideoRequest) {
  const form = new FormData();
  form.set("model", model);
  form.set("prompt", prompt);
  if (seconds != null) form.set("seconds", String(seconds));
  if (size != null) form.set("size", size);
  if (user != null) form.set("user", user);
  if (image) setImage(form, image);
  for (const [name, value] of Object.entries(rest))
    form.set(name, typeof value === "string" ? value : JSON.stringify(value));
  const encoded = new Response(form);
  const body = Buffer.from(await encoded.arrayBuffer());
  return {
    method: "POST",
    headers: {
      "content-type": encoded.headers.get("content-type")!,
      "content-length": String(body.length),
    },
    body,
  };
}

function setImage(form: FormData, image: Media): void {
  if ("url" in image) return form.set("input_reference[image_url]", image.url);
  if ("fileId" in image)
    return fail("unsupported", "A stored file of another provider cannot be used.", {
      param: "input_reference",
    });
  const bytes = "bytes" in image ? image.bytes : Buffer.from(image.base64, "base64");
  const type = image.mime ?? "image/png";
  const name = `image.${type.slice(type.indexOf("/") + 1)}`;
  form.set("input_reference", new File([new Uint8Array(bytes)], name, { type }));
}

/** @param unknown State if the status is unknown. Default: an error. */
function readStatus(video: JsonObject, unknown?: VideoStatus["state"]): VideoStatus {
  const status = asText(video["status"]) ?? "";
  const state = Object.hasOwn(STATES, status) ? STATES[status] : unknown;
  if (state === undefined)
    return fail("upstream", "The provider returned a video with an unknown status.", {
      code: "bad_answer",
    });
  const seconds = Number(video["seconds"] ?? Number.NaN);
  const expiresAt = asNumber(video["expires_at"]);
  const error = asObject(video["error"]);
  return omitUndefined({
    state,
    progress: asNumber(video["progress"]),
    seconds: Number.isFinite(seconds) && seconds > 0 ? seconds : undefined,
    size: asText(video["size"]),
    expiresAt: expiresAt === undefined ? undefined : expiresAt * 1_000,
    error:
      state === "failed"
        ? {
            code: asText(error?.["code"]) ?? "video_failed",
            message: asText(error?.["message"]) ?? "The provider could not generate the video.",
          }
        : undefined,
  });
}
