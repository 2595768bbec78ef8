// Generates several images for one request. Image models create one image per call, so one call is
// made per image.
import {
  fail,
  UNITS,
  type Call,
  type ImageRequest,
  type Media,
  type ModelEvent,
  type Usage,
} from "tollgate/plugin";
import { geminiImage } from "tollgate/protocols/gemini";

/** Maximum number of images of a request in the images protocol. */
const MAX_IMAGES = 10;
const CONCURRENCY = 4;

interface GeneratedImages {
  media: readonly Media[];
  usage: Usage;
}

export async function* generateImages(r: ImageRequest, call: Call): AsyncGenerator<ModelEvent> {
  if (r.n > MAX_IMAGES)
    fail("unsupported", `${call.model} creates up to ${MAX_IMAGES} images per request.`, {
      param: "n",
    });
  for (const field in r.rest) call.reportLoss(field, "dropped");
  const one = { ...r, n: 1, stream: false, rest: {} };
  const done: GeneratedImages[] = [];
  const over = new AbortController();
  const signal = AbortSignal.any([call.signal, over.signal]);
  let left = r.n;
  let problem: { error: unknown } | undefined;
  const draw = async () => {
    while (left-- > 0 && !problem)
      try {
        done.push(await generateImage(one, call, signal));
      } catch (error) {
        // If one image fails, the whole request fails.
        problem ??= { error };
        over.abort();
      }
  };
  await Promise.all(Array.from({ length: Math.min(CONCURRENCY, r.n) }, draw));
  if (done.length > 0) yield { type: "start" };
  // Completed images are billed even if the request fails.
  if (problem && done.length > 0) yield { type: "usage", usage: addUsage(done) };
  if (problem) throw problem.error;
  const pictures = done.flatMap(({ media }) => media);
  for (const [index, media] of pictures.entries()) {
    yield { type: "open", index, block: { type: "image" } };
    yield { type: "media", index, media };
    yield { type: "close", index };
  }
  yield { type: "usage", usage: addUsage(done) };
  yield { type: "finish", reason: "stop" };
}

const client = geminiImage().client!;

async function generateImage(
  r: ImageRequest,
  call: Call,
  signal: AbortSignal,
): Promise<GeneratedImages> {
  const of = {
    actionType: "generate",
    action: "generate",
    model: call.model,
    info: call.info,
    stream: false,
    params: {},
    query: new URLSearchParams(),
    reportLoss: (field: string, how: "dropped" | "approximated", code?: string) =>
      call.reportLoss(field, how, code),
  } as const;
  const { generate } = client.paths;
  const path = typeof generate === "string" ? generate : generate(of);
  const answer = await call.fetch(path.replace(/^\//, ""), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(client.encodeRequest(r, of)),
    signal,
  });
  const body = Buffer.from(await answer.arrayBuffer());
  const headers = Object.fromEntries(answer.headers);
  if (!answer.ok) {
    const { kind, message, ...more } = client.decodeFault(answer.status, headers, body);
    return fail(kind, message, more);
  }
  const media: Media[] = [];
  let usage: Usage = {};
  client.decodeResponse(
    body,
    (event) => {
      if (event.type === "media" && !event.partial) media.push(event.media);
      if (event.type === "usage") usage = event.usage;
    },
    of,
    headers,
  );
  return { media, usage };
}

function addUsage(all: readonly GeneratedImages[]): Usage {
  const total: { -readonly [U in keyof Usage]: Usage[U] } = {};
  for (const { usage } of all)
    for (const unit of UNITS)
      if (usage[unit] !== undefined) total[unit] = (total[unit] ?? 0) + usage[unit];
  return total;
}
