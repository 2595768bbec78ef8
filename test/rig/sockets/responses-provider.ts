// A provider of Responses: over HTTP for some models, and over WebSockets too for the others. Every
// response has another number of input tokens.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocketServer, type WebSocket } from "ws";
import type { Cut } from "../../kit/sockets/socket-upstream.ts";
import { responsesCounts, WORDS, type ProviderView, type ProvidersOptions } from "./providers.ts";

/** Path below which connections are accepted. */
export const SOCKET_BASE = "/sockets";

/** The work for one model. */
interface Work extends ProviderView {
  /** Events that were sent, over all connections. */
  sent: number;
  /** Requests that arrived, over all connections. */
  received: number;
}

/** Where a response is sent. */
interface Out {
  readonly isClosed: boolean;
  write(event: { readonly type: string }): void;
  cut(how: Cut["how"]): void;
}

type Options = Pick<ProvidersOptions, "cutOf" | "paceMs" | "forgets">;

class ResponsesProvider {
  readonly works = new Map<string, Work>();
  readonly #of: Options;
  #ids = 0;

  constructor(of: Options) {
    this.#of = of;
  }

  async post(req: IncomingMessage, res: ServerResponse): Promise<void> {
    res.on("error", () => {});
    const { model } = JSON.parse((await buffer(req)).toString()) as { model: string };
    const out: Out = {
      get isClosed() {
        return res.destroyed;
      },
      write(event) {
        if (!res.headersSent) res.writeHead(200, { "content-type": "text/event-stream" });
        res.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
      },
      cut: () => void req.socket.destroy(),
    };
    await this.#respond(model, out);
    res.end();
  }

  /** Reads the requests of a connection, which holds its last response. */
  accept(ws: WebSocket): void {
    let held: string | undefined;
    const out: Out = {
      get isClosed() {
        return ws.readyState !== ws.OPEN;
      },
      write: (event) => ws.send(JSON.stringify(event)),
      cut: (how) => (how === "reset" ? ws.terminate() : ws.close(how, "cut")),
    };
    ws.on("error", () => {});
    ws.on("message", async (data: Buffer) => {
      const { model, previous_response_id: previous } = JSON.parse(data.toString()) as {
        model: string;
        previous_response_id?: string;
      };
      if (previous !== undefined && (this.#of.forgets || previous !== held))
        return out.write(NOT_FOUND);
      held = await this.#respond(model, out);
    });
  }

  /** Sends the events of a response. Returns its ID. Undefined: the connection was cut. */
  async #respond(model: string, out: Out): Promise<string | undefined> {
    const work = this.works.get(model) ?? {
      asked: 0,
      spoken: 0,
      begun: 0,
      reported: [],
      sent: 0,
      received: 0,
    };
    this.works.set(model, work);
    const cut = this.#of.cutOf(model);
    if (cut?.of === "client" && ++work.received >= cut.after) return void out.cut(cut.how);
    work.asked++;
    const id = `resp_${++this.#ids}`;
    for (const event of eventsOf(id, model, 100 + this.#ids)) {
      if (this.#of.paceMs > 0) await sleep(this.#of.paceMs);
      if (out.isClosed) return undefined;
      out.write(event);
      work.reported.push(...responsesCounts(event));
      if (!cut || cut.of === "client" || ++work.sent < cut.after) continue;
      // The last event itself still leaves.
      await new Promise((resolve) => setImmediate(resolve));
      return void out.cut(cut.how);
    }
    return id;
  }
}

const NOT_FOUND = {
  type: "error",
  status: 400,
  error: {
    type: "invalid_request_error",
    code: "previous_response_not_found",
    message: "Previous response not found.",
    param: "previous_response_id",
  },
};

/** The events of one response: 9, of which 2 have a word each. */
function eventsOf(id: string, model: string, input_tokens: number) {
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
  const done = { ...item, status: "completed", content };
  const added = { output_index: 0, item: { ...item, status: "in_progress", content: [] } };
  const part = { type: "output_text", text: "", annotations: [] };
  const usage = {
    input_tokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 2,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input_tokens + 2,
  };
  return [
    { type: "response.created", ...response("in_progress", [], null) },
    { type: "response.output_item.added", ...added },
    { type: "response.content_part.added", ...place, part },
    ...WORDS.split(/(?= )/).map((delta) => ({
      type: "response.output_text.delta",
      ...place,
      delta,
    })),
    { type: "response.output_text.done", ...place, text: WORDS },
    { type: "response.content_part.done", ...place, part: content[0] },
    { type: "response.output_item.done", output_index: 0, item: done },
    { type: "response.completed", ...response("completed", [done], usage) },
  ].map((event, sequence_number) => ({ ...event, sequence_number }));
}

export async function startResponses(of: Options) {
  const provider = new ResponsesProvider(of);
  const server = createServer((req, res) => {
    if (req.method === "POST") void provider.post(req, res);
    else res.writeHead(404).end();
  });
  const wss = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  let connections = 0;
  server.on("upgrade", (req, socket, head) => {
    if (!req.url!.startsWith(SOCKET_BASE)) return void socket.end("HTTP/1.1 404 Not Found\r\n\r\n");
    wss.handleUpgrade(req, socket, head, (ws) => {
      connections++;
      provider.accept(ws);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    works: provider.works,
    get connections() {
      return connections;
    },
    async stop() {
      for (const ws of wss.clients) ws.terminate();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
