// A fake API for videos in the process. It keeps the videos that a provider plugin creates.
import { createFault } from "../../model/error.ts";
import type { BatchClient } from "../../plugin/batch.ts";
import type { BatchApiRequest } from "../batches/batch-format.ts";
import { jsonResponse, type ScriptedResponse } from "../upstream/scripted-response.ts";
import { openAiVideoFormat } from "./openai-format.ts";
import type { GeneratedVideo, VideoApiState, VideoFormat } from "./video-format.ts";

/** Script of a fake API for videos. */
export interface VideoApiOptions {
  /** API that is imitated. Default: OpenAI's videos. */
  readonly format?: VideoFormat;
  /** Path of the API before the paths of the format. Default: `/v1`. */
  readonly base?: string;
  /** Number of polls until a video has ended. Default: 1. */
  readonly polls?: number;
  /** How videos end. Default: `completed`. */
  readonly outcome?: "completed" | "failed";
  /** Content of each complete video. Default: 100,000 bytes. */
  readonly content?: Buffer;
  /** Returns another response to a request, which is then not executed. */
  readonly failure?: (request: BatchApiRequest) => ScriptedResponse | undefined;
}

/** A fake API for videos. */
export interface VideoApi {
  /** Videos that exist, by ID. */
  readonly videos: Map<string, GeneratedVideo>;
  /** All requests. */
  readonly requests: readonly BatchApiRequest[];
  readonly content: Buffer;
  /** Returns a client that calls the API in the process. */
  client(origin?: string): BatchClient;
}

/** Creates a fake API for videos. */
export function createVideoApi(options: VideoApiOptions = {}): VideoApi {
  const { format = openAiVideoFormat, base = "/v1", outcome = "completed" } = options;
  const videos = new Map<string, GeneratedVideo>();
  const polls = new Map<string, number>();
  const requests: BatchApiRequest[] = [];
  const content = options.content ?? Buffer.alloc(100_000, "frame ");
  let ids = 0;
  const state: VideoApiState = {
    videos,
    content,
    create(of) {
      const video: GeneratedVideo = { ...of, id: `video_${++ids}`, state: "queued" };
      videos.set(video.id, video);
      return video;
    },
    advance(id) {
      const video = videos.get(id);
      if (!video || video.state === "completed" || video.state === "failed") return video;
      const count = (polls.get(id) ?? 0) + 1;
      polls.set(id, count);
      video.state = count > (options.polls ?? 1) ? outcome : "running";
      return video;
    },
  };
  const handle = async (request: BatchApiRequest): Promise<ScriptedResponse> => {
    requests.push(request);
    const failed = options.failure?.(request);
    if (failed) return failed;
    const { path } = request;
    const route = path.startsWith(base) ? path.slice(base.length) : path;
    return (
      (await format.handle(state, { ...request, route })) ??
      jsonResponse({ error: { message: `No route ${request.method} ${path}.` } }, 404)
    );
  };
  return {
    videos,
    requests,
    content,
    client: (origin = "http://videos.test") => createApiClient(handle, `${origin}${base}`),
  };
}

/** Creates a client that calls an API in the process. */
export function createApiClient(
  handle: (request: BatchApiRequest) => Promise<ScriptedResponse>,
  base: string,
): BatchClient {
  return {
    credential: "default",
    signal: new AbortController().signal,
    async fetch(to, { method = "GET", headers = {}, body } = {}) {
      const text = String(to);
      const url = new URL(/^https?:/.test(text) ? text : `${base}/${text.replace(/^\/+/, "")}`);
      if (typeof body === "function") throw new Error("This API receives complete bodies only.");
      const response = await handle({
        method,
        origin: url.origin,
        path: url.pathname,
        query: url.searchParams,
        headers,
        body: Buffer.from(body ?? ""),
      });
      if (response.truncation)
        throw createFault("upstream", "The connection to the provider broke.", {
          code: "upstream_disconnected",
        });
      const bytes = response.body;
      return new Response(Buffer.isBuffer(bytes) ? new Uint8Array(bytes) : String(bytes ?? ""), {
        status: response.status ?? 200,
        headers: (response.headers ?? {}) as Record<string, string>,
      });
    },
  };
}
