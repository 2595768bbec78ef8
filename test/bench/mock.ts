// A provider with almost no cost: no HTTP library, and fixed responses. The model's name selects
// the response: s2048 has about that many bytes, e200 is a stream of that many events, and p50
// sends an event at that interval in milliseconds.
import { createServer, type Socket } from "node:net";
import { answerTool, isToolServer } from "./mcp/mock-server.ts";

const FILLER = "the quick brown fox jumps over the lazy dog and keeps on running ";
const PEEK = 4096;
/** Number of events per write at full speed. */
const BATCH = 16;

interface Wanted {
  size: number;
  events: number;
  pace: number;
  stream: boolean;
  wire: keyof typeof SPEECHES;
}

const number = (text: string, letter: string, otherwise: number) =>
  Number(new RegExp(`bench[^"]*-${letter}(\\d+)`).exec(text)?.[1] ?? otherwise);

function wanted(head: string, body: string): Wanted {
  return {
    size: number(body, "s", 2048),
    events: number(body, "e", 100),
    pace: number(body, "p", 0),
    stream: body.includes('"stream":true'),
    wire: head.includes("/messages ")
      ? "messages"
      : head.includes("/responses ")
        ? "responses"
        : "chat",
  };
}

const wholes = new Map<string, Buffer>();

