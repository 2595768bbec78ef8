// Videos of all owners, as their clients use them. An engine polls and bills them.
import {
  fail,
  getFault,
  type Context,
  type ErrorKind,
  type JobCalls,
  type OpenVideos,
  type PlannedCall,
  type RequestHead,
  type StartedVideo,
  type VideoContent,
  type VideoRequest,
  type VideoVariant,
} from "tollgate/plugin";
import { Submission } from "./submission.ts";
import { createFileSecrets, type FileSecrets } from "../jobs/file-secrets.ts";
import type { Owner } from "../jobs/owned-records.ts";
import { readStatus, releaseReservation } from "./video-engine.ts";
import {
  failWithoutJobs,
  isOpen,
  type StoredVideo,
  type VideoData,
  type VideoRecords,
} from "./video-record.ts";

/** Maximum time in milliseconds of the request that starts a video at the provider. */
export const SUBMIT_MS = 3 * 60_000;
/** Time in milliseconds after which an engine ends a creation that was interrupted. */
const CREATE_MS = 10 * 60_000;
const MAX_REFERENCE_BYTES = 2 * 1024;
const MAX_MODEL = 256;

/**
 * Errors of a provider's `create` after which it is unknown whether the provider has started the
 * video, unless it refused each request.
 */
const AMBIGUOUS_KINDS: ReadonlySet<ErrorKind> = new Set(["upstream", "timeout", "canceled"]);

export class VideoService {
  readonly #ctx: Context;
  readonly records: VideoRecords;
  readonly #wake: () => void;
  #secrets: FileSecrets | undefined;

  /** @param wake Called when an engine has something to do. */
  constructor(ctx: Context, records: VideoRecords, wake: () => void) {
    this.#ctx = ctx;
    this.records = records;
    this.#wake = wake;
  }

