// Polls videos until they have ended, and bills each of them once. Each process of a gateway has an
// engine. An engine leases a video for one step, so another gateway continues where one stopped.
import { fail, getFault, type Context, type JobCalls, type VideoStatus } from "tollgate/plugin";
import { LeaseLoop, backoffMs, nextPollMs } from "../jobs/lease-loop.ts";
import { isVersionConflict, toRecordMessage } from "../jobs/stored-jobs.ts";
import {
  isOpen,
  parseVideo,
  VIDEO_KIND,
  type StoredVideo,
  type VideoData,
  type VideoEnd,
  type VideoRecords,
} from "./video-record.ts";

/** Length of a lease in milliseconds. A step takes less time. */
const LEASE_MS = 180_000;
/** Maximum time of one step in milliseconds. */
const STEP_MS = 150_000;
/** Time between two polls in milliseconds: at first, and at most. */
const POLL_MS = { first: 200, most: 10_000 };
/** Time in milliseconds within which a video has to end. */
const WINDOW_MS = 24 * 3_600_000;
/** Number of videos whose steps one engine takes at the same time. */
const CONCURRENT_STEPS = 8;

export class VideoEngine {
  readonly #ctx: Context;
  readonly #records: VideoRecords;
  readonly #keepMs: number;
  readonly #loop: LeaseLoop;
  /** Looks for work now. */
  readonly wake: () => void;

  /** @param keepMs How long a video that has ended is kept, in milliseconds. */
  constructor(ctx: Context, records: VideoRecords, keepMs: number) {
    this.#ctx = ctx;
    this.#records = records;
    this.#keepMs = keepMs;
    this.#loop = new LeaseLoop({
      ctx,
      jobs: () => ctx.jobs!,
      kind: VIDEO_KIND,
      leaseMs: LEASE_MS,
      concurrent: CONCURRENT_STEPS,
      run: async (record) => this.#takeStep(parseVideo(record)),
      onPaused: (err) => ctx.log.warn({ err }, "video engine paused, will retry"),
    });
    this.wake = () => this.#loop.wake();
  }

  /** Starts after the gateway has started. */
  start(): void {
    this.#loop.start();
  }

  async #takeStep(leased: StoredVideo): Promise<void> {
    const step = new VideoStep(this.#ctx, this.#records, leased, this.#keepMs);
    try {
      await step.run();
    } catch (err) {
      if (!isVersionConflict(err)) await step.postpone(err);
    }
  }
}

/** One step of a video, by the engine that leased it. */
class VideoStep {
  readonly #ctx: Context;
  readonly #jobCalls: JobCalls;
  readonly #records: VideoRecords;
  readonly #keepMs: number;
  #video: StoredVideo;

  constructor(ctx: Context, records: VideoRecords, video: StoredVideo, keepMs: number) {
    this.#ctx = ctx;
    this.#jobCalls = ctx.jobCalls!;
    this.#records = records;
    this.#video = video;
    this.#keepMs = keepMs;
  }

  async run(): Promise<void> {
    const { state } = this.#video;
    if (!isOpen(state)) return this.#records.delete(this.#video);
    if (state === "reserving") return this.#abandon();
    // The process that created the video stopped before it stored the provider's answer.
    if (state === "submitting") return this.#end(ENDS.lost);
    if (state === "settling") return this.#settle();
    return this.#poll();
  }

