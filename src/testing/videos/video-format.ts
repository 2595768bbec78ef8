// The API for videos that the kit imitates. A format knows the paths and objects of one provider, and
// a fake API keeps the videos.
import type { JsonObject } from "../../model/values.ts";
import type { BatchApiRequest } from "../batches/batch-format.ts";
import type { ScriptedResponse } from "../upstream/scripted-response.ts";

/** A video that a fake API keeps. */
export interface GeneratedVideo {
  readonly id: string;
  /** Fields of the request that created it, as the format reads them. */
  readonly fields: JsonObject;
  state: "queued" | "running" | "completed" | "failed";
  readonly seconds: number;
  readonly size: string;
}

/** State of a fake API that a format reads and changes. */
export interface VideoApiState {
  readonly videos: Map<string, GeneratedVideo>;
  /** Content of each complete video. */
  readonly content: Buffer;
  /** Creates a video. */
  create(of: Pick<GeneratedVideo, "fields" | "seconds" | "size">): GeneratedVideo;
  /** Returns the video after one more poll. Undefined if there is none. */
  advance(id: string): GeneratedVideo | undefined;
}

/** API for videos of one provider. */
export interface VideoFormat {
  /** Handles a request. `route` is its path below the base URL. Undefined: there is no such path. */
  handle(
    state: VideoApiState,
    request: BatchApiRequest & { readonly route: string },
  ): ScriptedResponse | undefined | Promise<ScriptedResponse | undefined>;
}
