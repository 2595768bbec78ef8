// Videos with OpenAI's SDK: from the request to the content, with the bill that follows from what the
// provider reported.
import OpenAI, { toFile } from "openai";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import type { Facts } from "tollgate/plugin";
import { startUpstream, type TestUpstream } from "tollgate/testing";
import googleProvider from "../../../plugins/providers/google.ts";
import openaiProvider from "../../../plugins/providers/openai.ts";
import { digestKey, mintKey } from "../../../src/lib/api-key.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { FakeVeoApi, FakeVideoApi } from "../../kit/video-api.ts";
import { until } from "../../kit/wait.ts";

const [alice, bob, poor] = [mintKey().secret, mintKey().secret, mintKey().secret];
const key = (id: string, secret: string, more = "") =>
  `{ id: ${id}, digest: ${digestKey(secret)}${more} }`;
const sora = new FakeVideoApi();
const veo = new FakeVeoApi();
/** Returns the video models that the provider ships, for gateway.yaml: they apply to its own URL only. */
const modelsOf = ({ facts }: { readonly facts?: Facts }) =>
  JSON.stringify(
    Object.fromEntries(
      facts!.models
        .filter(({ operation }) => operation === "video")
        .map(({ model, operation, price }) => [
          model,
          {
            operation,
            price: {
              variants: price!.lines.map(({ variant, unit, usd }) => ({ ...variant, unit, usd })),
            },
          },
        ]),
    ),
  );
let up: TestUpstream;
let gateway: InProcessGateway;

beforeAll(async () => {
  up = await startUpstream({ ...sora.routes, ...veo.routes });
  gateway = await startInProcess({
    yaml: `
frontends: [videos]
providers:
  openai:
    use: openai
    with: { api_key: secret, base_url: "${up.url}/v1" }
    models: ${modelsOf(openaiProvider)}
  google:
    use: google
    with: { api_key: g-secret, base_url: "${up.url}" }
    models: ${modelsOf(googleProvider)}
  host:
    use: openai-compatible
    with: { base_url: "${up.url}/v1", videos: ["film*"], list_models: false }
    models: { film-1: { operation: video, price: { seconds_out: "0.05" } } }
  private:
    use: openai-compatible
    with: { base_url: "${up.url}/v1", videos: ["film*"], list_models: false }
    models: { film-2: { operation: video, price: { seconds_out: "0.05" } } }
    credentials: [{ name: own, with: { api_key: k }, zdr: { declared: true } }]
middleware:
  - use: zdr
  - use: auth
    with:
      keys: [${key("alice", alice)}, ${key("bob", bob)}, ${key("poor", poor, ", limits: [usd=1/day]")}]
`,
  });
});
afterAll(async () => {
  await gateway?.[Symbol.asyncDispose]();
  await up?.[Symbol.asyncDispose]();
});
beforeEach(() => sora.reset());

const openai = (apiKey: string) =>
  new OpenAI({ apiKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 });

async function ended(client: OpenAI, { id }: { id: string }) {
  let video = await client.videos.retrieve(id);
  await until(async () => {
    video = await client.videos.retrieve(id);
    return video.status === "completed" || video.status === "failed";
  });
  return video;
}

interface Entry {
  attempt: string;
  state: string;
  usage: Record<string, number>;
  costNano: string | null;
  outcome: string;
}
async function rowOf({ id }: { id: string }): Promise<Entry> {
  let row: Entry | undefined;
  await until(async () => {
    const { items } = (await gateway.ask("ledger.entries", { limit: 1_000 })) as unknown as {
      items: Entry[];
    };
    const rows = items.filter(({ attempt, state }) => attempt === id && state !== "open");
    expect(rows.length).toBeLessThan(2);
    [row] = rows;
    return row !== undefined;
  });
  return row!;
}

const error = async (promise: Promise<unknown>) => {
  const failed = await promise.then(
    () => undefined,
    (problem: unknown) => problem,
  );
  expect(failed).toBeInstanceOf(OpenAI.APIError);
  return failed as InstanceType<typeof OpenAI.APIError> & { readonly status: number };
};

