// The providers of the rig: Realtime, Gemini Live, and Responses. Each one counts what it was asked and
// what it reported, for each model. A model belongs to one session.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { startGeminiLiveUpstream } from "../../kit/sockets/gemini-live-upstream.ts";
import { startRealtimeUpstream } from "../../kit/sockets/realtime-upstream.ts";
import type { Cut, UpstreamSocket } from "../../kit/sockets/socket-upstream.ts";

export type ProtocolName = "realtime" | "live" | "responses";

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
  /** Usage that it reported, one for each response that ended. */
  reported: Counts[];
}

export interface Providers extends AsyncDisposable {
  /** Base URL of each provider. */
  readonly urls: Readonly<Record<ProtocolName, string>>;
  view(protocol: ProtocolName, model: string): ProviderView;
}

interface ProvidersOptions {
  /** Returns the cut of a session, by its model. */
  cutOf(model: string): Cut | undefined;
  /** Milliseconds between two messages. */
  readonly paceMs: number;
  /** Whether Gemini Live reports usage in a message after the end of the turn. */
  readonly lateUsage: boolean;
}

/** Words of each response. */
const WORDS = "Hello there";

export async function startProviders({
  cutOf,
  paceMs,
  lateUsage,
}: ProvidersOptions): Promise<Providers> {
  const cut = (socket: UpstreamSocket) => {
    const model = modelOf(socket);
    return model === undefined ? undefined : cutOf(model);
  };
  const options = { words: WORDS, paceMs, cut };
  const realtime = await startRealtimeUpstream(options);
  const live = await startGeminiLiveUpstream({ ...options, lateUsage });
  const responses = await startResponses({ cutOf, paceMs });
  return {
    urls: { realtime: realtime.url, live: live.url, responses: responses.url },
    view(protocol, model) {
      if (protocol === "responses")
        return responses.views.get(model) ?? { asked: 0, spoken: 0, reported: [] };
      const { sockets } = protocol === "realtime" ? realtime : live;
      const read = protocol === "realtime" ? realtimeView : liveView;
      const views = sockets.filter((socket) => modelOf(socket) === model).map(read);
      return {
        asked: views.reduce((sum, view) => sum + view.asked, 0),
        spoken: views.reduce((sum, view) => sum + view.spoken, 0),
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
    reported: messages.flatMap(realtimeCounts),
  };
}

function liveView({ received, sent }: UpstreamSocket): ProviderView {
  return {
    asked: parsed(received).filter((one) => one["clientContent"]?.turnComplete === true).length,
    spoken: 0,
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

/** A provider of Responses over HTTP. Every response has another number of input tokens. */
async function startResponses({ cutOf, paceMs }: Pick<ProvidersOptions, "cutOf" | "paceMs">) {
  const views = new Map<string, ProviderView>();
  let ids = 0;
  const serve = async (req: IncomingMessage, res: ServerResponse) => {
    res.on("error", () => {});
    const { model } = JSON.parse((await buffer(req)).toString()) as { model: string };
    const view = views.get(model) ?? { asked: 0, spoken: 0, reported: [] };
    views.set(model, view);
    view.asked++;
    const cut = cutOf(model);
    if (cut?.of === "client" && view.asked >= cut.after) return req.socket.destroy();
    const id = `resp_${++ids}`;
    res.writeHead(200, { "content-type": "text/event-stream" });
    let sequence = 0;
    let sent = 0;
    const send = async (type: string, fields: object) => {
      if (paceMs > 0) await sleep(paceMs);
      if (res.destroyed) return;
      const event = { type, sequence_number: sequence++, ...fields };
      res.write(`event: ${type}\ndata: ${JSON.stringify(event)}\n\n`);
      view.reported.push(...responsesCounts(event));
      if (cut && cut.of !== "client" && ++sent >= cut.after) {
        // The last event itself still leaves.
        await new Promise((resolve) => setImmediate(resolve));
        req.socket.destroy();
      }
    };
    const response = (status: string, output: object[], usage: object | null) => ({
      response: {
        id,
        object: "response",
        created_at: 1_800_000_000,
        status,
        model,
        output,
        usage,
        error: null,
      },
    });
    const item = { id: `msg_${id}`, type: "message", role: "assistant" };
    const place = { output_index: 0, item_id: item.id, content_index: 0 };
    const content = [{ type: "output_text", text: WORDS, annotations: [] }];
    await send("response.created", response("in_progress", [], null));
    await send("response.output_item.added", {
      output_index: 0,
      item: { ...item, status: "in_progress", content: [] },
    });
    await send("response.content_part.added", {
      ...place,
      part: { type: "output_text", text: "", annotations: [] },
    });
    for (const word of WORDS.split(/(?= )/))
      await send("response.output_text.delta", { ...place, delta: word });
    await send("response.output_text.done", { ...place, text: WORDS });
    await send("response.content_part.done", { ...place, part: content[0] });
    const done = { ...item, status: "completed", content };
    await send("response.output_item.done", { output_index: 0, item: done });
    const input_tokens = 100 + ids;
    await send(
      "response.completed",
      response("completed", [done], {
        input_tokens,
        input_tokens_details: { cached_tokens: 0 },
        output_tokens: 2,
        output_tokens_details: { reasoning_tokens: 0 },
        total_tokens: input_tokens + 2,
      }),
    );
    res.end();
  };
  const server = createServer((req, res) => {
    if (req.method === "POST") void serve(req, res);
    else res.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    views,
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
