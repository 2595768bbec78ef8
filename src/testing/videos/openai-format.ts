// OpenAI's videos: a form creates a video, and its content has its own path.
import { jsonResponse, type ScriptedResponse } from "../upstream/scripted-response.ts";
import type { GeneratedVideo, VideoFormat } from "./video-format.ts";

/** OpenAI's videos. */
export const openAiVideoFormat: VideoFormat = {
  async handle(state, { method, route, headers, body }) {
    const [, kind, id, action] = route.split("/");
    if (kind !== "videos") return undefined;
    if (id === undefined) {
      const type = headers["content-type"] ?? "";
      const form = await new Response(new Uint8Array(body), { headers: { "content-type": type } })
        .formData()
        .catch(() => undefined);
      const text = (name: string) => String(form?.get(name) ?? "");
      if (!form || text("model") === "" || text("prompt") === "")
        return rejected("Expected a form with model and prompt.");
      return jsonResponse(
        render(
          state.create({
            fields: { model: text("model"), prompt: text("prompt") },
            seconds: Number(text("seconds") || 4),
            size: text("size") || "720x1280",
          }),
        ),
      );
    }
    const video = method === "GET" && !action ? state.advance(id) : state.videos.get(id);
    if (!video) return rejected("No such video.", 404);
    if (method === "DELETE") {
      state.videos.delete(id);
      return jsonResponse({ id, object: "video.deleted", deleted: true });
    }
    if (action === "content")
      return video.state === "completed"
        ? { headers: { "content-type": "video/mp4" }, body: state.content }
        : rejected("The video is not complete.");
    if (action !== "remix") return jsonResponse(render(video));
    const { prompt } = JSON.parse(body.toString()) as { prompt?: string };
    if (!prompt) return rejected("Expected a prompt.");
    const { seconds, size, fields } = video;
    return jsonResponse(render(state.create({ fields: { ...fields, prompt }, seconds, size })));
  },
};

const rejected = (message: string, status = 400): ScriptedResponse =>
  jsonResponse(
    { error: { message, type: "invalid_request_error", param: null, code: null } },
    status,
  );

const STATUS = {
  queued: "queued",
  running: "in_progress",
  completed: "completed",
  failed: "failed",
};

const render = ({ id, fields, state, seconds, size }: GeneratedVideo) => ({
  id,
  object: "video",
  ...fields,
  status: STATUS[state],
  progress: state === "completed" ? 100 : 0,
  created_at: 1_790_000_000,
  expires_at: 1_790_086_400,
  seconds: String(seconds),
  size,
  error: state === "failed" ? { code: "moderation_blocked", message: "Blocked." } : null,
});
