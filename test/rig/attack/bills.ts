// An upstream that reports the usage that its request orders, in the format of each protocol. The
// order is Base64 JSON in the prompt.
import type { ServerResponse } from "node:http";
import type { Json, JsonObject } from "tollgate/plugin";

export interface Order {
  /** Counts by the protocol's names. */
  readonly usage: JsonObject;
  /** Members of the response. */
  readonly more?: JsonObject;
  /** Items or blocks before the text. */
  readonly tools?: readonly JsonObject[];
  /** A second report with this share of the counts follows the first. */
  readonly shrinks?: number;
  /** The stream stops after its first text. */
  readonly hangs?: boolean;
}

export const PRICED = "bill";
export const ordered = (order: Order): string =>
  `order=${Buffer.from(JSON.stringify(order)).toString("base64")}`;

const ORDER = /order=([A-Za-z0-9+/=]+)/;
export function orderIn(body: string): Order | undefined {
  const found = ORDER.exec(body)?.[1];
  return found === undefined
    ? undefined
    : (JSON.parse(Buffer.from(found, "base64").toString()) as Order);
}

const shareOf = (usage: JsonObject, share: number): JsonObject =>
  Object.fromEntries(
    Object.entries(usage).map(([name, value]) => [
      name,
      typeof value === "number"
        ? Math.floor(value * share)
        : value !== null && typeof value === "object"
          ? shareOf(value as JsonObject, share)
          : (value as Json),
    ]),
  );

type Events = readonly (readonly [name: string, data: JsonObject])[];
interface Spoken {
  readonly whole: JsonObject;
  /** Parts before and after the first text. */
  readonly first: Events;
  readonly rest: Events;
}

function chat({ usage, more = {}, shrinks }: Order): Spoken {
  const frame = { id: "c", created: 1, model: PRICED, ...more };
  const chunk = (choices: readonly Json[], report?: JsonObject): Events[number] => [
    "",
    { ...frame, object: "chat.completion.chunk", choices, ...(report && { usage: report }) },
  ];
  return {
    whole: {
      ...frame,
      object: "chat.completion",
      choices: [{ index: 0, message: { role: "assistant", content: "ok" }, finish_reason: "stop" }],
      usage,
    },
    first: [chunk([{ index: 0, delta: { role: "assistant", content: "ok" } }])],
    rest: [
      chunk([{ index: 0, delta: {}, finish_reason: "stop" }]),
      chunk([], usage),
      ...(shrinks !== undefined ? [chunk([], shareOf(usage, shrinks))] : []),
    ],
  };
}

function messages({ usage, more = {}, tools = [], shrinks }: Order): Spoken {
  const frame = {
    id: "m",
    type: "message",
    role: "assistant",
    model: PRICED,
    stop_sequence: null,
    ...more,
  };
  const content = [{ type: "text", text: "ok" }, ...tools];
  const delta = { stop_reason: "end_turn", stop_sequence: null };
  const ending = (report: JsonObject): Events[number] => [
    "message_delta",
    { type: "message_delta", delta, usage: report },
  ];
  const begun = {
    ...frame,
    content: [],
    stop_reason: null,
    usage: { input_tokens: 0, output_tokens: 1 },
  };
  const blocks = content.map((content_block, index): Events => [
    ["content_block_start", { type: "content_block_start", index, content_block }],
    ["content_block_stop", { type: "content_block_stop", index }],
  ]);
  return {
    whole: { ...frame, content, stop_reason: "end_turn", usage },
    first: [["message_start", { type: "message_start", message: begun }], ...blocks[0]!],
    rest: [
      ...blocks.slice(1).flat(),
      ending(usage),
      ...(shrinks !== undefined ? [ending(shareOf(usage, shrinks))] : []),
      ["message_stop", { type: "message_stop" }],
    ],
  };
}

function responses({ usage, more = {}, tools = [] }: Order): Spoken {
  const said = {
    type: "message",
    id: "msg",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text: "ok", annotations: [] }],
  };
  const output = [
    said,
    ...tools.map((tool, i) => ({ id: `t${i}`, ...tool })),
  ] as readonly JsonObject[];
  const whole = {
    id: "r",
    object: "response",
    model: PRICED,
    status: "completed",
    output,
    ...more,
    usage,
  };
  const done = (item: JsonObject, output_index: number): Events[number] => [
    "response.output_item.done",
    { type: "response.output_item.done", output_index, item },
  ];
  return {
    whole,
    first: [
      [
        "response.created",
        {
          type: "response.created",
          response: { ...whole, output: [], usage: null, status: "in_progress" },
        },
      ],
      done(output[0]!, 0),
    ],
    rest: [
      ...output.slice(1).map((item, i) => done(item, i + 1)),
      ["response.completed", { type: "response.completed", response: whole }],
    ],
  };
}

function gemini({ usage, more = {}, shrinks }: Order): Spoken {
  const candidate = { content: { role: "model", parts: [{ text: "ok" }] }, ...more };
  const chunk = (one: object, report: JsonObject) =>
    ({ responseId: "g", candidates: [one], usageMetadata: report }) as JsonObject;
  const end = { finishReason: "STOP", content: { role: "model", parts: [] } };
  return {
    whole: chunk({ ...candidate, finishReason: "STOP" }, usage),
    first: [["", chunk(candidate, {})]],
    rest: [
      ["", chunk(end, usage)],
      ...(shrinks !== undefined ? ([["", chunk(end, shareOf(usage, shrinks))]] as const) : []),
    ],
  };
}

export function billed(path: string, stream: boolean, order: Order, res: ServerResponse): void {
  const isGemini = path.includes("enerateContent");
  const speak = isGemini
    ? gemini
    : path.endsWith("/messages")
      ? messages
      : path.endsWith("/responses")
        ? responses
        : chat;
  const { whole, first, rest } = speak(order);
  if (!stream && !path.includes("streamGenerate"))
    return void res
      .writeHead(200, { "content-type": "application/json" })
      .end(JSON.stringify(whole));
  const text = (events: Events) =>
    events
      .map(
        ([name, data]) =>
          `${name === "" ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`,
      )
      .join("");
  res.writeHead(200, { "content-type": "text/event-stream" });
  res.write(text(first));
  if (!order.hangs) res.end(text(rest) + (speak === chat ? "data: [DONE]\n\n" : ""));
}
