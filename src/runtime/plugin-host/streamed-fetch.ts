// Implements `ctx.fetchStream` on undici's dispatch API. Compared with `fetch`, a request needs no
// Node stream, no web stream, and no `Response`.
import type { Dispatcher } from "undici";
import { BytePieces } from "../../lib/net/byte-pieces.ts";
import { createFault } from "../../model/error.ts";
import type { HeadersIn, HeadersOut } from "../../model/values.ts";
import type { StreamedRequestInit, StreamedResponse } from "../../plugin/context.ts";
import { markAsHookFailure } from "../../pipeline/hooks/hook-guard.ts";
import { MAX_EARLY_BYTES } from "../../pipeline/upstream/upstream-http-response.ts";
import {
  DISCARD_LIMITS,
  dispatcherFor,
  failTruncatedBody,
  failUnreachable,
  type ProviderClientOptions,
} from "./provider-client.ts";

/** The addresses that a plugin can reach, and how. */
export type StreamedFetchReach = Pick<
  ProviderClientOptions,
  "reach" | "dispatcher" | "baseLabel" | "allowedOrigins" | "proxy" | "allowsMetadataService"
>;

/** The requests of one plugin. All of them are canceled when its config generation has ended. */
export class StreamedRequests {
  readonly #closed: AbortSignal;
  readonly #open: StreamedRequest[] = [];

  constructor(closed: AbortSignal) {
    this.#closed = closed;
    // One listener serves all requests: adding one compares it to all others.
    closed.addEventListener("abort", () => this.#cancelAll(), { once: true });
  }

  /** Sends a request. Resolves when its headers have arrived. */
  send(url: URL, init: StreamedRequestInit, reach: StreamedFetchReach): Promise<StreamedResponse> {
    return new Promise((resolve, reject) => {
      const dispatcher = reach.dispatcher ?? dispatcherFor(url, reach);
      const request = new StreamedRequest(url, init.signal, { resolve, reject, reach, of: this });
      request.index = this.#open.push(request) - 1;
      if (this.#closed.aborted || init.signal?.aborted) return request.handleEvent();
      init.signal?.addEventListener("abort", request, { once: true });
      dispatcher.dispatch(
        {
          origin: url.origin,
          path: url.pathname + url.search,
          method: (init.method ?? "GET") as Dispatcher.HttpMethod,
          headers: headersOf(init) as Record<string, string>,
          body: init.body ?? null,
          headersTimeout: init.idleMs,
          bodyTimeout: init.idleMs,
        },
        request,
      );
    });
  }

  /** Removes a request that has ended. The last one takes its place. */
  remove(request: StreamedRequest): void {
    const last = this.#open.pop()!;
    if (last === request) return;
    this.#open[request.index] = last;
    last.index = request.index;
  }

  #cancelAll(): void {
    for (const request of this.#open.slice()) request.handleEvent();
  }
}

function headersOf({ headers, body }: StreamedRequestInit): HeadersOut {
  const all: Record<string, string | undefined> = { "accept-encoding": "identity" };
  if (body !== undefined) all["content-type"] = "application/json";
  for (const name in headers) all[name] = headers[name] ?? undefined;
  return all;
}

/** Receives the body. */
interface BodySink {
  onPiece(piece: Buffer): void;
  onEnd(problem?: unknown): void;
}

/** A request, and its response when the headers have arrived. */
class StreamedRequest implements Dispatcher.DispatchHandler, StreamedResponse {
  /** Position in the list of open requests. */
  index = -1;
  status = 0;
  headers: HeadersIn = {};
  readonly #url: URL;
  readonly #signal: AbortSignal | undefined;
  readonly #reach: StreamedFetchReach;
  readonly #requests: StreamedRequests;
  /** Waits for the headers. */
  #pending:
    | { resolve(response: StreamedResponse): void; reject(problem: unknown): void }
    | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #sink: BodySink | undefined;
  /** Pieces that arrived before the body was taken. */
  #early: BytePieces | undefined;
  #ended: { readonly problem?: unknown } | undefined;
  #abortReason: Error | undefined;

  constructor(
    url: URL,
    signal: AbortSignal | undefined,
    of: {
      resolve(response: StreamedResponse): void;
      reject(problem: unknown): void;
      readonly reach: StreamedFetchReach;
      readonly of: StreamedRequests;
    },
  ) {
    this.#url = url;
    this.#signal = signal;
    this.#reach = of.reach;
    this.#requests = of.of;
    this.#pending = of;
  }

  bytes(maxBytes: number): Promise<Buffer | undefined> {
    return new Promise((resolve, reject) => {
      const pieces = new BytePieces();
      this.#take({
        onPiece: (piece) => {
          pieces.add(piece);
          if (pieces.size <= maxBytes) return;
          resolve(undefined);
          this.cancel();
        },
        onEnd(problem) {
          if (problem !== undefined) reject(problem as Error);
          else if (pieces.size <= maxBytes) resolve(pieces.take());
        },
      });
    });
  }

