// Black Forest Labs: the provider submits a job, polls it until it is done, and fetches its image.
// The API cannot cancel jobs, so polling only stops when the client disconnects.
import { setTimeout as sleep } from "node:timers/promises";
import {
  apiKeySchema,
  defineProvider,
  fail,
  type Call,
  type Context,
  type ImageRequest,
  type JsonObject,
  type Media,
  type ModelEvent,
} from "tollgate/plugin";
import { requireSupported, sniffImage } from "tollgate/protocols/images";
import { facts, encodeJob, parseResultUrl, failJob, parseJob, type Job } from "./bfl/job.ts";

const FIRST_POLL_MS = 500;
const MAX_POLL_MS = 3_000;
const POLL_BACKOFF = 1.3;
const NANO_PER_CREDIT = 1e7;

export default defineProvider({
  api: 1,
  name: "bfl",
  summary: "Black Forest Labs: FLUX images",
  stability: "beta",
  credential: apiKeySchema,
  facts,
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      base_url: {
        type: "string",
        minLength: 1,
        default: "https://api.bfl.ai/v1",
        description:
          "Base URL of the API. https://api.eu.bfl.ai/v1 and https://api.us.bfl.ai/v1 keep " +
          "data in their region",
      },
      timeout_s: {
        type: "integer",
        minimum: 1,
        maximum: 3_600,
        default: 300,
        description: "Timeout of a job, in seconds",
      },
    },
  },
  setup: ({ base_url: base, timeout_s: seconds }, ctx) => ({
    endpoints: [
      {
        operation: "image",
        streaming: "never",
        base,
        origins: ["https://*.bfl.ai"],
        auth: { header: "x-key", field: "api_key" },
        run: (request, call) => run(request, call, { base, deadlineMs: seconds * 1000, ctx }),
      },
    ],
  }),
});

interface ServiceOptions {
  base: string;
  deadlineMs: number;
  ctx: Context;
}

async function* run(r: ImageRequest, call: Call, of: ServiceOptions): AsyncGenerator<ModelEvent> {
  requireSupported({ n: r.n, size: r.size, format: r.format }, call.info);
  const deadline = AbortSignal.timeout(of.deadlineMs);
  const over = new AbortController();
  const until = AbortSignal.any([call.signal, deadline, over.signal]);
  try {
    const request = JSON.stringify(encodeJob(r, call));
    const submit = async () => parseJob(await submitJob(call, call.model, until, request));
    const first = await submit();
    yield { type: "start", id: first.id };
    const jobs = [first, ...(await Promise.all(Array.from({ length: r.n - 1 }, submit)))];
    const pictures = await Promise.all(jobs.map((job) => pollJob(job, r, call, until, of)));
    for (const [index, media] of pictures.entries()) {
      yield { type: "open", index, block: { type: "image" } };
      yield { type: "media", index, media };
      yield { type: "close", index };
    }
    yield { type: "usage", usage: imageUsage(jobs, pictures), costNano: totalCost(jobs) };
    yield { type: "finish", reason: "stop" };
  } catch (error) {
    if (call.signal.aborted) fail("canceled", "The request was canceled.", { cause: error });
    if (deadline.aborted)
      fail("timeout", `The image was not ready within ${of.deadlineMs / 1000} s.`, {
        cause: error,
      });
    throw error;
  } finally {
    // If a job fails or the client disconnects, polling of the other jobs stops.
    over.abort();
  }
}

async function submitJob(
  call: Call,
  url: string,
  signal: AbortSignal,
  request?: string,
): Promise<JsonObject> {
  const answer = await call.fetch(url, {
    method: request === undefined ? "GET" : "POST",
    ...(request !== undefined && { body: request }),
    headers: { accept: "application/json" },
    signal,
  });
  const response = await answer.json().catch(() => ({}));
  const object = (typeof response === "object" && response !== null ? response : {}) as JsonObject;
  return answer.ok ? object : failJob(answer.status, object, answer.headers.get("retry-after"));
}

/**
 * Polls a job until it is done. The job is already paid for, so temporary failures do not end the
 * polling.
 */
async function pollJob(
  job: Job,
  r: ImageRequest,
  call: Call,
  signal: AbortSignal,
  of: ServiceOptions,
): Promise<Media> {
  const at = requireOwnOrigin(job.pollingUrl, of.base);
  for (let wait = FIRST_POLL_MS; ; wait = Math.min(wait * POLL_BACKOFF, MAX_POLL_MS)) {
    await sleep(wait, undefined, { signal });
    const answer = await call
      .fetch(at, { headers: { accept: "application/json" }, signal })
      .catch((error: unknown) => (signal.aborted ? Promise.reject(error) : undefined));
    if (!answer || answer.status === 429 || answer.status >= 500) continue;
    const response = (await answer.json().catch(() => ({}))) as JsonObject;
    const sample = parseResultUrl(response);
    if (sample !== undefined)
      return r.responseFormat === "url" ? { url: sample } : fetchImage(sample, call, signal, of);
    if (!answer.ok) failJob(answer.status, response, null);
  }
}

/**
 * The service returns the URL for polling. It is used only if it is on the service's own hosts,
 * because the request contains the API key.
 */
function requireOwnOrigin(url: string, base: string): string {
  const to = URL.parse(url);
  const bound =
    to?.origin === new URL(base).origin ||
    (to?.protocol === "https:" && to.hostname.endsWith(".bfl.ai"));
  return bound
    ? url
    : fail("upstream", "Black Forest Labs returned a job URL that is not on its own host.", {
        code: "bad_polling_url",
      });
}

/**
 * Fetches an image. Images are at signed URLs on other hosts, so the API key is not sent to them.
 */
async function fetchImage(
  url: string,
  call: Call,
  signal: AbortSignal,
  of: ServiceOptions,
): Promise<Media> {
  const { ctx, base } = of;
  const here = URL.parse(url)?.origin === new URL(base).origin;
  const answer = await (here ? call.fetch(url, { signal }) : ctx.fetch(url, { signal }));
  if (!answer.ok)
    fail("upstream", `Cannot download the image: status ${answer.status}.`, {
      code: "download_failed",
    });
  const bytes = Buffer.from(await answer.arrayBuffer());
  const seen = sniffImage({ bytes });
  return seen
    ? { bytes, mime: seen.mime }
    : fail("upstream", "The downloaded file is not an image.", { code: "no_image" });
}

function imageUsage(jobs: readonly Job[], pictures: readonly Media[]) {
  const megapixels = jobs.map((job, i) => {
    const size = sniffImage(pictures[i]!)?.size;
    return job.megapixels ?? (size && (size.width * size.height) / 1e6);
  });
  const known = megapixels.every((m) => m !== undefined);
  return {
    images: pictures.length,
    ...(known && { megapixels: megapixels.reduce((sum, m) => sum + m, 0) }),
  };
}

/** Returns the total cost in the jobs' reports, or undefined if a job reports none. */
function totalCost(jobs: readonly Job[]): bigint | undefined {
  if (jobs.some((job) => job.cost === undefined)) return undefined;
  return jobs.reduce((sum, job) => sum + BigInt(Math.round(job.cost! * NANO_PER_CREDIT)), 0n);
}
