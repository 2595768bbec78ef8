// A fake background mode in the process. It keeps the responses that a provider plugin starts.
import type { BatchClient } from "../../plugin/batch.ts";
import type { BatchApiRequest } from "../batches/batch-format.ts";
import { jsonResponse, type ScriptedResponse } from "../upstream/scripted-response.ts";
import type { ScriptedRoutes } from "../upstream/upstream.ts";
import { createApiClient } from "../videos/video-api.ts";
import type { BackgroundApiState, BackgroundFormat, FakeResponse } from "./background-format.ts";
import { openAiBackgroundFormat } from "./openai-format.ts";

/** Script of a fake background mode. */
export interface BackgroundApiOptions {
  /** API that is imitated. Default: OpenAI's responses. */
  readonly format?: BackgroundFormat;
  /** Path of the API before the paths of the format. Default: `/v1`. */
  readonly base?: string;
  /** Number of polls until a response has ended. Default: 1. */
  readonly polls?: number;
  /** How responses end. Default: `completed`. */
  readonly outcome?: "completed" | "failed";
  /** Text of each complete response. Default: `Hello`. */
  readonly text?: string;
  /** Returns another response to a request, which is then not executed. */
  readonly failure?: (request: BatchApiRequest) => ScriptedResponse | undefined;
}

/** A fake background mode. */
export interface BackgroundApi {
  /** Responses that exist, by ID. */
  readonly responses: Map<string, FakeResponse>;
  /** All requests. */
  readonly requests: readonly BatchApiRequest[];
  /** Text of each complete response. */
  readonly text: string;
  /** Executes a request. */
  handle(request: BatchApiRequest): ScriptedResponse;
  /** Returns routes for a fake upstream. */
  routes(path: string): ScriptedRoutes;
  /** Returns a client that calls the API in the process. */
  client(origin?: string): BatchClient;
}

/** Creates a fake background mode. */
export function createBackgroundApi(options: BackgroundApiOptions = {}): BackgroundApi {
  const { format = openAiBackgroundFormat, base = "/v1", outcome = "completed" } = options;
  const { text = "Hello" } = options;
  const responses = new Map<string, FakeResponse>();
  const polls = new Map<string, number>();
  const requests: BatchApiRequest[] = [];
  let ids = 0;
  const hasEnded = ({ state }: FakeResponse) => state !== "queued" && state !== "running";
  const state: BackgroundApiState = {
    responses,
    text,
    create(body) {
      const response: FakeResponse = { id: `resp_up${++ids}`, body, state: "queued" };
      responses.set(response.id, response);
      return response;
    },
    advance(id) {
      const response = responses.get(id);
      if (!response || hasEnded(response)) return response;
      const count = (polls.get(id) ?? 0) + 1;
      polls.set(id, count);
      response.state = count > (options.polls ?? 1) ? outcome : "running";
      return response;
    },
    cancel(id) {
      const response = responses.get(id);
      if (!response || hasEnded(response)) return false;
      response.state = "canceled";
      return true;
    },
  };
  const handle = (request: BatchApiRequest): ScriptedResponse => {
    requests.push(request);
    const failed = options.failure?.(request);
    if (failed) return failed;
    const { path } = request;
    const route = path.startsWith(base) ? path.slice(base.length) : path;
    return (
      format.handle(state, { ...request, route }) ??
      jsonResponse({ error: { message: `No route ${request.method} ${path}.` } }, 404)
    );
  };
  return {
    responses,
    requests,
    text,
    handle,
    routes: (path) => ({
      [`* ${base}${path}*`]: ({ method, path: at, query, headers, body }) =>
        handle({
          method,
          origin: `http://${headers.host}`,
          path: at,
          query,
          headers: headers as BatchApiRequest["headers"],
          body,
        }),
    }),
    client: (origin = "http://background.test") =>
      createApiClient(async (request) => handle(request), `${origin}${base}`),
  };
}
