// A fake of OpenAI's API for videos, and of Google's, with what they bill.
import type { ScriptedResponse, ScriptedRoutes } from "tollgate/testing";

export interface FakeVideo {
  readonly id: string;
  readonly fields: Readonly<Record<string, unknown>>;
  status: "queued" | "in_progress" | "completed" | "failed";
  progress: number;
  seconds: string;
  size: string;
  error: { code: string; message: string } | null;
  remixOf: string | null;
}

const json = (body: unknown, status = 200): ScriptedResponse => ({
  status,
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});
const missing = () => json({ error: { message: "No such video.", code: "not_found" } }, 404);

/** A fake of OpenAI's API for videos. A test changes its members. */
export class FakeVideoApi {
  readonly videos = new Map<string, FakeVideo>();
  readonly requests: { method: string; path: string; headers: Record<string, unknown> }[] = [];
  readonly content = Buffer.alloc(300_000, "frame ");
  /** Called at each poll. */
  onPoll: (video: FakeVideo) => void = (video) => {
    video.status = "completed";
    video.progress = 100;
  };
  /** Status in the response to the request that creates a video. */
  firstStatus = "queued";
  /** Returns another response in place of the usual one. */
  failure: (request: { method: string; path: string }) => ScriptedResponse | undefined = () =>
    undefined;

  reset(): void {
    this.videos.clear();
    this.requests.length = 0;
    this.firstStatus = "queued";
    this.failure = () => undefined;
    this.onPoll = (video) => {
      video.status = "completed";
      video.progress = 100;
    };
  }

  readonly routes: ScriptedRoutes = {
    "* /v1/videos*": async ({ method, path, headers, body, query }) => {
      this.requests.push({ method, path, headers });
      const failed = this.failure({ method, path });
      if (failed) return failed;
      const [, , , id, action] = path.split("/");
      if (id === undefined) {
        const type = String(headers["content-type"]);
        const form = await new Response(new Uint8Array(body), {
          headers: { "content-type": type },
        }).formData();
        const created = render(this.#create(Object.fromEntries(form), null));
        return json({ ...created, status: this.firstStatus });
      }
      const video = this.videos.get(id);
      if (!video) return missing();
      if (method === "DELETE") {
        this.videos.delete(id);
        return json({ id, object: "video.deleted", deleted: true });
      }
      if (action === "remix") {
        const { prompt } = JSON.parse(body.toString()) as { prompt: string };
        const { model } = video.fields;
        const fields = { model, prompt, seconds: video.seconds, size: video.size };
        return json(render(this.#create(fields, id)));
      }
      if (action === "content")
        return {
          headers: { "content-type": query.get("variant") ? "image/webp" : "video/mp4" },
          body: this.content,
        };
      if (video.status !== "completed" && video.status !== "failed") this.onPoll(video);
      return json(render(video));
    },
  };

  #create(fields: Record<string, unknown>, remixOf: string | null): FakeVideo {
    const video: FakeVideo = {
      id: `video_up${this.videos.size + 1}`,
      fields,
      status: "queued",
      progress: 0,
      seconds: String(fields["seconds"] ?? "4"),
      size: String(fields["size"] ?? "720x1280"),
      error: null,
      remixOf,
    };
    this.videos.set(video.id, video);
    return video;
  }
}

const render = ({ id, fields, remixOf, ...video }: FakeVideo) => ({
  id,
  object: "video",
  model: fields["model"],
  created_at: 1_790_000_000,
  completed_at: null,
  expires_at: 1_790_086_400,
  prompt: fields["prompt"],
  remixed_from_video_id: remixOf,
  ...video,
});

/** A fake of Google's operations that generate videos. */
export class FakeVeoApi {
  readonly bodies: Record<string, any>[] = [];
  readonly content = Buffer.from("veo bytes");
  result: Record<string, unknown> = {
    response: {
      generateVideoResponse: {
        generatedSamples: [
          { video: { uri: "https://google.test/v1beta/files/f1:download?alt=media" } },
        ],
      },
    },
  };
  /** Address to which the download is redirected. */
  redirect: string | undefined;
  /** Credentials of each request to a file. */
  readonly keys: unknown[] = [];
  readonly routes: ScriptedRoutes = {
    "POST /v1beta/models/*": ({ body }) => {
      this.bodies.push(JSON.parse(body.toString()));
      return json({ name: "models/veo-3.1-generate-preview/operations/op1" });
    },
    "GET /v1beta/models/veo-3.1-generate-preview/operations/op1": () =>
      json({ name: "models/veo-3.1-generate-preview/operations/op1", done: true, ...this.result }),
    "GET /v1beta/files/*": ({ headers }) => {
      this.keys.push(headers["x-goog-api-key"]);
      return this.redirect === undefined
        ? { headers: { "content-type": "video/mp4" }, body: this.content }
        : { status: 302, headers: { location: this.redirect } };
    },
  };
}
