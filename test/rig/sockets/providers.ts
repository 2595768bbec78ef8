// The providers of the rig: Realtime, Gemini Live, and Responses. Each one counts what it was asked and
// what it reported, for each model. A model belongs to one session.
import { startGeminiLiveUpstream } from "../../kit/sockets/gemini-live-upstream.ts";
import { startRealtimeUpstream } from "../../kit/sockets/realtime-upstream.ts";
import type { Cut, UpstreamSocket } from "../../kit/sockets/socket-upstream.ts";
import { SOCKET_BASE, startResponses } from "./responses-provider.ts";

/** `pooled`: Responses that the gateway sends over WebSockets of the provider. */
export type ProtocolName = "realtime" | "live" | "responses" | "pooled";

/** Tokens of one response. */
export interface Counts {
  readonly input: number;
  readonly output: number;
}

/** The part of a provider's work that belongs to one session. */
export interface ProviderView {
  /** Responses that were asked for. */
  asked: number;
  /** Responses that the provider began because the user stopped speaking. */
  spoken: number;
  /** Responses of Realtime that the provider began, for whatever reason. */
  begun: number;
  /** Usage that it reported, one for each response that ended. */
  reported: Counts[];
}

export interface Providers extends AsyncDisposable {
  /** Base URL of each provider. */
  readonly urls: Readonly<Record<ProtocolName, string>>;
  view(protocol: ProtocolName, model: string): ProviderView;
  /** WebSockets over which Responses were requested. */
  readonly pooledConnections: number;
}

export interface ProvidersOptions {
  /** Returns the cut of a session, by its model. */
  cutOf(model: string): Cut | undefined;
  /** Milliseconds between two messages. */
  readonly paceMs: number;
  /** Whether Gemini Live reports usage in a message after the end of the turn. */
  readonly lateUsage: boolean;
  /** Whether Responses forgets the last response of a connection. */
  readonly forgets: boolean;
}

/** Words of each response. */
export const WORDS = "Hello there";

export async function startProviders({
  cutOf,
  paceMs,
  lateUsage,
  forgets,
}: ProvidersOptions): Promise<Providers> {
  const cut = (socket: UpstreamSocket) => {
    const model = modelOf(socket);
    return model === undefined ? undefined : cutOf(model);
  };
  const options = { words: WORDS, paceMs, cut };
  const realtime = await startRealtimeUpstream(options);
  const live = await startGeminiLiveUpstream({ ...options, lateUsage });
  const responses = await startResponses({ cutOf, paceMs, forgets });
  return {
    urls: {
      realtime: realtime.url,
      live: live.url,
      responses: responses.url,
      pooled: `${responses.url}${SOCKET_BASE}`,
    },
    get pooledConnections() {
      return responses.connections;
    },
    view(protocol, model) {
      if (protocol === "responses" || protocol === "pooled")
        return responses.works.get(model) ?? { asked: 0, spoken: 0, begun: 0, reported: [] };
      const { sockets } = protocol === "realtime" ? realtime : live;
      const read = protocol === "realtime" ? realtimeView : liveView;
      const views = sockets.filter((socket) => modelOf(socket) === model).map(read);
      return {
        asked: views.reduce((sum, view) => sum + view.asked, 0),
        spoken: views.reduce((sum, view) => sum + view.spoken, 0),
        begun: views.reduce((sum, view) => sum + view.begun, 0),
        reported: views.flatMap((view) => view.reported),
      };
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([realtime.stop(), live.stop(), responses.stop()]);
    },
  };
}

type Message = { readonly type?: string; readonly [name: string]: any };
const parsed = (texts: readonly string[]) => texts.map((text) => JSON.parse(text) as Message);

function modelOf({ url, received }: UpstreamSocket): string | undefined {
  const inUrl = url.searchParams.get("model");
  if (inUrl !== null) return inUrl;
  const [first] = received;
  if (first === undefined) return undefined;
  return (JSON.parse(first) as Message)["setup"]?.model?.replace(/^models\//, "");
}

function realtimeView({ received, sent }: UpstreamSocket): ProviderView {
  const messages = parsed(sent);
  return {
    asked: parsed(received).filter(({ type }) => type === "response.create").length,
    // Without another response running, each turn of speech begins one.
    spoken: messages.filter(({ type }) => type === "input_audio_buffer.committed").length,
    begun: messages.filter(({ type }) => type === "response.created").length,
    reported: messages.flatMap(realtimeCounts),
  };
}

function liveView({ received, sent }: UpstreamSocket): ProviderView {
  return {
    asked: parsed(received).filter((one) => one["clientContent"]?.turnComplete === true).length,
    spoken: 0,
    begun: 0,
    reported: parsed(sent).flatMap(liveCounts),
  };
}

/** The usage in an event, if it is the end of a response. */
export const realtimeCounts = ({ type, response }: Message): Counts[] =>
  type === "response.done" && response.usage
    ? [{ input: response.usage.input_tokens, output: response.usage.output_tokens }]
    : [];

export const liveCounts = ({ usageMetadata }: Message): Counts[] =>
  usageMetadata
    ? [{ input: usageMetadata.promptTokenCount, output: usageMetadata.responseTokenCount }]
    : [];

export const responsesCounts = ({ type, response }: Message): Counts[] =>
  type === "response.completed"
    ? [{ input: response.usage.input_tokens, output: response.usage.output_tokens }]
    : [];