it("a video is created, polled, billed by its seconds and size, read, listed, and deleted", async () => {
  const client = openai(alice);
  const created = await client.videos.create({
    model: "openai/sora-2-pro",
    prompt: "A cat on a fence",
    seconds: "8",
    size: "1792x1024",
  });
  expect(created).toMatchObject({
    object: "video",
    model: "openai/sora-2-pro",
    prompt: "A cat on a fence",
    seconds: "8",
    size: "1792x1024",
  });
  expect(created.id).not.toContain("up1");
  const video = await ended(client, created);
  expect(video).toMatchObject({ status: "completed", progress: 100, error: null, prompt: null });
  expect(video.expires_at).toBe(1_790_086_400);
  expect(await rowOf(video)).toMatchObject({
    state: "exact",
    outcome: "ok",
    usage: { seconds_out: 8 },
    costNano: "4000000000",
  });
  const content = await client.videos.downloadContent(video.id);
  expect(content.headers.get("content-type")).toBe("video/mp4");
  expect(Buffer.from(await content.arrayBuffer()).equals(sora.content)).toBe(true);
  const preview = await client.videos.downloadContent(video.id, { variant: "thumbnail" });
  expect(preview.headers.get("content-type")).toBe("image/webp");
  const listed = await client.videos.list({ limit: 1 });
  expect(listed.data.map(({ id }) => id)).toEqual([video.id]);
  expect(await client.videos.delete(video.id)).toMatchObject({ deleted: true });
  expect(sora.videos.size).toBe(0);
  expect((await error(client.videos.retrieve(video.id))).status).toBe(404);
  expect(sora.requests.every(({ headers }) => headers["authorization"] === "Bearer secret")).toBe(
    true,
  );
});

it("the bill follows from what the provider reports at the end, not from the request", async () => {
  sora.onPoll = (video) =>
    Object.assign(video, { status: "completed", seconds: "4", size: "1280x720" });
  const client = openai(alice);
  const video = await ended(
    client,
    await client.videos.create({
      model: "openai/sora-2-pro",
      prompt: "x",
      seconds: "12",
      size: "1792x1024",
    }),
  );
  expect(video).toMatchObject({ seconds: "4", size: "1280x720" });
  expect(await rowOf(video)).toMatchObject({ usage: { seconds_out: 4 }, costNano: "1200000000" });
});

it("an image is sent as a file", async () => {
  const client = openai(alice);
  const image = await toFile(Buffer.from("png"), "start.png", { type: "image/png" });
  await client.videos.create({ model: "openai/sora-2", prompt: "x", input_reference: image });
  const [sent] = sora.videos.values();
  const file = sent!.fields["input_reference"] as File;
  expect(file.type).toBe("image/png");
  expect(await file.text()).toBe("png");
});

it("a video that fails costs nothing", async () => {
  sora.onPoll = (video) =>
    Object.assign(video, {
      status: "failed",
      error: { code: "moderation_blocked", message: "No." },
    });
  const client = openai(alice);
  const video = await ended(
    client,
    await client.videos.create({ model: "openai/sora-2", prompt: "x" }),
  );
  expect(video.error).toEqual({ code: "moderation_blocked", message: "No." });
  expect(await rowOf(video)).toMatchObject({ state: "void", outcome: "failed", costNano: "0" });
  expect((await error(client.videos.downloadContent(video.id))).code).toBe(
    "video_content_unavailable",
  );
});

it("a video that the provider has deleted is billed as an estimate", async () => {
  sora.onPoll = ({ id }) => void sora.videos.delete(id);
  const client = openai(alice);
  const created = await client.videos.create({ model: "openai/sora-2", prompt: "x", seconds: "8" });
  sora.onPoll = () => {};
  sora.videos.clear();
  const video = await ended(client, created);
  expect(video.error?.code).toBe("video_deleted");
  expect(await rowOf(video)).toMatchObject({
    state: "estimated",
    outcome: "deleted",
    costNano: "800000000",
  });
});

it("a video can be changed by its provider", async () => {
  const client = openai(alice);
  const first = await ended(
    client,
    await client.videos.create({ model: "openai/sora-2", prompt: "x", seconds: "8" }),
  );
  const created = await client.videos.remix(first.id, { prompt: "Make it blue" });
  const second = await ended(client, created);
  expect(second).toMatchObject({ remixed_from_video_id: first.id, seconds: "8" });
  expect([...sora.videos.values()][1]).toMatchObject({
    remixOf: "video_up1",
    fields: { prompt: "Make it blue" },
  });
  expect(await rowOf(second)).toMatchObject({ costNano: "800000000" });
});

