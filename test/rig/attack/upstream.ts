// An upstream that responds well or badly, as the model's name selects.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Json } from "tollgate/plugin";
import { billed, orderIn } from "./bills.ts";

export interface Heard {
  readonly path: string;
  readonly body: string;
}

export interface Upstream extends AsyncDisposable {
  readonly url: string;
  /** The last requests, and their total number. */
  readonly heard: Heard[];
  count: number;
}

const KEEP = 200;
const SSE = { "content-type": "text/event-stream" };
const event = (data: Json, name = "") =>
  `${name === "" ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;

const chunk = (more: object) => ({
  id: "c1",
  object: "chat.completion.chunk",
  created: 1,
  model: "m",
  ...more,
});
const delta = (said: object) => event(chunk({ choices: [{ index: 0, delta: said }] }) as Json);
const END = `${event(chunk({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }) as Json)}${event(chunk({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } }) as Json)}data: [DONE]\n\n`;

/** Writes at the reader's speed, endlessly or a number of times. */
function flood(
  res: ServerResponse,
  piece: (i: number) => string,
  times = Infinity,
  end = "",
): void {
  let i = 0;
  const more = () => {
    while (!res.destroyed && i < times)
      if (!res.write(piece(i++))) return void res.once("drain", more);
    if (!res.destroyed && i >= times) res.end(end);
  };
  more();
}

const calls = (i: number) =>
  delta({
    tool_calls: [
      { index: i, id: `call_${i}`, type: "function", function: { name: "f", arguments: "{}" } },
    ],
  });
const large = "x".repeat(64 * 1024);

/** Selected by the model's name. Each uses the chat protocol. */
export const HOSTILE: Readonly<Record<string, (res: ServerResponse) => void>> = {
  "blanks-in-json": (res) => {
    res.writeHead(200, SSE).write("{");
    flood(res, () => " ".repeat(64 * 1024));
  },
  "endless-words": (res) => {
    res.writeHead(200, SSE);
    flood(res, () => delta({ content: large }));
  },
  "endless-letters": (res) => {
    const many = delta({ content: "a" }).repeat(500);
    res.writeHead(200, SSE);
    flood(res, () => many);
  },
  "endless-line": (res) => {
    res.writeHead(200, SSE).write("data: ");
    flood(res, () => large);
  },
  "endless-event": (res) => {
    res.writeHead(200, SSE);
    flood(res, () => `data: ${"x".repeat(500)}\n`);
  },
  "endless-whole": (res) => {
    res.writeHead(200, { "content-type": "application/json" }).write('{"id":"');
    flood(res, () => large);
  },
  "endless-error": (res) => {
    res.writeHead(400, { "content-type": "application/json" }).write('{"error":{"message":"');
    flood(res, () => large);
  },
  "endless-comments": (res) => {
    res.writeHead(200, SSE);
    const more = () => {
      if (res.destroyed) return;
      res.write(": still here\n\n");
      setTimeout(more, 200).unref();
    };
    more();
  },
  "many-calls": (res) => {
    res.writeHead(200, SSE);
    flood(res, calls, 16_000, END);
  },
  "large-id": (res) => {
    res.writeHead(200, SSE);
    const id = "i".repeat(900_000);
    res.end(
      event({ ...chunk({ choices: [{ index: 0, delta: { content: "a" } }] }), id } as Json) + END,
    );
  },
  "many-reports": (res) => {
    res.writeHead(200, SSE).write(delta({ content: "a" }));
    flood(
      res,
      (i) =>
        event({
          ...chunk({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } }),
          model: `m${i}`,
        } as Json),
      100_000,
      END,
    );
  },
};

function well(path: string, stream: boolean, res: ServerResponse): void {
  if (path.includes("chat/completions")) {
    if (stream)
      return void res.writeHead(200, SSE).end(delta({ role: "assistant", content: "ok" }) + END);
    return send(res, {
      ...chunk({ object: "chat.completion" }),
      choices: [{ index: 0, message: { role: "assistant", content: "ok" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    });
  }
  if (path.includes("messages") && !stream)
    return send(res, {
      id: "m1",
      type: "message",
      role: "assistant",
      model: "m",
      content: [{ type: "text", text: "ok" }],
      stop_reason: "end_turn",
      usage: { input_tokens: 1, output_tokens: 1 },
    });
  if (path.includes("enerateContent")) {
    const said = {
      candidates: [{ content: { role: "model", parts: [{ text: "ok" }] }, finishReason: "STOP" }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    };
    if (stream || path.includes("stream")) return void res.writeHead(200, SSE).end(event(said));
    return send(res, said);
  }
  if (path.includes("messages")) {
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = {
      id: "m1",
      type: "message",
      role: "assistant",
      model: "m",
      content: [],
      stop_reason: null,
      usage,
    };
    const events: { type: string; [more: string]: unknown }[] = [
      { type: "message_start", message },
      { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
      { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "ok" } },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage },
      { type: "message_stop" },
    ];
    return void res.writeHead(200, SSE).end(events.map((e) => event(e as Json, e.type)).join(""));
  }
  send(res, { error: { message: "no such thing here" } }, 404);
}

function send(res: ServerResponse, body: object, status = 200): void {
  res.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

export async function upstream(): Promise<Upstream> {
  const heard: Heard[] = [];
  const self = { count: 0 };
  const server = createServer((req: IncomingMessage, res) => {
    const pieces: Buffer[] = [];
    req.on("data", (piece: Buffer) => pieces.push(piece));
    req.on("error", () => {});
    res.on("error", () => {});
    req.on("end", () => {
      const all = Buffer.concat(pieces);
      const path = req.url ?? "";
      if (req.method === "GET") return send(res, { object: "list", data: [] });
      self.count++;
      // The start of a large one suffices to identify it.
      heard.push({ path, body: all.toString("utf8", 0, 20_000) });
      if (heard.length > KEEP) heard.shift();
      const start =
        all.toString("latin1", 0, 4_000) +
        all.toString("latin1", Math.max(4_000, all.length - 4_000));
      const model = /"model"\s*:\s*"([^"]*)"/.exec(start)?.[1] ?? "";
      const hostile = Object.hasOwn(HOSTILE, model) ? HOSTILE[model] : undefined;
      if (hostile) return hostile(res);
      const order = path.startsWith("/bill/") ? orderIn(all.toString("latin1")) : undefined;
      if (order)
        return billed(path, /"stream"\s*:\s*true/.test(all.toString("latin1")), order, res);
      return well(path, /"stream"\s*:\s*true/.test(start), res);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return Object.assign(self, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    heard,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}
