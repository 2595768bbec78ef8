// All background responses of a frontend: those that the gateway runs, and those that a provider
// runs.
import type {
  Body,
  Context,
  JobKind,
  Json,
  RequestHead,
  RouteInput,
  RouteResponse,
} from "tollgate/plugin";
import { BackgroundService } from "./background-service.ts";
import { ProviderResponseEngine } from "./provider-response-engine.ts";
import { createProviderResponseKind } from "./provider-response-kind.ts";
import { ProviderResponseRecords } from "./provider-response-record.ts";
import { ProviderResponseService } from "./provider-response-service.ts";
import { ResponseFiles } from "./response-files.ts";
import { createResponseKind } from "./response-kind.ts";
import { ResponseRecords } from "./response-record.ts";
import { ResponseStreams } from "./response-streams.ts";

export interface BackgroundOptions {
  readonly dir: string | undefined;
  readonly keepMs: number;
  readonly maxResponseBytes: number;
  readonly maxResponses: number;
  /** Whether a provider that has a background mode runs the requests. */
  readonly isNative: boolean;
}

/** A background response of a client. */
export interface FoundResponse {
  /** Model name as the client wrote it. */
  readonly model: string;
  /** The provider's ID of the response. */
  readonly upstreamId: string | undefined;
  /** Returns the response as it is now, or the stream of its events. */
  read(x: RequestHead): Promise<RouteResponse>;
  /** Cancels the response if it runs, and returns it as it is then. */
  cancel(x: RequestHead): Promise<Json>;
  delete(): Promise<RouteResponse>;
}

export class BackgroundResponses {
  readonly #own: BackgroundService;
  readonly #provided: ProviderResponseService;
  readonly #isNative: boolean;
  readonly jobKinds: readonly JobKind[];

  constructor(ctx: Context, options: BackgroundOptions) {
    const { keepMs, maxResponses } = options;
    const files = new ResponseFiles(ctx, options.dir);
    const streams = new ResponseStreams();
    this.#isNative = options.isNative;
    this.#own = new BackgroundService(ctx, { ...options, files, streams });
    const records = new ProviderResponseRecords(() => ctx.jobs!);
    const allRecords = new ResponseRecords(() => ctx.jobs!);
    const engine = new ProviderResponseEngine(ctx, { records, files, keepMs });
    if (ctx.jobs) engine.start();
    const { wake } = engine;
    const shared = { files, streams, records, allRecords, maxResponses, wake };
    this.#provided = new ProviderResponseService(ctx, shared);
    this.jobKinds = [createResponseKind(this.#own), createProviderResponseKind(this.#provided)];
  }

  /** Returns how a request runs in the background. */
  begin(x: RequestHead, body: Body): Pick<RouteInput, "background" | "edits" | "stream"> {
    const begun = this.#own.begin(x, body);
    // A client that reads a stream expects each event when it happens.
    if (this.#isNative && body["stream"] !== true)
      begun.background.startJob = (call) => this.#provided.start(x, body, call);
    return begun;
  }

  /**
   * Returns a response of this client. Undefined for an ID that is not one of its background
   * responses, in the same time whether it exists or not.
   */
  async find(x: RequestHead, id: string): Promise<FoundResponse | undefined> {
    const own = await this.#own.find(x, id);
    if (own)
      return {
        model: own.model,
        upstreamId: own.upstreamId,
        read: (reader) => this.#own.read(reader, own),
        cancel: (reader) => this.#own.cancel(reader, id),
        delete: () => this.#own.delete(own),
      };
    const provided = await this.#provided.find(x, id);
    return (
      provided && {
        model: provided.model,
        upstreamId: this.#provided.upstreamIdOf(provided),
        read: (reader) => this.#provided.read(reader, provided),
        cancel: () => this.#provided.cancel(provided),
        delete: () => this.#provided.delete(provided),
      }
    );
  }
}
