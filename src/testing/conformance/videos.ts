// Checks of videos. A fake of the provider's API generates the videos, so the checks know what was
// requested and what is billed.
import assert from "node:assert/strict";
import { getFault, type ErrorKind } from "../../model/error.ts";
import { videoOperation } from "../../model/operations/video-operation.ts";
import type { VideoRequest } from "../../model/request.ts";
import type { BatchClient } from "../../plugin/batch.ts";
import type { EndpointVideos, VideoStatus } from "../../plugin/jobs/video.ts";
import type { Provider, VideoEndpoint } from "../../plugin/provider.ts";
import type { Check } from "../check.ts";
import { jsonResponse } from "../upstream/scripted-response.ts";
import { createVideoApi, type VideoApiOptions } from "../videos/video-api.ts";
import { openAiVideoFormat } from "../videos/openai-format.ts";
import { createSetupCheck } from "./side-effects.ts";
import type { ConformanceSubject } from "./subject.ts";

/** Returns the checks of a provider's videos. */
export function videoChecks(subject: ConformanceSubject): Check[] {
  const each = createSetupCheck<Provider>(subject);
  const check = (name: string, run: (of: VideoSubject) => Promise<unknown>) =>
    each(`videos: ${name}`, async (provider) => {
      for (const endpoint of provider.endpoints)
        if ("videos" in endpoint) await run({ endpoint, videos: endpoint.videos, subject });
    });
  return [
    check("a video is polled to its end, with its seconds and size", checkEnd),
    check("a reference is short, and contains no content", checkReference),
    check("a video that failed has a reason and no length to bill", checkFailed),
    check("the content is returned unchanged", checkContent),
    check("a video that was deleted is not found", checkDeleted),
    check("a rejection is distinguished from a lost answer", checkRejections),
    check("an error of the API is a fault", checkFaults),
  ];
}

interface VideoSubject {
  readonly endpoint: VideoEndpoint;
  readonly videos: EndpointVideos;
  readonly subject: ConformanceSubject;
}

function startApi({ endpoint, subject }: VideoSubject, options: VideoApiOptions = {}) {
  const { origin, pathname } = new URL(endpoint.base ?? "http://videos.test/v1");
  const api = createVideoApi({
    format: subject.videos ?? openAiVideoFormat,
    base: pathname.replace(/\/$/, ""),
    ...options,
  });
  return { api, client: api.client(origin) };
}

const PROMPT = "A sunrise over the sea: ☕";
const REQUEST: VideoRequest = {
  ...videoOperation.sampleRequest("model"),
  prompt: PROMPT,
  seconds: 8,
  size: "1280x720",
};

const start = ({ videos }: VideoSubject, client: BatchClient) =>
  videos.create({ key: "job-1", model: "model", request: REQUEST }, client);

async function waitForEnd(videos: EndpointVideos, reference: string, client: BatchClient) {
  for (let polls = 0; polls < 10; polls++) {
    const status = await videos.poll(reference, client);
    if (status.state === "completed" || status.state === "failed") return status;
  }
  return assert.fail("poll() does not report that the video has ended");
}

async function checkEnd(of: VideoSubject): Promise<void> {
  const { api, client } = startApi(of, { polls: 2 });
  const { reference, status: first } = await start(of, client);
  assert.equal(api.videos.size, 1, "create() must start one video");
  assert.ok(["queued", "running"].includes(first.state), "a video that was started has not ended");
  const open: VideoStatus = await of.videos.poll(reference, client);
  assert.equal(open.state, "running", "a video that is not complete");
  const last = await waitForEnd(of.videos, reference, client);
  assert.equal(last.state, "completed", "the state of a video that is complete");
  assert.equal(last.seconds ?? first.seconds, 8, "the seconds that are billed");
  assert.equal(last.size ?? first.size, "1280x720", "the size that is billed");
}

async function checkReference(of: VideoSubject): Promise<void> {
  const { client } = startApi(of);
  const { reference } = await start(of, client);
  assert.equal(typeof reference, "string", "create() must return a text");
  assert.ok(Buffer.byteLength(reference) <= 2048, "a reference must be at most 2 KiB");
  assert.ok(!reference.includes("sunrise"), "a reference must not contain the prompt");
}

async function checkFailed(of: VideoSubject): Promise<void> {
  const { client } = startApi(of, { outcome: "failed" });
  const { reference } = await start(of, client);
  const status = await waitForEnd(of.videos, reference, client);
  assert.equal(status.state, "failed", "the state of a video that failed");
  assert.ok(status.error?.message, "the reason must be reported in `error`");
}

async function checkContent(of: VideoSubject): Promise<void> {
  const { api, client } = startApi(of);
  const { reference } = await start(of, client);
  await waitForEnd(of.videos, reference, client);
  const { headers, body } = await of.videos.readContent(reference, "video", client);
  const pieces: Uint8Array[] = [];
  for await (const piece of body) pieces.push(piece);
  assert.ok(headers["content-type"], "the content must have a content type");
  assert.ok(Buffer.concat(pieces).equals(api.content), "the content must be complete");
}

const isKind =
  (...kinds: ErrorKind[]) =>
  (error: unknown): boolean =>
    kinds.includes(getFault(error)?.kind as ErrorKind);

async function checkDeleted(of: VideoSubject): Promise<void> {
  const { api, client } = startApi(of);
  const { videos } = of;
  const { reference } = await start(of, client);
  await waitForEnd(videos, reference, client);
  for (let turn = 0; turn < 2; turn++) await videos.delete?.(reference, client);
  api.videos.clear();
  const missing = isKind("not_found");
  await assert.rejects(videos.poll(reference, client), missing, "poll() of a deleted video");
  await assert.rejects(
    videos.readContent(reference, "video", client),
    missing,
    "readContent() of a deleted video",
  );
}

async function checkRejections(of: VideoSubject): Promise<void> {
  const reply = (status: number, message: string) => ({
    failure: () => jsonResponse({ error: { message, status: "INVALID_ARGUMENT" } }, status),
  });
  const isAmbiguous = isKind("upstream", "timeout");
  for (const status of [400, 401, 403, 429]) {
    const { client } = startApi(of, reply(status, "Rejected."));
    await assert.rejects(
      start(of, client),
      (error) => getFault(error) !== undefined && !isAmbiguous(error),
      `a rejection with status ${status} must not have the kind upstream or timeout`,
    );
  }
  const { client } = startApi(of, {
    failure: () => ({ truncation: { after: "nothing", how: "reset" } }),
  });
  await assert.rejects(start(of, client), isAmbiguous, "a lost answer must be a fault");
}

const FAULTS = [
  jsonResponse({ error: { message: "Busy." } }, 503),
  { status: 502, body: "<html>", headers: { "content-type": "text/html" } },
  { status: 200, body: "<html>", headers: { "content-type": "text/html" } },
];

async function checkFaults(of: VideoSubject): Promise<void> {
  const isFault = (error: unknown): boolean => getFault(error) !== undefined;
  for (const failed of FAULTS) {
    let fails = false;
    const { client } = startApi(of, { failure: () => (fails ? failed : undefined) });
    const { reference } = await start(of, client);
    fails = true;
    await assert.rejects(start(of, client), isFault, "create()");
    await assert.rejects(of.videos.poll(reference, client), isFault, "poll()");
  }
}