it("Google's videos have the same form, and are billed by their size", async () => {
  const client = openai(alice);
  const video = await ended(
    client,
    await client.videos.create({
      model: "google/veo-3.1-generate-preview",
      prompt: "A sunrise",
      seconds: 6 as never,
      size: "3840x2160" as never,
    }),
  );
  expect(veo.bodies[0]).toEqual({
    instances: [{ prompt: "A sunrise" }],
    parameters: { aspectRatio: "16:9", resolution: "4k", durationSeconds: 6, sampleCount: 1 },
  });
  expect(video).toMatchObject({ status: "completed", seconds: "6", size: "3840x2160" });
  expect(await rowOf(video)).toMatchObject({ usage: { seconds_out: 6 }, costNano: "3600000000" });
  const content = await client.videos.downloadContent(video.id);
  expect(await content.text()).toBe("veo bytes");
  expect(veo.keys).toEqual(["g-secret"]);
  expect((await error(client.videos.remix(video.id, { prompt: "y" }))).code).toBe(
    "remix_not_supported",
  );
});

it("Google's filtered videos fail and cost nothing", async () => {
  const before = veo.result;
  veo.result = {
    response: { generateVideoResponse: { raiMediaFilteredReasons: ["A person is shown."] } },
  };
  const client = openai(alice);
  const video = await ended(
    client,
    await client.videos.create({ model: "google/veo-3.1-generate-preview", prompt: "x" }),
  );
  veo.result = before;
  expect(video.error).toEqual({ code: "content_filtered", message: "A person is shown." });
  expect(await rowOf(video)).toMatchObject({ state: "void", costNano: "0" });
});

it("videos of another owner do not exist", async () => {
  const created = await openai(alice).videos.create({ model: "openai/sora-2", prompt: "x" });
  const client = openai(bob);
  for (const id of [created.id, "video_nothing", `${created.id.slice(0, -1)}A`]) {
    const all = [
      client.videos.retrieve(id),
      client.videos.downloadContent(id),
      client.videos.delete(id),
      client.videos.remix(id, { prompt: "x" }),
    ];
    for (const one of all) {
      const failed = await error(one);
      expect(failed.status).toBe(404);
      expect(failed.message).toBe(`404 No such video: ${id.slice(0, 64)}`);
    }
  }
  expect((await client.videos.list()).data).toEqual([]);
  expect((await error(client.videos.list({ after: created.id }))).status).toBe(400);
});

it("a budget reserves the whole video, and gets the rest back", async () => {
  const client = openai(poor);
  sora.onPoll = () => {};
  const first = await client.videos.create({ model: "openai/sora-2", prompt: "x", seconds: "8" });
  const denied = await error(
    client.videos.create({ model: "openai/sora-2", prompt: "x", seconds: "4" }),
  );
  expect(denied.status).toBe(429);
  expect(sora.videos.size).toBe(1);
  sora.onPoll = (video) => void Object.assign(video, { status: "completed", seconds: "4" });
  await ended(client, first);
  expect((await rowOf(first)).costNano).toBe("400000000");
  const second = await client.videos.create({ model: "openai/sora-2", prompt: "x", seconds: "4" });
  expect((await rowOf(await ended(client, second))).costNano).toBe("400000000");
});

it("a rejected request reserves nothing, and a lost one is billed as an estimate", async () => {
  const client = openai(alice);
  const reject = (status: number, message: string, type: string) => {
    sora.failure = ({ method }) =>
      method === "POST"
        ? {
            status,
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ error: { message, type } }),
          }
        : undefined;
  };
  reject(400, "Bad prompt.", "invalid_request_error");
  const create = () => client.videos.create({ model: "openai/sora-2", prompt: "x", seconds: "8" });
  const rejected = await error(create());
  expect(rejected.status).toBe(400);
  expect(rejected.message).toContain("Bad prompt.");
  reject(503, "Broken.", "server_error");
  expect((await error(create())).status).toBeGreaterThanOrEqual(500);
  sora.failure = () => ({ truncation: { after: "nothing", how: "reset" } });
  expect((await error(create())).status).toBeGreaterThanOrEqual(500);
  const ended = async (outcome: string) => {
    const { items } = (await gateway.ask("ledger.entries", { limit: 1_000 })) as unknown as {
      items: Entry[];
    };
    return items.filter((entry) => entry.outcome === outcome);
  };
  await until(async () => (await ended("lost")).length > 0);
  expect(await ended("lost")).toMatchObject([{ state: "estimated", costNano: "800000000" }]);
  expect(await ended("invalid")).toMatchObject([{ state: "void", costNano: "0" }]);
  expect(await ended("overloaded")).toMatchObject([{ state: "void", costNano: "0" }]);
});

