// Routes of /v1/videos, in OpenAI's format.
import { fail, type Body, type RequestHead, type Route, type VideoVariant } from "tollgate/plugin";
import { decodeVideoRequest, readPrompt } from "tollgate/protocols/videos";
import { ownerOf } from "../jobs/owned-records.ts";
import { idOf, ok, readLimit } from "../jobs/routes/request-fields.ts";
import { openaiPaths } from "../route-paths.ts";
import { SUBMIT_MS, type VideoService } from "./video-service.ts";
import { isOpen, type StoredVideo } from "./video-record.ts";

/** Time in milliseconds in which a video is created, with the time of the provider. */
const CREATE_TIMEOUT_MS = SUBMIT_MS + 30_000;
/** Time in milliseconds in which content is read. A client may read slowly. */
const CONTENT_TIMEOUT_MS = 60 * 60_000;
const VARIANTS: readonly string[] = ["video", "thumbnail", "spritesheet"];

export function videoRoutes(videos: VideoService): readonly Route[] {
  const [all, one] = [openaiPaths("/videos"), openaiPaths("/videos/:id")];
  return [
    {
      method: "POST",
      path: all,
      body: "either",
      timeoutMs: CREATE_TIMEOUT_MS,
      async handle(x: RequestHead, body: Body) {
        const request = decodeVideoRequest(body);
        const video = await videos.create(ownerOf(x), x, request);
        return ok(encodeVideo(video, request.prompt));
      },
    },
    {
      method: "GET",
      path: all,
      async handle(x) {
        const owner = ownerOf(x);
        const after = x.query.get("after");
        const { items, hasMore } = await videos.records.list(owner, {
          limit: readLimit(x.query, 20, { min: 0, max: 100 }),
          after: after === null ? undefined : videos.recordOf(owner, after),
          isAscending: readOrder(x.query.get("order")) === "asc",
        });
        const data = items.map((video) => encodeVideo(video));
        const [first_id, last_id] = [data[0]?.id ?? null, data.at(-1)?.id ?? null];
        return ok({ object: "list", data, first_id, last_id, has_more: hasMore });
      },
    },
    {
      method: "GET",
      path: one,
      handle: async (x) => ok(encodeVideo(await videos.find(ownerOf(x), idOf(x)))),
    },
    {
      method: "DELETE",
      path: one,
      async handle(x) {
        const { record } = await videos.delete(ownerOf(x), idOf(x));
        return ok({ id: `video_${record.id}`, object: "video.deleted", deleted: true });
      },
    },
    {
      method: "GET",
      path: one.map((path) => `${path}/content`),
      timeoutMs: CONTENT_TIMEOUT_MS,
      async handle(x) {
        const video = await videos.find(ownerOf(x), idOf(x));
        const { headers, body } = await videos.read(video, readVariant(x), x);
        return {
          status: 200,
          headers: { ...headers, "cache-control": "no-store", "x-content-type-options": "nosniff" },
          body,
        };
      },
    },
    {
      method: "POST",
      path: one.map((path) => `${path}/remix`),
      body: "either",
      timeoutMs: CREATE_TIMEOUT_MS,
      async handle(x: RequestHead, body: Body) {
        const owner = ownerOf(x);
        const source = await videos.find(owner, idOf(x));
        if (source.state !== "completed")
          fail("invalid", "Only a video that is complete can be changed.", {
            code: "video_not_ready",
          });
        const { model, seconds, size } = source;
        const prompt = readPrompt(body);
        const video = await videos.create(
          owner,
          x,
          { operation: "video", model, stream: false, prompt, seconds, size, rest: {}, ext: {} },
          source,
        );
        return ok(encodeVideo(video, prompt));
      },
    },
  ];
}

function readVariant(x: RequestHead): VideoVariant {
  const variant = x.query.get("variant") ?? "video";
  if (!VARIANTS.includes(variant))
    fail("invalid", `variant must be one of ${VARIANTS.join(", ")}.`, { param: "variant" });
  return variant as VideoVariant;
}

function readOrder(order: string | null): "asc" | "desc" {
  if (order === null || order === "desc" || order === "asc") return order ?? "desc";
  return fail("invalid", "order must be asc or desc.", { param: "order" });
}

const seconds = (at: number | undefined): number | null =>
  at === undefined ? null : Math.floor(at / 1_000);

/** @param prompt Prompt of the request. It is not stored, so it is in the first response only. */
function encodeVideo(video: StoredVideo, prompt?: string) {
  const { record, state, end, isQueued, progress = 0, remixOf, endedAt } = video;
  const isComplete = state === "completed";
  const openStatus = isQueued ? "queued" : "in_progress";
  const status = isOpen(state) ? openStatus : isComplete ? "completed" : "failed";
  return {
    id: `video_${record.id}`,
    object: "video",
    model: video.model,
    status,
    progress: isComplete ? 100 : Math.floor(progress),
    created_at: seconds(record.createdAt),
    completed_at: isComplete ? seconds(endedAt) : null,
    expires_at: seconds(video.expiresAt),
    seconds: video.seconds === undefined ? null : String(video.seconds),
    size: video.size ?? null,
    prompt: prompt ?? null,
    remixed_from_video_id: remixOf === undefined ? null : `video_${remixOf}`,
    error: isOpen(state) ? null : (end?.error ?? null),
  };
}
