// The end of the time in which a video has to end: the provider is polled before the video expires,
// and a gateway without the provider does not end the videos of other gateways.
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { fail, type Context, type JobCalls, type VideoStatus } from "tollgate/plugin";
import { createTestContext, type TestContext } from "tollgate/testing";
import { VideoEngine } from "../../../plugins/frontends/videos/video-engine.ts";
import {
  isOpen,
  parseVideo,
  VideoRecords,
  type VideoData,
} from "../../../plugins/frontends/videos/video-record.ts";
import { createMemoryJobs } from "../../../src/store/job-table.ts";
import { turnEventLoop } from "../../kit/wait.ts";

const HOUR_MS = 3_600_000;
const DATA: VideoData = {
  model: "film",
  target: { provider: "fake", model: "film", credential: "default" },
  reference: "r1",
  pricedAt: 0,
  holdNano: "1",
};

let test: TestContext;
beforeEach(() => {
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"],
  });
  test = createTestContext();
});
afterEach(async () => {
  await test.end();
  vi.useRealTimers();
});

/** Runs an engine until the video has ended. Returns its end, and its age at that time. */
async function runToEnd(of: {
  age: number;
  poll: () => VideoStatus;
  /** Whether the gateway has the provider in its config. */
  hasProvider?: () => boolean;
}) {
  const jobs = createMemoryJobs();
  const createdAt = Date.now() - of.age;
  await jobs.put({
    id: "v1",
    kind: "video",
    key: "alice",
    version: 1,
    createdAt,
    state: "running",
    dueAt: Date.now(),
    attempt: "video_v1",
    data: JSON.stringify(DATA),
  });
  const jobCalls: Partial<JobCalls> = {
    settleCall: async () => ({ state: "estimated", costNano: 1n }),
    openVideos: () =>
      (of.hasProvider?.() ?? true)
        ? { client: undefined as never, videos: { poll: async () => of.poll() } as never }
        : undefined,
  };
  const ctx = { ...test.ctx, jobs, jobCalls } as Context;
  new VideoEngine(ctx, new VideoRecords(() => jobs), 1_000 * HOUR_MS).start();
  for (let steps = 0; steps < 2_000; steps++) {
    const video = parseVideo((await jobs.find("v1"))!);
    if (!isOpen(video.state)) return { state: video.state, age: Date.now() - createdAt };
    await vi.advanceTimersToNextTimerAsync();
    await turnEventLoop(3);
  }
  throw new Error("The video has not ended.");
}

const completed = (): VideoStatus => ({ state: "completed", seconds: 4 });

it("a video that completed while the gateway was down has not expired", async () => {
  expect((await runToEnd({ age: 30 * HOUR_MS, poll: completed })).state).toBe("completed");
});

it.each([
  ["is still open", (): VideoStatus => ({ state: "running" })],
  ["cannot be polled", () => fail("unavailable", "Busy.")],
])("a video that %s after the time has expired", async (_what, poll) => {
  expect((await runToEnd({ age: 25 * HOUR_MS, poll })).state).toBe("expired");
});

it("a long delay of the provider does not postpone the last poll", async () => {
  const poll = () => fail("rate_limited", "Later.", { retryAfterMs: 90 * HOUR_MS });
  const { state, age } = await runToEnd({ age: 23 * HOUR_MS, poll });
  expect(state).toBe("expired");
  expect(age).toBeLessThan(25 * HOUR_MS);
});

it("a gateway without the provider waits for another one, and ends the video at the latest", async () => {
  let calls = 0;
  const back = await runToEnd({ age: 0, poll: completed, hasProvider: () => ++calls > 3 });
  expect(back.state).toBe("completed");
  const gone = await runToEnd({ age: 23 * HOUR_MS, poll: completed, hasProvider: () => false });
  expect(gone.state).toBe("lost");
  expect(gone.age).toBeGreaterThanOrEqual(24 * HOUR_MS);
});
