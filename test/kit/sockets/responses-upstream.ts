// A provider of the Responses API that takes requests over WebSockets and over HTTP. A connection
// holds its last response, as the public guide describes it, and knows no other.
import { SocketUpstream, type UpstreamSocket } from "./socket-upstream.ts";

export interface ResponsesUpstreamOptions {
  /** Called before the completed event. The response ends when it resolves. */
  hold?: (() => Promise<void>) | undefined;
  /** Error event in place of a response. */
  error?: object | undefined;
  /** Closes the connection with this code instead of completing the response. */
  closesWith?: number | undefined;
  /** Forgets the last response, as after a failover of the provider. */
  forgets?: boolean | undefined;
}

export interface ResponsesUpstream {
  readonly url: string;
  readonly sockets: readonly UpstreamSocket[];
  /** Bodies of the requests over HTTP. */
  readonly posts: readonly any[];
  /** All requests over WebSockets, in order. */
  readonly created: readonly { readonly socket: UpstreamSocket; readonly body: any }[];
  /** Status of every handshake, instead of accepting it. */
  rejects: number | undefined;
  options: ResponsesUpstreamOptions;
  stop(): Promise<void>;
}

const USAGE = {
  input_tokens: 7,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 3,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 10,
};

export async function startResponsesUpstream(): Promise<ResponsesUpstream> {
  const posts: any[] = [];
  const created: { socket: UpstreamSocket; body: any }[] = [];
  let options: ResponsesUpstreamOptions = {};
  let count = 0;
  const upstream = await SocketUpstream.start(
    (socket) => {
      let held: string | undefined;
      return async (message) => {
        const { type, ...body } = JSON.parse(message);
        if (type !== "response.create") return socket.close(1008, "unknown event");
        created.push({ socket, body });
        const previous = body.previous_response_id;
        if (options.error) return void socket.send(options.error);
        if (previous !== undefined && (options.forgets || previous !== held))
          return void socket.send({
            type: "error",
            status: 400,
            error: {
              type: "invalid_request_error",
              code: "previous_response_not_found",
              message: `Previous response with id '${previous}' not found.`,
              param: "previous_response_id",
            },
          });
        const id = `resp_${++count}`;
        const [begin, last] = eventsOf(id, body.model);
        for (const event of begin) await socket.send(event);
        await options.hold?.();
        if (options.closesWith !== undefined) return socket.close(options.closesWith, "cut");
        held = id;
        for (const event of last) await socket.send(event);
      };
    },
    {
      answer: async (_req, bytes) => {
        if (bytes.length === 0) return { status: 404, body: "{}" };
        const body = JSON.parse(bytes.toString());
        posts.push(body);
        const events = eventsOf(`resp_${++count}`, body.model).flat();
        return {
          status: 200,
          headers: { "content-type": "text/event-stream" },
          body: events
            .map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
            .join(""),
        };
      },
    },
  );
  return {
    url: upstream.url,
    sockets: upstream.sockets,
    posts,
    created,
    get rejects() {
      return upstream.options.rejects;
    },
    set rejects(status) {
      upstream.options = status === undefined ? {} : { rejects: status };
    },
    get options() {
      return options;
    },
    set options(next) {
      options = next;
    },
    stop: () => upstream.stop(),
  };
}

/** The events of a response before its end, and at its end. */
function eventsOf(id: string, model: string): [any[], any[]] {
  const text = `Turn ${id}.`;
  const part = { type: "output_text", text, annotations: [] };
  const item = { type: "message", id: `msg_${id}`, role: "assistant", status: "completed" };
  const response = { id, object: "response", created_at: 1, model, status: "in_progress" };
  const at = { item_id: item.id, output_index: 0, content_index: 0 };
  const begin = [
    { type: "response.created", response: { ...response, output: [] } },
    {
      type: "response.output_item.added",
      output_index: 0,
      item: { ...item, status: "in_progress", content: [] },
    },
    { type: "response.content_part.added", ...at, part: { ...part, text: "" } },
    { type: "response.output_text.delta", ...at, delta: text },
  ];
  const done = { ...item, content: [part] };
  const last = [
    { type: "response.output_text.done", ...at, text },
    { type: "response.content_part.done", ...at, part },
    { type: "response.output_item.done", output_index: 0, item: done },
    {
      type: "response.completed",
      response: { ...response, status: "completed", output: [done], usage: USAGE },
    },
  ];
  let sequence = 0;
  const numbered = (event: object) => ({ ...event, sequence_number: sequence++ });
  return [begin.map(numbered), last.map(numbered)];
}
