// An upstream that streams as long as it is read, in each protocol.
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** Parts of a response: its start, a chunk, and its end. */
interface Speech {
  readonly begin: string;
  readonly more: string;
  readonly end: string;
}

const content = "word ".repeat(800);
const data = (event: object) => `data: ${JSON.stringify(event)}\n\n`;
const named = (event: { readonly type: string; readonly [member: string]: unknown }) =>
  `event: ${event.type}\n${data(event)}`;
const chunk = (delta: object, finish_reason: string | null) =>
  data({
    id: "c",
    object: "chat.completion.chunk",
    created: 1,
    model: "model",
    choices: [{ index: 0, delta, finish_reason }],
  });
const item = (status: string, said: readonly object[]) => ({
  id: "i",
  type: "message",
  role: "assistant",
  status,
  content: said,
});
const response = (status: string) => ({
  id: "r",
  object: "response",
  created_at: 1,
  model: "model",
  status,
  output: [],
});
const said = (text: string) => ({ type: "output_text", text, annotations: [] });
const place = { item_id: "i", output_index: 0, content_index: 0 };
const part = (
  text: string,
  { finishReason, ...more }: { finishReason?: string; [member: string]: unknown } = {},
) =>
  data({
    candidates: [
      {
        content: { role: "model", parts: [{ text }] },
        index: 0,
        ...(finishReason && { finishReason }),
      },
    ],
    modelVersion: "model",
    ...more,
  });

const SPEECHES = {
  chat: {
    begin: "",
    more: chunk({ content }, null),
    end: `${chunk({}, "stop")}data: [DONE]\n\n`,
  },
  messages: {
    begin:
      named({
        type: "message_start",
        message: {
          id: "m",
          type: "message",
          role: "assistant",
          model: "model",
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { input_tokens: 1, output_tokens: 1 },
        },
      }) +
      named({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
    more: named({
      type: "content_block_delta",
      index: 0,
      delta: { type: "text_delta", text: content },
    }),
    end:
      named({ type: "content_block_stop", index: 0 }) +
      named({
        type: "message_delta",
        delta: { stop_reason: "end_turn", stop_sequence: null },
        usage: { output_tokens: 9 },
      }) +
      named({ type: "message_stop" }),
  },
  responses: {
    begin:
      named({ type: "response.created", sequence_number: 0, response: response("in_progress") }) +
      named({
        type: "response.output_item.added",
        sequence_number: 1,
        output_index: 0,
        item: item("in_progress", []),
      }) +
      named({
        type: "response.content_part.added",
        sequence_number: 2,
        ...place,
        part: said(""),
      }),
    more: named({
      type: "response.output_text.delta",
      sequence_number: 3,
      ...place,
      delta: content,
      logprobs: [],
    }),
    end: named({
      type: "response.completed",
      sequence_number: 4,
      response: {
        ...response("completed"),
        output: [item("completed", [said("word")])],
        usage: { input_tokens: 1, output_tokens: 9, total_tokens: 10 },
      },
    }),
  },
  gemini: {
    begin: "",
    more: part(content),
    end: part("", {
      finishReason: "STOP",
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 9, totalTokenCount: 10 },
    }),
  },
} satisfies Record<string, Speech>;

/** Its protocol, by the start of its path. */
export type StreamProtocol = keyof typeof SPEECHES;
export const STREAM_PROTOCOLS = Object.keys(SPEECHES) as StreamProtocol[];

/** Length of the response to a client that sends "short". */
const SHORT = 4 * 1024 * 1024;

export async function createEndlessUpstream(bytes: number) {
  let [sent, open] = [0, 0];
  const talk = (res: ServerResponse, { more, end }: Speech, left: number) => {
    while (left > 0) {
      left -= more.length;
      sent += more.length;
      if (res.destroyed) return;
      if (!res.write(more))
        return void res.once("drain", () => talk(res, { begin: "", more, end }, left));
    }
    res.end(end);
  };
  const server = createServer((req, res) => {
    const speech = SPEECHES[req.url!.split("/")[1] as StreamProtocol];
    let asked = "";
    req.on("data", (piece: Buffer) => (asked += piece.toString()));
    req.on("end", () => {
      open++;
      res.on("close", () => open--);
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(speech.begin || ": \n\n");
      talk(res, speech, asked.includes("short") ? SHORT : bytes);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    sent: () => sent,
    open: () => open,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  };
}
