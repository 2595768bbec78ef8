// Types of a fake batch API: its batches, its requests, and the API of one vendor that it imitates.
import type { Usage } from "../../model/usage.ts";
import type { Json } from "../../model/values.ts";
import type { ScriptedResponse } from "../upstream/scripted-response.ts";

/** A line that the API received. */
export interface SubmittedLine {
  /** ID of the line at the API. */
  readonly id: string;
  /** Path of the request, such as `/v1/chat/completions`. */
  readonly url: string;
  /** Parsed body, whose type only the test knows. */
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly body: any;
}

/**
 * End of a line: a response with the usage that is billed, or no response. `lost`: the line is in
 * no result file, and is not billed.
 */
export type LineAnswer =
  | { readonly status?: number; readonly body: Json; readonly usage?: Usage }
  | "expired"
  | "canceled"
  | "lost";

/** Result of a line, as the API wrote it. */
export interface WrittenResult {
  readonly line: SubmittedLine;
  readonly answer: LineAnswer;
}

/** How a batch ended. */
export type BatchOutcome = "completed" | "canceled" | "expired" | "failed";

/** A batch at the fake API. */
export interface FakeBatch {
  readonly id: string;
  /** Key of the submission, if the API keeps one. */
  readonly key: string | undefined;
  /** ID of the file with the lines, if the API has files. */
  readonly input: string | undefined;
  readonly endpoint: string | undefined;
  readonly lines: readonly SubmittedLine[];
  readonly state: "running" | "canceling" | "ended";
  readonly outcome: BatchOutcome | undefined;
  /** Results in the order of the result file. Empty until the batch has ended. */
  readonly results: readonly WrittenResult[];
  /** Usage that is billed for all lines. */
  readonly usage: Usage;
  /** Unix time in seconds. */
  readonly createdAt: number;
}

/** A request to the API, with its action. */
export interface BatchApiRequest {
  readonly method: string;
  /** Scheme and host to which the request was sent. */
  readonly origin: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly body: Buffer;
}

/** State of the API that a format reads and changes. */
export interface BatchApiState {
  readonly files: Map<string, Buffer>;
  readonly batches: readonly FakeBatch[];
  /** Returns an ID that was not used before. */
  nextId(prefix: string): string;
  create(batch: Pick<FakeBatch, "key" | "input" | "endpoint" | "lines">): FakeBatch;
  /** Returns the batch after one more poll. Undefined if there is none. */
  advance(id: string): FakeBatch | undefined;
  /** Requests a cancellation. Returns false if the batch has ended. */
  cancel(id: string): boolean;
  delete(id: string): void;
}

/** The API of one vendor. */
export interface BatchFormat {
  /** Paths of the API, below the base. A path also stands for all paths that begin with it. */
  readonly paths: readonly string[];
  /** More paths, which are not below the base. */
  readonly absolutePaths?: readonly string[];
  /** Whether the API can reject a batch after it accepted it. */
  readonly fails: boolean;
  /** Executes a request. `path` is below the base. Returns undefined for an unknown path. */
  handle(
    state: BatchApiState,
    request: BatchApiRequest & { readonly route: string },
  ): ScriptedResponse | undefined;
}