function whole({ size, wire }: Wanted): Buffer {
  const key = `${size}${wire}`;
  let answer = wholes.get(key);
  if (answer) return answer;
  const text = FILLER.repeat(Math.ceil(size / FILLER.length)).slice(0, Math.max(1, size - 330));
  const body = JSON.stringify(
    wire === "messages"
      ? {
          id: "msg_bench",
          type: "message",
          role: "assistant",
          model: "bench",
          content: [{ type: "text", text }],
          stop_reason: "end_turn",
          stop_sequence: null,
          usage: { input_tokens: 256, output_tokens: 400 },
        }
      : {
          id: "chatcmpl-bench",
          object: "chat.completion",
          created: 1_700_000_000,
          model: "bench",
          choices: [
            { index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" },
          ],
          usage: { prompt_tokens: 256, completion_tokens: 400, total_tokens: 656 },
        },
  );
  answer = Buffer.from(
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  wholes.set(key, answer);
  return answer;
}

const chunked = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
const HEAD =
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const named = (type: string, rest: object) =>
  chunked(`event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`);
const chat = (delta: object, rest: object = {}) =>
  chunked(
    `data: ${JSON.stringify({ id: "chatcmpl-bench", object: "chat.completion.chunk", created: 1_700_000_000, model: "bench", choices: [{ index: 0, delta, finish_reason: null, ...rest }] })}\n\n`,
  );

const CHAT = {
  first: chat({ role: "assistant", content: "" }),
  event: (text: string) => chat({ content: text }),
  last:
    chat({}, { finish_reason: "stop" }) +
    chunked(
      `data: ${JSON.stringify({ id: "chatcmpl-bench", object: "chat.completion.chunk", created: 1_700_000_000, model: "bench", choices: [], usage: { prompt_tokens: 256, completion_tokens: 400, total_tokens: 656 } })}\n\n`,
    ) +
    chunked("data: [DONE]\n\n") +
    "0\r\n\r\n",
};

const MESSAGES = {
  first:
    named("message_start", {
      message: {
        id: "msg_bench",
        type: "message",
        role: "assistant",
        model: "bench",
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 256, output_tokens: 1 },
      },
    }) + named("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  event: (text: string) =>
    named("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
  last:
    named("content_block_stop", { index: 0 }) +
    named("message_delta", {
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { output_tokens: 400 },
    }) +
    named("message_stop", {}) +
    "0\r\n\r\n",
};

const said = (text: string) => ({ type: "output_text", text, annotations: [], logprobs: [] });
const item = (status: string, content: object[]) => ({
  id: "msg_bench",
  type: "message",
  status,
  role: "assistant",
  content,
});
const response = (status: string, rest: object) => ({
  id: "resp_bench",
  object: "response",
  created_at: 1_700_000_000,
  status,
  model: "bench",
  output: [],
  ...rest,
});
const PLACE = { item_id: "msg_bench", output_index: 0, content_index: 0 };
const WORDS = "what was said";

/** Event counts are cached, because they are the same for every request. */
const RESPONSES = {
  first:
    named("response.created", { sequence_number: 0, response: response("in_progress", {}) }) +
    named("response.output_item.added", {
      sequence_number: 1,
      output_index: 0,
      item: item("in_progress", []),
    }) +
    named("response.content_part.added", { sequence_number: 2, ...PLACE, part: said("") }),
  event: (text: string) =>
    named("response.output_text.delta", {
      sequence_number: 3,
      ...PLACE,
      delta: text,
      logprobs: [],
      obfuscation: "Qx7Lw2",
    }),
  last:
    named("response.output_text.done", {
      sequence_number: 4,
      ...PLACE,
      text: WORDS,
      logprobs: [],
    }) +
    named("response.content_part.done", { sequence_number: 5, ...PLACE, part: said(WORDS) }) +
    named("response.output_item.done", {
      sequence_number: 6,
      output_index: 0,
      item: item("completed", [said(WORDS)]),
    }) +
    named("response.completed", {
      sequence_number: 7,
      response: response("completed", {
        output: [item("completed", [said(WORDS)])],
        usage: {
          input_tokens: 256,
          input_tokens_details: { cached_tokens: 0 },
          output_tokens: 400,
          output_tokens_details: { reasoning_tokens: 0 },
          total_tokens: 656,
        },
      }),
    }) +
    "0\r\n\r\n",
};

const SPEECHES = { chat: CHAT, messages: MESSAGES, responses: RESPONSES };

/** Every event contains its send time, to measure its latency. */
const stamp = () => `@${(process.hrtime.bigint() / 1000n).toString().padStart(16, "0")} `;

class Stream {
  readonly #socket: Socket;
  readonly #speech: typeof CHAT;
  readonly #over: () => void;
  left: number;

  constructor(socket: Socket, wish: Wanted, over: () => void) {
    this.#socket = socket;
    this.#speech = SPEECHES[wish.wire];
    this.#over = over;
    this.left = wish.events;
  }

  begin(): void {
    this.#socket.write(HEAD + this.#speech.first);
  }

  /** This many more events, in one write. */
  more(count: number): boolean {
    const n = Math.min(count, this.left);
    this.left -= n;
    const one = this.#speech.event(`${stamp()}${FILLER.slice(0, 24)}`);
    const text = n === 1 ? one : one.repeat(n);
    if (this.left > 0) return this.#socket.write(text);
    this.#socket.write(text + this.#speech.last);
    this.#over();
    return true;
  }
}

/** One timer for all paced streams. Each stream has a slot in the round. */
class Wheel {
  readonly #slots: Set<Stream>[];
  #at = 0;
  #next = 0;

  constructor(pace: number) {
    this.#slots = Array.from({ length: pace }, () => new Set());
    let due = performance.now();
    setInterval(() => {
      for (const now = performance.now(); due <= now; due += 1) {
        const slot = this.#slots[this.#at]!;
        this.#at = (this.#at + 1) % pace;
        for (const stream of slot) {
          stream.more(1);
          if (stream.left === 0) slot.delete(stream);
        }
      }
    }, 1);
  }

  join(stream: Stream): void {
    this.#slots[this.#next++ % this.#slots.length]!.add(stream);
  }
}

const wheels = new Map<number, Wheel>();

function answer(socket: Socket, wish: Wanted): void {
  if (!wish.stream) return void socket.write(whole(wish));
  const stream = new Stream(socket, wish, () => {});
  stream.begin();
  if (wish.pace > 0) {
    let wheel = wheels.get(wish.pace);
    if (!wheel) wheels.set(wish.pace, (wheel = new Wheel(wish.pace)));
    return wheel.join(stream);
  }
  const run = () => {
    while (stream.left > 0) if (!stream.more(BATCH)) return void socket.once("drain", run);
  };
  setImmediate(run);
}

const server = createServer((socket) => {
  let head = "";
  let peek = "";
  let missing = 0;
  let chunks = false;
  socket.setNoDelay(true);
  socket.on("error", () => socket.destroy());
  socket.on("data", (data: Buffer) => {
    let body = data;
    if (head === "") {
      const end = data.indexOf("\r\n\r\n");
      if (end < 0) return void socket.destroy();
      head = data.toString("latin1", 0, end).toLowerCase();
      body = data.subarray(end + 4);
      peek = "";
      chunks = head.includes("transfer-encoding: chunked");
      missing = Number(/content-length: (\d+)/.exec(head)?.[1] ?? 0);
    }
    if (peek.length < PEEK) peek += body.toString("latin1", 0, PEEK);
    missing -= body.length;
    const over = chunks ? data.subarray(-5).toString("latin1") === "0\r\n\r\n" : missing <= 0;
    if (!over) return;
    const asked = head;
    head = "";
    if (isToolServer(asked)) answerTool(socket, asked, peek);
    else answer(socket, wanted(asked, peek));
  });
});
server.listen(0, "127.0.0.1", () =>
  process.send!({ port: (server.address() as { port: number }).port }),
);
process.on("disconnect", () => process.exit());