it("invalid requests get errors in OpenAI's format", async () => {
  const client = openai(alice);
  const cases = [
    [{ prompt: "x" }, "model"],
    [{ model: "openai/sora-2" }, "prompt"],
    [{ model: "openai/sora-2", prompt: "x", seconds: "many" }, "seconds"],
    [{ model: "openai/sora-2", prompt: "x", size: "big" }, "size"],
    [
      { model: "openai/sora-2", prompt: "x", input_reference: { file_id: "file-1" } },
      "input_reference",
    ],
    [{ model: "google/veo-3.1-generate-preview", prompt: "x", size: "100x100" }, "size"],
    [{ model: "openai/gpt-4o", prompt: "x" }, "model"],
  ] as const;
  for (const [body, param] of cases) {
    const failed = await error(client.videos.create(body as never));
    expect([failed.param, failed.status < 500]).toEqual([param, true]);
  }
  expect((await error(client.videos.list({ limit: 1_000 }))).param).toBe("limit");
  expect(sora.videos.size).toBe(0);
});

it("compatible hosts, and zero data retention of a declared provider", async () => {
  const client = openai(alice);
  const video = await ended(
    client,
    await client.videos.create({ model: "host/film-1", prompt: "x" }),
  );
  expect((await rowOf(video)).costNano).toBe("200000000");
  const zdr = { headers: { "service-zdr": "required" } };
  const refused = await error(client.videos.create({ model: "host/film-1", prompt: "x" }, zdr));
  expect(refused.code).toBe("zdr_unavailable");
  await client.videos.create({ model: "private/film-2", prompt: "x" }, zdr);
});

it("operators see videos", async () => {
  const client = openai(alice);
  const video = await ended(
    client,
    await client.videos.create({ model: "openai/sora-2", prompt: "x" }),
  );
  await rowOf(video);
  await until(async () => {
    const { items } = (await gateway.ask("jobs.list", { kind: "video" })) as unknown as {
      items: { id: string; status: string; costNano?: string }[];
    };
    return items.some(({ id, status }) => id === video.id && status === "completed");
  });
});

it("a video that the provider cannot delete is kept", async () => {
  const client = openai(alice);
  const video = await ended(
    client,
    await client.videos.create({ model: "openai/sora-2", prompt: "x" }),
  );
  sora.failure = ({ method }) =>
    method === "DELETE"
      ? {
          status: 503,
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ error: { message: "Busy." } }),
        }
      : undefined;
  expect((await error(client.videos.delete(video.id))).status).toBe(503);
  expect((await client.videos.retrieve(video.id)).status).toBe("completed");
  sora.failure = () => undefined;
  sora.videos.clear();
  expect(await client.videos.delete(video.id)).toMatchObject({ deleted: true });
});

it("an unknown status in the answer to the request is that of a queued video", async () => {
  const client = openai(alice);
  sora.firstStatus = "scheduled";
  const created = await client.videos.create({ model: "openai/sora-2", prompt: "x" });
  expect(created.status).toBe("queued");
  expect((await ended(client, created)).status).toBe("completed");
});

it("a list continues after a video that was deleted", async () => {
  const client = openai(alice);
  const made: string[] = [];
  for (let n = 0; n < 3; n++) {
    const { id } = await client.videos.create({ model: "openai/sora-2", prompt: "x" });
    await ended(client, { id });
    made.push(id);
  }
  const [first, second, third] = made;
  await client.videos.delete(second!);
  const page = async (order: "asc" | "desc") =>
    (await client.videos.list({ after: second!, limit: 1, order })).data.map(({ id }) => id);
  expect(await page("desc")).toEqual([first]);
  expect(await page("asc")).toEqual([third]);
});
