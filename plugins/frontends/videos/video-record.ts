// Records of videos. A record contains no prompt and no content.
import {
  fail,
  type JobOrigin,
  type JobStore,
  type JobTarget,
  type Price,
  type Usage,
} from "tollgate/plugin";
import { createdAtOfId } from "../jobs/file-secrets.ts";
import { isOwned, listOwned, type Owner } from "../jobs/owned-records.ts";
import { parseJob, writeJob, type StoredJob } from "../jobs/stored-jobs.ts";

export const VIDEO_KIND = "video";

/**
 * State of a video. `reserving`: its creation has not ended. `submitting`: it is unknown whether the
 * provider has received it. `running`: the provider generates it. `settling`: it has ended, and is
 * not billed. The others are final:
 *
 * - `completed`: its content can be read. It is billed.
 * - `failed`: the provider could not generate it. It is not billed.
 * - `expired`: the provider did not end it in time. It is billed as an estimate.
 * - `deleted`: the provider does not have it any more. It is billed as an estimate.
 * - `lost`: it is unknown whether the provider generated it. It is billed as an estimate.
 */
export type VideoState = OpenState | FinalState;
type OpenState = "reserving" | "submitting" | "running" | "settling";
export type FinalState = "completed" | "failed" | "expired" | "deleted" | "lost";

export const OPEN_STATES: readonly OpenState[] = ["reserving", "submitting", "running", "settling"];
export const isOpen = (state: VideoState): boolean => OPEN_STATES.includes(state as OpenState);

/** How a video ended, which is stored before it is billed. */
export interface VideoEnd {
  readonly state: FinalState;
  readonly usage: Usage | "unknown";
  /** Outcome in the ledger. */
  readonly outcome: string;
  /** Reason for the client, if the video has no content. */
  readonly error?: { readonly code: string; readonly message: string } | undefined;
}

export interface VideoData {
  /** Model name, as the client wrote it. */
  readonly model: string;
  readonly target: JobTarget;
  /** The provider's reference. */
  readonly reference?: string | undefined;
  readonly isQueued?: boolean | undefined;
  readonly progress?: number | undefined;
  /** Length and size: as requested, until the provider reports them. */
  readonly seconds?: number | undefined;
  readonly size?: string | undefined;
  /** Time from which the provider does not have the content, in Unix milliseconds. */
  readonly expiresAt?: number | undefined;
  /** ID of the video that this one changes, without its prefix. */
  readonly remixOf?: string | undefined;
  readonly price?: Price | undefined;
  readonly pricedAt: number;
  /** Reservation in billionths of a US dollar. `null` if no price is known. */
  readonly holdNano: string | null;
  readonly end?: VideoEnd | undefined;
  readonly endedAt?: number | undefined;
  /** Cost in billionths of a US dollar. */
  readonly costNano?: string | undefined;
  readonly origin?: JobOrigin | undefined;
  /** Time until the next poll, in milliseconds. */
  readonly pollMs?: number | undefined;
  /** Number of steps that failed one after the other. */
  readonly failures?: number | undefined;
}

/** Rejects a request for a video if the store has no records of jobs. */
export const failWithoutJobs = (): never =>
  fail("unavailable", "This gateway's store keeps no videos.", { code: "no_jobs" });

/** A video with its record. */
export type StoredVideo = StoredJob<VideoData, VideoState>;

export const parseVideo = parseJob<VideoData, VideoState>;

/** A change of a video, with the time at which its next step is due. */
export interface VideoChange {
  readonly state?: VideoState;
  readonly data?: Partial<VideoData>;
  /** In Unix milliseconds. */
  readonly dueAt: number;
  /** Whether the engine that leased the video keeps it. */
  readonly isLeased?: boolean;
}

export class VideoRecords {
  readonly #jobs: () => JobStore;

  constructor(jobs: () => JobStore) {
    this.#jobs = jobs;
  }

  async create(
    owner: Owner,
    id: string,
    of: { readonly data: VideoData; readonly attempt: string; readonly dueAt: number },
  ): Promise<StoredVideo> {
    const { key, account } = owner;
    const record = {
      id,
      kind: VIDEO_KIND,
      key,
      account,
      version: 1,
      createdAt: createdAtOfId(id),
      state: "reserving" as const,
      dueAt: of.dueAt,
      attempt: of.attempt,
    };
    return writeJob<VideoData, VideoState>(this.#jobs(), record, of.data);
  }

  /** Returns a video of the owner whose creation has ended. */
  async find(owner: Owner, id: string): Promise<StoredVideo | undefined> {
    const record = await this.#jobs().find(id);
    if (record?.kind !== VIDEO_KIND || !isOwned(record, owner)) return undefined;
    const video = parseVideo(record);
    return isVisible(video) ? video : undefined;
  }

  /** Returns a page of the owner's videos. */
  list(
    owner: Owner,
    of: { limit: number; after?: string | undefined; isAscending: boolean },
  ): Promise<{ readonly items: readonly StoredVideo[]; readonly hasMore: boolean }> {
    return listOwned(this.#jobs(), owner, {
      ...of,
      kind: VIDEO_KIND,
      read(record) {
        const video = parseVideo(record);
        return isVisible(video) ? video : undefined;
      },
    });
  }

  /**
   * Writes a change. Rejects with the code `version_conflict` if another gateway changed or leased
   * the video.
   */
  async change(
    video: StoredVideo,
    { state = video.state, data, dueAt, isLeased = false }: VideoChange,
  ): Promise<StoredVideo> {
    const { record, state: _, ...before } = video;
    const changed: VideoData = { ...before, ...data };
    const owner = isLeased ? record.owner : undefined;
    // A video that has ended has no reservation.
    const attempt = isOpen(state) ? record.attempt : undefined;
    const next = { ...record, version: record.version + 1, state, dueAt, owner, attempt };
    return writeJob(this.#jobs(), next, changed);
  }

  async delete({ record: { id, version } }: StoredVideo): Promise<void> {
    await this.#jobs().delete(id, version);
  }
}

/** Whether the client knows of the video. */
const isVisible = ({ state }: StoredVideo): boolean =>
  state !== "reserving" && state !== "submitting";