  read(onPiece: (piece: Buffer) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#take({
        onPiece: (piece) => {
          try {
            onPiece(piece);
          } catch (problem) {
            reject(problem as Error);
            this.cancel();
          }
        },
        onEnd(problem) {
          if (problem !== undefined) reject(problem as Error);
          else resolve();
        },
      });
    });
  }

  cancel(): void {
    const taken = this.#sink;
    if (taken === IGNORE || taken instanceof Discard) return;
    this.#sink = this.#ended
      ? IGNORE
      : new Discard(() => this.#abort(createFault("canceled", "The body is not needed.")));
    this.#deliver();
    taken?.onEnd();
  }

  #take(sink: BodySink): void {
    if (this.#sink) throw new TypeError("The body was read or canceled before.");
    this.#sink = sink;
    this.#deliver();
    if (this.#sink !== sink) return;
    if (this.#ended) sink.onEnd(this.#ended.problem);
  }

  /** Passes what arrived before the body was taken. Resumes the body if it was paused. */
  #deliver(): void {
    const early = this.#early;
    if (!early) return;
    this.#early = undefined;
    const isPaused = early.size > MAX_EARLY_BYTES;
    this.#sink!.onPiece(early.take());
    if (isPaused && !this.#ended) this.#controller!.resume();
  }

  /** Called when the signal of the request or of the generation aborts. */
  handleEvent(): void {
    this.#abort(createFault("canceled", "The request was canceled."));
  }

  #abort(reason: Error): void {
    if (this.#ended) return;
    this.#abortReason = reason;
    if (this.#controller) this.#controller.abort(reason);
    // A request that waits for a connection is not sent.
    else this.onResponseError(undefined, reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#abortReason) controller.abort(this.#abortReason);
  }

  onResponseStart(c: Dispatcher.DispatchController, status: number, headers: HeadersIn): void {
    // The raw headers are views into the first read from the socket.
    c.rawHeaders = null;
    if (status < 200) return;
    this.status = status;
    this.headers = joinRepeated(headers);
    const pending = this.#pending;
    this.#pending = undefined;
    pending?.resolve(this);
  }

  onResponseData(controller: Dispatcher.DispatchController, piece: Buffer): void {
    if (this.#sink) return this.#sink.onPiece(piece);
    const early = (this.#early ??= new BytePieces());
    early.add(piece);
    if (early.size > MAX_EARLY_BYTES) controller.pause();
  }

  onResponseEnd(): void {
    this.#finish({});
  }

  onResponseError(_: Dispatcher.DispatchController | undefined, cause: Error): void {
    if (this.#ended) return;
    const problem = markAsHookFailure(this.#toFault(cause));
    const pending = this.#pending;
    this.#pending = undefined;
    this.#finish({ problem });
    pending?.reject(problem);
  }

  #toFault(cause: Error): unknown {
    const signal = this.#signal ?? NEVER;
    const unsigned = { url: this.#url, signal };
    try {
      if (!this.#pending) return failTruncatedBody(this.#reach, unsigned, cause);
      // The controller is set immediately before the first byte is written.
      return failUnreachable(this.#reach, unsigned, cause, this.#controller !== undefined);
    } catch (problem) {
      return problem;
    }
  }

  #finish(ended: { readonly problem?: unknown }): void {
    if (this.#ended) return;
    this.#ended = ended;
    this.#requests.remove(this);
    this.#signal?.removeEventListener("abort", this);
    this.#sink?.onEnd(ended.problem);
  }
}

/** Joins the values of repeated headers in place. Cookies stay a list, because they contain commas. */
function joinRepeated(headers: HeadersIn): HeadersIn {
  for (const name in headers) {
    const value = headers[name];
    if (typeof value === "object" && name !== "set-cookie")
      (headers as Record<string, string>)[name] = value.join(", ");
  }
  return headers;
}

const NEVER = new AbortController().signal;

const IGNORE: BodySink = { onPiece() {}, onEnd() {} };

/** Receives the rest of a body that is not needed, so that its connection can be used again. */
class Discard implements BodySink {
  readonly #abort: () => void;
  readonly #timer: NodeJS.Timeout;
  #size = 0;

  constructor(abort: () => void) {
    this.#abort = abort;
    this.#timer = setTimeout(abort, DISCARD_LIMITS.ms).unref();
  }

  onPiece(piece: Buffer): void {
    this.#size += piece.length;
    if (this.#size > DISCARD_LIMITS.limit) this.#abort();
  }

  onEnd(): void {
    clearTimeout(this.#timer);
  }
}