  get #jobCalls(): JobCalls {
    return this.#ctx.jobCalls ?? failWithoutJobs();
  }

  get #ids(): FileSecrets {
    return (this.#secrets ??= createFileSecrets(this.#ctx.deriveSecret("videos")));
  }

  /** Creates a video: reserves its highest cost, and starts it at the provider. */
  async create(
    owner: Owner,
    x: RequestHead,
    request: VideoRequest,
    source?: StoredVideo,
  ): Promise<StoredVideo> {
    const target = source?.target;
    const planned = await this.#jobCalls.planCall(request, { parentRequest: x, target });
    const opened = this.#open(planned.target, AbortSignal.timeout(SUBMIT_MS));
    if (source && opened.videos.canRemix !== true)
      fail("unsupported", `${planned.target.provider} cannot change videos.`, {
        code: "remix_not_supported",
      });
    const id = this.#ids.createId("video", owner.name, Date.now());
    const reserving = await this.records.create(owner, id, {
      data: dataOf(request, planned, x, source),
      attempt: `video_${id}`,
      dueAt: Date.now() + CREATE_MS,
    });
    let video = reserving;
    try {
      await this.#jobCalls.reserveCall(`video_${id}`, planned, { parentRequest: x });
      const dueAt = Date.now() + CREATE_MS;
      video = await this.records.change(video, { state: "submitting", dueAt });
    } catch (error) {
      await this.#endCreation(video, () => this.#release(video, error));
      throw error;
    }
    const submission = new Submission();
    let started: StartedVideo;
    try {
      started = await opened.videos.create(
        {
          key: id,
          model: planned.target.model,
          request: planned.request as VideoRequest,
          remixOf: source?.reference,
        },
        submission.observe(opened.client),
      );
    } catch (error) {
      const kind = getFault(error)?.kind;
      const isAmbiguous =
        !submission.isRefused && (kind === undefined || AMBIGUOUS_KINDS.has(kind));
      await this.#endCreation(video, () =>
        isAmbiguous
          ? this.records.change(video, { dueAt: Date.now() })
          : this.#release(video, error),
      );
      throw error;
    }
    return this.#run(video, started);
  }

  /** Stores a video that the provider has accepted. From now on, it is billed in any case. */
  async #run(video: StoredVideo, { reference, status }: StartedVideo): Promise<StoredVideo> {
    const store = () =>
      this.records.change(video, {
        state: "running",
        data: { reference, ...readStatus(video, status) },
        dueAt: Date.now(),
      });
    try {
      assertReference(reference);
      const running = await store();
      this.#wake();
      return running;
    } catch (error) {
      // The engine polls the video with its reference. Without one, it bills the video as lost.
      await this.#endCreation(video, () =>
        isReference(reference) ? store() : this.records.change(video, { dueAt: Date.now() }),
      );
      throw error;
    }
  }

  /** Ends a creation that failed. */
  async #endCreation({ record }: StoredVideo, end: () => Promise<unknown>): Promise<void> {
    try {
      await end();
    } catch (err) {
      // An engine ends the video when it is due.
      this.#ctx.log.warn({ video: record.id, err }, "creation of video not ended");
    }
    this.#wake();
  }

  /** Ends a video that the provider has not started. It is not billed. */
  async #release(video: StoredVideo, error: unknown): Promise<void> {
    await releaseReservation(this.#jobCalls, video, getFault(error)?.kind ?? "internal");
    await this.records.delete(video);
  }

  #open(target: StoredVideo["target"], signal: AbortSignal): OpenVideos {
    return (
      this.#jobCalls.openVideos(target, signal) ??
      fail("unavailable", `The provider ${target.provider} is not available any more.`, {
        code: "provider_removed",
      })
    );
  }

  async find(owner: Owner, id: string): Promise<StoredVideo> {
    const own = this.#ids.parseId(id, "video", owner.name);
    const found = own === undefined ? undefined : await this.records.find(owner, own);
    return found ?? fail("not_found", `No such video: ${id.slice(0, 64)}`, { param: "id" });
  }

  /** Returns the record ID in an ID of the owner, for a cursor. */
  recordOf(owner: Owner, id: string): string {
    return (
      this.#ids.parseId(id, "video", owner.name) ??
      fail("invalid", `Unknown video ID "${id.slice(0, 64)}".`, { param: "after" })
    );
  }

  /** Returns the content, as it arrives. */
  async read(video: StoredVideo, variant: VideoVariant, x: RequestHead): Promise<VideoContent> {
    if (isOpen(video.state))
      fail("invalid", "The video is not complete. Retrieve its status first.", {
        code: "video_not_ready",
      });
    const reference = video.reference;
    if (video.state !== "completed" || reference === undefined) return failContent();
    const { videos, client } = this.#open(video.target, x.signal);
    try {
      return await videos.readContent(reference, variant, client);
    } catch (error) {
      if (getFault(error)?.kind === "not_found") return failContent();
      throw error;
    }
  }

  /** Deletes a video that has ended, here and at the provider. */
  async delete(owner: Owner, id: string): Promise<StoredVideo> {
    const video = await this.find(owner, id);
    if (isOpen(video.state))
      fail("invalid", "A video can be deleted after it has ended.", { code: "video_not_ended" });
    const { reference, target } = video;
    if (reference !== undefined) {
      const { videos, client } = this.#open(target, AbortSignal.timeout(SUBMIT_MS));
      try {
        await videos.delete?.(reference, client);
      } catch (error) {
        // The record has the only reference, so it is kept until the provider has deleted the video.
        if (getFault(error)?.kind !== "not_found") throw error;
      }
    }
    await this.records.delete(video);
    return video;
  }
}

const isReference = (reference: string): boolean =>
  Buffer.byteLength(reference) <= MAX_REFERENCE_BYTES;

function assertReference(reference: string): void {
  if (!isReference(reference))
    fail("upstream", `The provider's reference has more than ${MAX_REFERENCE_BYTES} bytes.`);
}

const failContent = (): never =>
  fail("not_found", "The content of this video is not available.", {
    code: "video_content_unavailable",
  });

function dataOf(
  { model, seconds, size }: VideoRequest,
  { target, price, pricedAt, holdNano }: PlannedCall,
  x: RequestHead,
  source: StoredVideo | undefined,
): VideoData {
  return {
    model: model.slice(0, MAX_MODEL),
    target,
    seconds: seconds ?? undefined,
    size: size ?? undefined,
    remixOf: source?.record.id,
    price: price ?? undefined,
    pricedAt,
    holdNano: holdNano?.toString() ?? null,
    origin: { request: x.id, trace: x.trace },
  };
}
