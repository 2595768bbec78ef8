// Videos that a provider generates after it has accepted a request. A frontend stores a record of
// each video, and polls the provider until the video has ended.
import type { VideoRequest } from "../../model/request.ts";
import type { HeadersOut, Opt } from "../../model/values.ts";
import type { BatchClient } from "../batch.ts";

/**
 * Videos of one endpoint. The methods keep no state: each may be called in another process than the
 * one before, after a restart, and more than once. They must not retry, because the caller calls a
 * method again after a fault that can be temporary.
 */
export interface EndpointVideos {
  /**
   * Starts a video. A fault of the kinds `upstream` and `timeout` means that it is unknown whether
   * the provider has started it. After any other fault, the provider must not have started it. If
   * each request of `client` failed to connect or had an error status, the video is not billed.
   */
  create(input: VideoInput, client: BatchClient): Promise<StartedVideo>;
  /**
   * Returns the status of a video. Throw `fail("not_found")` if the provider has deleted the video.
   */
  poll(reference: string, client: BatchClient): Promise<VideoStatus>;
  /**
   * Returns the content of a video that is complete. The body is read as fast as the client reads.
   * Throw `fail("not_found")` if the provider has deleted it, and `fail("unsupported")` for a
   * variant that it does not have.
   */
  readContent(reference: string, variant: VideoVariant, client: BatchClient): Promise<VideoContent>;
  /**
   * Deletes a video that has ended, with everything that the provider stores for it. Deleting it
   * twice changes nothing. Default: the retention of the provider applies.
   */
  delete?(reference: string, client: BatchClient): Promise<void>;
  /** Whether `create` accepts `remixOf`. Default: false. */
  canRemix?: boolean;
}

/** File of a video: the video, a preview image, or an image with frames of it. */
export type VideoVariant = "video" | "thumbnail" | "spritesheet";

/** A video to start. */
export interface VideoInput {
  /** Key of the video, up to 64 letters, digits, hyphens, and underscores. */
  readonly key: string;
  /** The provider's name of the model. */
  readonly model: string;
  /** The request, after the hooks of middleware. */
  readonly request: VideoRequest;
  /** Reference of the video that the new video changes. Set only if `canRemix` is true. */
  readonly remixOf?: Opt<string>;
}

/** A video that the provider has accepted. */
export interface StartedVideo {
  /**
   * Reference of up to 2 KiB. The other methods receive it. It must contain no secret and no
   * content.
   */
  readonly reference: string;
  /** Status at the start. `seconds` and `size` are billed if no later status contains them. */
  readonly status: VideoStatus;
}

/** Status of a video at the provider. */
export interface VideoStatus {
  /**
   * `queued` and `running`: the video is not complete. `completed`: its content can be read, and it
   * is billed. `failed`: it has no content, and it is not billed.
   */
  readonly state: "queued" | "running" | "completed" | "failed";
  /** Progress in percent, from 0 to 100. */
  readonly progress?: Opt<number>;
  /** Seconds of video that are billed. If there are several videos, it is their sum. */
  readonly seconds?: Opt<number>;
  /** Width and height in pixels, such as `1280x720`. It selects the price. */
  readonly size?: Opt<string>;
  /** Time from which the content cannot be read, in Unix milliseconds. */
  readonly expiresAt?: Opt<number>;
  /** Reason of the state `failed`, for the client. */
  readonly error?: Opt<{ readonly code: string; readonly message: string }>;
}

/** Content of a video. */
export interface VideoContent {
  /** Headers for the client: `content-type`, and `content-length` if it is known. */
  readonly headers: HeadersOut;
  /** Bytes of the content, as they arrive. */
  readonly body: AsyncIterable<Uint8Array>;
}
