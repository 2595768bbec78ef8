// Google's operations that generate videos, for the conformance checks.
import type { GeneratedVideo, VideoFormat } from "tollgate/testing";

const SIZES: { readonly [form: string]: string } = {
  "16:9 720p": "1280x720",
  "9:16 720p": "720x1280",
};
const json = (body: unknown, status = 200) => ({
  status,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});

const geminiVideoFormat: VideoFormat = {
  handle(state, { method, route, body }) {
    const started = /^\/models\/([^/]+):predictLongRunning$/.exec(route);
    if (started && method === "POST") {
      const { instances, parameters } = JSON.parse(body.toString());
      const form = `${parameters.aspectRatio} ${parameters.resolution}`;
      const { id } = state.create({
        fields: { model: started[1]!, prompt: instances[0].prompt },
        seconds: parameters.durationSeconds,
        size: SIZES[form] ?? form,
      });
      return json({ name: `models/${started[1]}/operations/${id}` });
    }
    const [, name, id] = /^\/(models\/[^/]+\/operations\/(\w+))$/.exec(route) ?? [];
    const file = /^\/files\/(\w+):download$/.exec(route)?.[1];
    const video = id === undefined ? state.videos.get(file ?? "") : state.advance(id);
    if (!video) return json({ error: { message: "Not found.", status: "NOT_FOUND" } }, 404);
    if (file !== undefined)
      return { headers: { "content-type": "video/mp4" }, body: state.content };
    return json({ name, ...resultOf(video) });
  },
};

function resultOf({ id, state }: GeneratedVideo) {
  if (state === "failed") return { done: true, error: { code: 3, message: "Blocked." } };
  if (state !== "completed") return {};
  const uri = `https://generativelanguage.googleapis.com/v1beta/files/${id}:download?alt=media`;
  return {
    done: true,
    response: { generateVideoResponse: { generatedSamples: [{ video: { uri } }] } },
  };
}

/** APIs for videos of built-in providers that are not OpenAI's. */
export const VIDEO_FORMATS: { readonly [provider: string]: VideoFormat } = {
  google: geminiVideoFormat,
};