  async #poll(): Promise<void> {
    const { record, target, reference, pollMs = POLL_MS.first } = this.#video;
    const isOverdue = Date.now() >= record.createdAt + WINDOW_MS;
    const signal = AbortSignal.any([this.#ctx.signal, AbortSignal.timeout(STEP_MS)]);
    const opened = this.#jobCalls.openVideos(target, signal);
    if (!opened)
      return isOverdue
        ? this.#end(ENDS.lost)
        : // Another gateway may have the provider in its config.
          fail("unavailable", `The provider ${target.provider} is not in this gateway's config.`);
    let status: VideoStatus;
    try {
      status = await opened.videos.poll(reference!, opened.client);
    } catch (error) {
      if (getFault(error)?.kind === "not_found") return this.#end(ENDS.deleted);
      if (isOverdue && !this.#ctx.signal.aborted) return this.#end(ENDS.expired);
      throw error;
    }
    const data = readStatus(this.#video, status);
    if (status.state === "completed" || status.state === "failed")
      return this.#end(endOf(status, data), data);
    if (isOverdue) return this.#end(ENDS.expired, data);
    const next = nextPollMs(pollMs, POLL_MS.most);
    return this.#write({
      data: { ...data, failures: 0, pollMs: next },
      dueAt: Date.now() + pollMs,
    });
  }

  /** Stores how the video ended before it is billed, so that every attempt bills the same. */
  async #end(end: VideoEnd, data: Partial<VideoData> = {}): Promise<void> {
    const endedAt = Date.now();
    await this.#write({
      state: "settling",
      data: { ...data, end, endedAt, failures: 0 },
      dueAt: endedAt + LEASE_MS,
      isLeased: true,
    });
    await this.#settle();
  }

  async #settle(): Promise<void> {
    const { record, end, price, pricedAt, holdNano, size, reference } = this.#video;
    const { state, usage, outcome } = end!;
    const { costNano } = await this.#jobCalls.settleCall(record.attempt!, {
      price,
      pricedAt,
      usage,
      size,
      holdNano: holdNano === null ? null : BigInt(holdNano),
      outcome,
      upstreamId: reference,
    });
    await this.#write({
      state,
      data: { costNano: costNano?.toString() },
      dueAt: Date.now() + this.#keepMs,
    });
  }

  /** Ends a video whose creation was interrupted. Its client did not receive its ID. */
  async #abandon(): Promise<void> {
    await releaseReservation(this.#jobCalls, this.#video, "canceled");
    await this.#records.delete(this.#video);
  }

  /** Postpones the video after an error. */
  async postpone(err: unknown): Promise<void> {
    const { failures = 0, record } = this.#video;
    if (this.#ctx.signal.aborted) return this.#write({ dueAt: Date.now() }).catch(() => undefined);
    const fault = getFault(err);
    const ms = backoffMs(failures, 5 * 60_000);
    this.#ctx.log.warn(
      { video: record.id, state: record.state, retryInMs: ms, err: fault ? fault.message : err },
      "video step failed, will retry",
    );
    const at = Date.now();
    const endAt = record.createdAt + WINDOW_MS;
    const later = at + Math.max(ms, fault?.retryAfterMs ?? 0);
    const dueAt = at < endAt ? Math.min(later, endAt) : later;
    await this.#write({ data: { failures: failures + 1 }, dueAt }).catch(() => undefined);
  }

  async #write(change: Parameters<VideoRecords["change"]>[1]): Promise<void> {
    this.#video = await this.#records.change(this.#video, change);
  }
}

/** Ends without a status of the provider. */
const ENDS = {
  expired: {
    state: "expired",
    usage: "unknown",
    outcome: "expired",
    error: { code: "video_expired", message: "The video was not complete within 24 hours." },
  },
  deleted: {
    state: "deleted",
    usage: "unknown",
    outcome: "deleted",
    error: { code: "video_deleted", message: "The provider does not have the video any more." },
  },
  lost: {
    state: "lost",
    usage: "unknown",
    outcome: "lost",
    error: {
      code: "video_lost",
      message: "Cannot determine whether the provider generated the video.",
    },
  },
} satisfies Record<string, VideoEnd>;

/** Releases the reservation of a video that was not started. */
export async function releaseReservation(
  jobCalls: JobCalls,
  { record, price, pricedAt }: StoredVideo,
  outcome: string,
): Promise<void> {
  const end = { price, pricedAt, usage: {}, holdNano: null, outcome };
  await jobCalls.settleCall(record.attempt!, end).catch((error: unknown) => {
    // It was not reserved.
    if (getFault(error)?.code !== "unknown_attempt") throw error;
  });
}

/** Returns the data of a status. Members that the provider does not report are kept. */
export function readStatus(
  before: Pick<VideoData, "seconds" | "size" | "expiresAt" | "progress">,
  { state, seconds, size, expiresAt, progress }: VideoStatus,
): Pick<VideoData, "seconds" | "size" | "expiresAt" | "progress" | "isQueued"> {
  return {
    isQueued: state === "queued",
    seconds: seconds ?? before.seconds,
    size: size?.slice(0, 32) ?? before.size,
    expiresAt: expiresAt ?? before.expiresAt,
    progress: Math.min(100, Math.max(before.progress ?? 0, progress ?? 0)),
  };
}

function endOf({ state, error }: VideoStatus, { seconds }: Partial<VideoData>): VideoEnd {
  if (state === "failed")
    return {
      state: "failed",
      usage: {},
      outcome: "failed",
      error: {
        code: (error?.code ?? "video_failed").slice(0, 64),
        message: toRecordMessage(error?.message ?? "The provider could not generate the video."),
      },
    };
  // Without a length, the bill is an estimate.
  return seconds === undefined
    ? { state: "completed", usage: "unknown", outcome: "unreadable" }
    : { state: "completed", usage: { seconds_out: seconds }, outcome: "ok" };
}
