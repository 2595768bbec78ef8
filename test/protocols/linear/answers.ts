// Responses of hostile or unusual upstreams, as event streams and as bodies, each of about `n`
// pieces.
import type { Json } from "tollgate/plugin";
import { shuffled, times } from "./requests.ts";

export interface Upstream {
  readonly streams: { readonly [shape: string]: (n: number) => Buffer[] };
  readonly wholes: { readonly [shape: string]: (n: number) => Buffer };
}

const event = (data: Json, name?: string): Buffer =>
  Buffer.from(`${name ? `event: ${name}\n` : ""}data: ${JSON.stringify(data)}\n\n`);
const DONE = Buffer.from("data: [DONE]\n\n");
const json = (body: Json): Buffer => Buffer.from(JSON.stringify(body));
const PIXEL = "iVBORw0KGgo=";

// chat completions

const chunk = (delta: Json, more: object = {}, beside: object = {}): Buffer =>
  event({
    id: "c1",
    object: "chat.completion.chunk",
    model: "up",
    choices: [{ index: 0, delta, ...more }],
    ...beside,
  } as Json);
const chatEnd = (reason = "stop"): Buffer[] => [chunk({}, { finish_reason: reason }), DONE];
const piece = (of: object): Json => ({ tool_calls: [of] }) as Json;
const chatWhole = (message: Json, more: object = {}): Buffer =>
  json({
    id: "c1",
    model: "up",
    choices: [{ index: 0, message, finish_reason: "stop", ...more }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  } as Json);

const chat: Upstream = {
  streams: {
    "many words": (n) => [...times(n, () => chunk({ content: "x" })), ...chatEnd()],
    "calls, one after the other": (n) => [
      ...times(n, (i) =>
        chunk(piece({ index: i, id: `c${i}`, function: { name: "f", arguments: "{}" } })),
      ),
      ...chatEnd("tool_calls"),
    ],
    "calls that are never whole": (n) => [
      ...times(n, (i) =>
        chunk(piece({ index: i, id: `c${i}`, function: { name: "f", arguments: '{"a":{}' } })),
      ),
      ...times(n, (i) => chunk(piece({ index: i, function: { arguments: "}" } }))),
      ...chatEnd("tool_calls"),
    ],
    "calls without a number": (n) => [
      ...times(n, (i) => chunk(piece({ id: `c${i}`, function: { name: "f", arguments: "{}" } }))),
      ...chatEnd("tool_calls"),
    ],
    "calls without anything": (n) => [
      ...times(n, () => chunk(piece({ function: { name: "f", arguments: "{}" } }))),
      ...chatEnd("tool_calls"),
    ],
    "calls of one number": (n) => [
      ...times(n, (i) =>
        chunk(piece({ index: 0, id: `c${i}`, function: { name: "f", arguments: "{}" } })),
      ),
      ...chatEnd("tool_calls"),
    ],
    "pieces of calls in any order": (n) => [
      ...times(n, (i) =>
        chunk(piece({ index: i, id: `c${i}`, function: { name: "f", arguments: "" } })),
      ),
      ...shuffled(times(n, (i) => chunk(piece({ index: i, function: { arguments: "{}" } })))),
      ...chatEnd("tool_calls"),
    ],
    "a call in many pieces": (n) => [
      chunk(piece({ index: 0, id: "c", function: { name: "f", arguments: '{"a":"' } })),
      ...times(n, () => chunk(piece({ index: 0, function: { arguments: "}" } }))),
      chunk(piece({ index: 0, function: { arguments: '"}' } })),
      ...chatEnd("tool_calls"),
    ],
    "a call in many pieces without a number": (n) => [
      chunk(piece({ function: { name: "f", arguments: '{"a":"' } })),
      ...times(n, () => chunk(piece({ function: { name: "f", arguments: "{}" } }))),
      chunk(piece({ function: { arguments: '"}' } })),
      ...chatEnd("tool_calls"),
    ],
    "calls that begin while one grows": (n) => [
      chunk(piece({ index: 0, id: "c", function: { name: "f", arguments: '{"a":"' } })),
      ...times(n, (i) => [
        chunk(piece({ index: 0, function: { arguments: "}}}}" } })),
        chunk(piece({ index: i + 1, id: `c${i}`, function: { name: "f", arguments: "{}" } })),
      ]).flat(),
      chunk(piece({ index: 0, function: { arguments: '"}' } })),
      ...chatEnd("tool_calls"),
    ],
    "text and reasoning in turns": (n) => [
      ...times(n, (i) => chunk(i % 2 ? { content: "x" } : { reasoning_content: "y" })),
      ...chatEnd(),
    ],
    "details of reasoning": (n) => [
      ...times(n, (i) =>
        chunk({ reasoning_details: [{ type: "reasoning.text", index: i, text: "x" }] }),
      ),
      chunk({ content: "x" }),
      ...chatEnd(),
    ],
    "likelihoods without words": (n) => [
      ...times(n, () =>
        chunk({ content: "" }, { logprobs: { content: [{ token: "x", logprob: 0 }] } }),
      ),
      chunk({ content: "x" }),
      ...chatEnd(),
    ],
    "likelihoods all at once": (n) => [
      chunk(
        { content: "x" },
        { logprobs: { content: times(n, () => ({ token: "x", logprob: 0 })) } },
      ),
      ...chatEnd(),
    ],
    "sound with ever other members": (n) => [
      ...times(n, (i) => chunk({ audio: { data: "AA", [`x${i}`]: 1 } })),
      ...chatEnd(),
    ],
    "counts again and again": (n) => [
      ...times(n, (i) =>
        chunk(
          { content: "x" },
          {},
          { usage: { prompt_tokens: 1, completion_tokens: i, [`x${i}`]: 1 } },
        ),
      ),
      ...chatEnd(),
    ],
    "blanks before the words": (n) => [
      ...times(n, () => chunk({ content: " " })),
      chunk({ content: "x" }),
      ...chatEnd(),
    ],
    "a thought between tags": (n) => [
      chunk({ content: "<think>" }),
      ...times(n, () => chunk({ content: "</" })),
      chunk({ content: "</think>x" }),
      ...chatEnd(),
    ],
    "many pictures": (n) => [
      ...times(n, () =>
        chunk({
          images: [{ type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } }],
        }),
      ),
      ...chatEnd(),
    ],
    "many citations": (n) => [
      chunk({ content: "x" }),
      ...times(n, () =>
        chunk({ annotations: [{ type: "url_citation", url_citation: { url: "https://e" } }] }),
      ),
      ...chatEnd(),
    ],
    "chunks of ever other members": (n) => [
      ...times(n, (i) => chunk({ content: "x" }, {}, { [`x${i}`]: i })),
      ...chatEnd(),
    ],
    "ever other kinds of chunk": (n) => [
      ...times(n, (i) => [chunk({ content: "x" }), chunk({ [`x${i}`]: "y", content: "x" })]).flat(),
      ...chatEnd(),
    ],
    "everything at once": (n) => [
      chatWhole({
        content: "x",
        tool_calls: times(n, (i) => ({ id: `c${i}`, function: { name: "f", arguments: "{}" } })),
      }),
    ],
  },
  wholes: {
    "many calls": (n) =>
      chatWhole({
        content: null,
        tool_calls: times(n, (i) => ({
          id: `c${i}`,
          type: "function",
          function: { name: "f", arguments: "{}" },
        })),
      }),
    "calls without ids": (n) =>
      chatWhole({
        content: null,
        tool_calls: times(n, () => ({
          type: "function",
          function: { name: "f", arguments: "{}" },
        })),
      }),
    "one long text": (n) => chatWhole({ content: "word ".repeat(20 * n) }),
    "many parts": (n) =>
      chatWhole({
        content: times(n, (i) => ({ type: i % 2 ? "text" : "thinking", text: "x", thinking: "y" })),
      }),
    "many likelihoods": (n) =>
      chatWhole(
        { content: "x" },
        { logprobs: { content: times(n, () => ({ token: "x", logprob: 0 })) } },
      ),
    "many details": (n) =>
      chatWhole({
        content: "x",
        reasoning_details: times(n, (i) => ({ type: "reasoning.text", index: i, text: "x" })),
      }),
    "many pictures": (n) =>
      chatWhole({
        content: "x",
        images: times(n, () => ({ image_url: { url: `data:image/png;base64,${PIXEL}` } })),
      }),
    "many choices": (n) =>
      json({
        id: "c",
        choices: times(n, (index) => ({
          index: n - 1 - index,
          message: { content: "x" },
          finish_reason: "stop",
        })),
      }),
    "nested without end": (n) =>
      Buffer.from(`{"id":"c","choices":${"[".repeat(n)}${"]".repeat(n)}}`),
  },
};

// messages

const named = (type: string, more: object = {}): Buffer => event({ type, ...more } as Json, type);
const begun = named("message_start", {
  message: { id: "m1", model: "up", usage: { input_tokens: 1, output_tokens: 1 } },
});
const block = (index: number, content_block: object): Buffer =>
  named("content_block_start", { index, content_block });
const delta = (index: number, of: object): Buffer =>
  named("content_block_delta", { index, delta: of });
const stop = (index: number): Buffer => named("content_block_stop", { index });
const ended = (stop_reason = "end_turn"): Buffer[] => [
  named("message_delta", { delta: { stop_reason }, usage: { output_tokens: 5 } }),
  named("message_stop"),
];
const TEXT = { type: "text", text: "" };
const textDelta = (text = "x") => ({ type: "text_delta", text });
const messagesWhole = (content: readonly Json[], more: object = {}): Buffer =>
  json({
    id: "m",
    type: "message",
    model: "up",
    content,
    stop_reason: "end_turn",
    usage: { input_tokens: 1, output_tokens: 1 },
    ...more,
  } as Json);
const use = (i: number) => ({ type: "tool_use", id: `t${i}`, name: "f", input: {} });

const messages: Upstream = {
  streams: {
    "many words": (n) => [
      begun,
      block(0, TEXT),
      ...times(n, () => delta(0, textDelta())),
      stop(0),
      ...ended(),
    ],
    "words, loosely written": (n) => [
      begun,
      block(0, TEXT),
      ...times(n, () =>
        Buffer.from(
          'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}}\n\n',
        ),
      ),
      stop(0),
      ...ended(),
    ],
    "many blocks": (n) => [
      begun,
      ...times(n, (i) => [block(i, TEXT), delta(i, textDelta()), stop(i)]).flat(),
      ...ended(),
    ],
    "blocks open together": (n) => [
      begun,
      ...times(n, (i) => block(i, TEXT)),
      ...times(n, (i) => delta(i, textDelta())),
      ...times(n, stop),
      ...ended(),
    ],
    "blocks open together, in any order": (n) => [
      begun,
      ...times(n, (i) => block(i, TEXT)),
      ...shuffled(times(n, (i) => delta(i, textDelta()))),
      ...shuffled(times(n, stop)),
      ...ended(),
    ],
    "blocks that are never closed": (n) => [
      begun,
      ...times(n, (i) => [block(i, TEXT), delta(i, textDelta())]).flat(),
      ...ended(),
    ],
    "thoughts and texts open together": (n) => [
      begun,
      ...times(n, (i) => block(i, i % 2 ? TEXT : { type: "thinking", thinking: "" })),
      ...times(n, (i) => delta(i, i % 2 ? textDelta() : { type: "thinking_delta", thinking: "x" })),
      ...times(n, stop),
      ...ended(),
    ],
    "calls open together": (n) => [
      begun,
      ...times(n, (i) => block(i, use(i))),
      ...times(n, (i) => delta(i, { type: "input_json_delta", partial_json: "{}" })),
      ...times(n, stop),
      ...ended("tool_use"),
    ],
    "calls by names that were fitted": (n) => [
      begun,
      ...times(n, (i) => [
        block(i, { ...use(i), name: `f_${i.toString(16).padStart(8, "0")}` }),
        stop(i),
      ]).flat(),
      ...ended("tool_use"),
    ],
    "what hosted tools do": (n) => [
      begun,
      ...times(n, (i) => [
        block(i, { type: "server_tool_use", id: `s${i}`, name: "web_search", input: {} }),
        delta(i, { type: "input_json_delta", partial_json: "{}" }),
        stop(i),
      ]).flat(),
      ...ended(),
    ],
    "a block that grows in ever other members": (n) => [
      begun,
      block(0, { type: "newer" }),
      ...times(n, (i) => delta(0, { type: "newer_delta", [`x${i}`]: "y", text: "z" })),
      stop(0),
      ...ended(),
    ],
    "many citations": (n) => [
      begun,
      block(0, TEXT),
      ...times(n, () => [
        delta(0, textDelta("word ")),
        delta(0, {
          type: "citations_delta",
          citation: { type: "web_search_result_location", url: "https://e" },
        }),
      ]).flat(),
      stop(0),
      ...ended(),
    ],
    "citations of an address": (n) => [
      begun,
      block(0, TEXT),
      ...times(n, () => [
        delta(0, textDelta("word ")),
        delta(0, { type: "citations_delta", citation: { type: "url_citation", url: "https://e" } }),
      ]).flat(),
      stop(0),
      ...ended(),
    ],
    "ends without counts": (n) => [
      begun,
      block(0, TEXT),
      delta(0, textDelta()),
      stop(0),
      ...times(n, (i) =>
        named("message_delta", { delta: { stop_reason: "end_turn", [`x${i}`]: 1 }, [`y${i}`]: 1 }),
      ),
      named("message_stop"),
    ],
    "counts again and again": (n) => [
      begun,
      block(0, TEXT),
      delta(0, textDelta()),
      stop(0),
      ...times(n, (i) =>
        named("message_delta", { delta: {}, usage: { output_tokens: i, [`x${i}`]: 1 } }),
      ),
      ...ended(),
    ],
    "text and thoughts in one block": (n) => [
      begun,
      block(0, TEXT),
      ...times(n, (i) => delta(0, i % 2 ? textDelta() : { type: "thinking_delta", thinking: "x" })),
      stop(0),
      ...ended(),
    ],
  },
  wholes: {
    "many blocks": (n) => messagesWhole(times(n, () => ({ type: "text", text: "x" }))),
    "many calls": (n) => messagesWhole(times(n, use)),
    "a call of many members": (n) =>
      messagesWhole([{ ...use(0), input: Object.fromEntries(times(n, (i) => [`k${i}`, i])) }]),
    "many thoughts": (n) =>
      messagesWhole(times(n, () => ({ type: "thinking", thinking: "x", signature: "s" }))),
    "one long text of many citations": (n) =>
      messagesWhole([
        {
          type: "text",
          text: "word ".repeat(20 * n),
          citations: times(n, () => ({ type: "url_citation", url: "https://e" })),
        },
      ]),
    "nested without end": (n) =>
      Buffer.from(
        `{"content":[{"type":"tool_use","id":"t","name":"f","input":{"a":${"[".repeat(n)}${"]".repeat(n)}}}],"stop_reason":"tool_use"}`,
      ),
    "many iterations": (n) =>
      messagesWhole([{ type: "text", text: "x" }], {
        usage: {
          input_tokens: 1,
          output_tokens: 1,
          iterations: times(n, (i) => ({
            type: "message",
            model: `m${i}`,
            input_tokens: 1,
            output_tokens: 1,
          })),
        },
      }),
  },
};

// responses

let sequence = 0;
const told = (type: string, more: object = {}): Buffer =>
  event({ type, sequence_number: sequence++, ...more } as Json, type);
const created = told("response.created", {
  response: { id: "r1", model: "up", status: "in_progress", output: [] },
});
const completed = (output: readonly Json[] = []): Buffer =>
  told("response.completed", {
    response: {
      id: "r1",
      object: "response",
      model: "up",
      status: "completed",
      output,
      usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
    },
  });
const outDelta = (output_index: number, delta = "x", content_index = 0): Buffer =>
  told("response.output_text.delta", {
    item_id: `i${output_index}`,
    output_index,
    content_index,
    delta,
  });
const done = (output_index: number, item: object): Buffer =>
  told("response.output_item.done", { output_index, item });
const messageItem = (i: number) => ({
  type: "message",
  id: `i${i}`,
  role: "assistant",
  content: [{ type: "output_text", text: "x" }],
});
const callItem = (i: number) => ({
  type: "function_call",
  id: `i${i}`,
  call_id: `c${i}`,
  name: "f",
  arguments: "{}",
});
const responsesWhole = (output: readonly Json[]): Buffer =>
  json({
    id: "r",
    object: "response",
    model: "up",
    status: "completed",
    output,
    usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
  });

const responses: Upstream = {
  streams: {
    "many words": (n) => [created, ...times(n, () => outDelta(0)), completed()],
    "words, loosely written": (n) => [
      created,
      ...times(n, () =>
        Buffer.from(
          'event: response.output_text.delta\ndata: {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "x"}\n\n',
        ),
      ),
      completed(),
    ],
    "many items": (n) => [
      created,
      ...times(n, (i) => [outDelta(i), done(i, messageItem(i))]).flat(),
      completed(times(n, messageItem)),
    ],
    "items open together": (n) => [
      created,
      ...times(n, (i) => outDelta(i)),
      ...shuffled(times(n, (i) => done(i, messageItem(i)))),
      completed(),
    ],
    "parts of one item open together": (n) => [
      created,
      ...times(n, (i) => outDelta(0, "x", i)),
      completed(),
    ],
    "items that are never done": (n) => [created, ...times(n, (i) => outDelta(i)), completed()],
    "calls open together": (n) => [
      created,
      ...times(n, (i) =>
        told("response.output_item.added", {
          output_index: i,
          item: { ...callItem(i), arguments: "" },
        }),
      ),
      ...times(n, (i) =>
        told("response.function_call_arguments.delta", { output_index: i, delta: "{}" }),
      ),
      ...shuffled(times(n, (i) => done(i, callItem(i)))),
      completed(),
    ],
    "an end without a beginning": (n) => [completed(times(n, callItem))],
    "parts that are done again and again": (n) => [
      created,
      ...times(n, () => outDelta(0)),
      ...times(n, () =>
        told("response.output_text.done", { output_index: 0, content_index: 0, text: "x" }),
      ),
      completed(),
    ],
    "digests in many parts": (n) => [
      created,
      ...times(n, (i) =>
        told("response.reasoning_summary_text.delta", {
          output_index: 0,
          summary_index: i,
          delta: "x",
        }),
      ),
      done(0, {
        type: "reasoning",
        id: "i0",
        summary: times(n, () => ({ type: "summary_text", text: "x" })),
      }),
      completed(),
    ],
    "many citations": (n) => [
      created,
      ...times(n, (i) => [
        outDelta(0, "word "),
        told("response.output_text.annotation.added", {
          output_index: 0,
          content_index: 0,
          annotation_index: i,
          annotation: { type: "url_citation", url: "https://e" },
        }),
      ]).flat(),
      completed(),
    ],
    "pictures in pieces": (n) => [
      created,
      ...times(n, () =>
        told("response.image_generation_call.partial_image", {
          output_index: 0,
          partial_image_b64: PIXEL,
        }),
      ),
      completed(),
    ],
    "events that nobody knows": (n) => [
      created,
      ...times(n, (i) => told(`response.new_${i}.delta`, { output_index: 0, delta: "x" })),
      completed(),
    ],
  },
  wholes: {
    "many items": (n) => responsesWhole(times(n, messageItem)),
    "many calls": (n) => responsesWhole(times(n, callItem)),
    "one item of many parts": (n) =>
      responsesWhole([
        { ...messageItem(0), content: times(n, () => ({ type: "output_text", text: "x" })) },
      ]),
    "one part of many citations": (n) =>
      responsesWhole([
        {
          ...messageItem(0),
          content: [
            {
              type: "output_text",
              text: "word ".repeat(20 * n),
              annotations: times(n, () => ({ type: "url_citation", url: "https://e" })),
            },
          ],
        },
      ]),
    "what hosted tools did": (n) =>
      responsesWhole(times(n, (i) => ({ type: "web_search_call", id: `w${i}` }))),
    "one item nested without end": (n) =>
      Buffer.from(
        `{"id":"r","status":"completed","output":[{"type":"new","a":${"[".repeat(n)}${"]".repeat(n)}}]}`,
      ),
  },
};

// gemini

const said = (parts: readonly Json[], more: object = {}): Json =>
  ({
    responseId: "g1",
    modelVersion: "up",
    candidates: [{ content: { role: "model", parts }, ...more }],
  }) as Json;
const geminiEnd = event({
  candidates: [{ finishReason: "STOP" }],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1 },
});
const grounded = (n: number, words = "x") => ({
  groundingMetadata: {
    groundingChunks: [{ web: { uri: "https://e", title: "t" } }],
    groundingSupports: times(n, (i) => ({
      segment: { startIndex: i, endIndex: i + 1, text: words },
      groundingChunkIndices: [0],
    })),
  },
});
const geminiWhole = (parts: readonly Json[], more: object = {}): Buffer =>
  json({
    ...(said(parts, { finishReason: "STOP", ...more }) as object),
    usageMetadata: { promptTokenCount: 1 },
  } as Json);

const gemini: Upstream = {
  streams: {
    "many words": (n) => [...times(n, () => event(said([{ text: "x" }]))), geminiEnd],
    "text and thoughts in turns": (n) => [
      ...times(n, (i) => event(said([{ text: "x", ...(i % 2 && { thought: true }) }]))),
      geminiEnd,
    ],
    "many calls": (n) => [
      ...times(n, (i) =>
        event(said([{ functionCall: { id: `c${i}`, name: "f", args: { a: i } } }])),
      ),
      geminiEnd,
    ],
    "calls without ids": (n) => [
      ...times(n, () => event(said([{ functionCall: { name: "f", args: {} } }]))),
      geminiEnd,
    ],
    "grounds of every chunk": (n) => [
      ...times(n, (i) =>
        event(
          said([{ text: "word " }], {
            groundingMetadata: {
              groundingChunks: [{ web: { uri: "https://e" } }],
              groundingSupports: [
                {
                  segment: { startIndex: 5 * i, endIndex: 5 * i + 4, text: "word" },
                  groundingChunkIndices: [0],
                },
              ],
            },
          }),
        ),
      ),
      geminiEnd,
    ],
    "counts of ever other members": (n) => [
      ...times(n, (i) =>
        event({
          ...(said([{ text: "x" }]) as object),
          usageMetadata: { promptTokenCount: i, [`x${i}`]: 1 },
        } as Json),
      ),
      geminiEnd,
    ],
    "signatures again and again": (n) => [
      ...times(n, () => event(said([{ text: "", thoughtSignature: "s" }]))),
      event(said([{ text: "x" }])),
      geminiEnd,
    ],
    "parts that nobody knows": (n) => [
      ...times(n, (i) => event(said([{ [`x${i}`]: 1 }]))),
      event(said([{ text: "x" }])),
      geminiEnd,
    ],
    "one list that grows": (n) => [
      Buffer.from("["),
      ...times(n, () => Buffer.from(`${JSON.stringify(said([{ text: "x" }]))},\n`)),
      Buffer.from(`${JSON.stringify(said([], { finishReason: "STOP" }))}]`),
    ],
  },
  wholes: {
    "many parts": (n) => geminiWhole(times(n, () => ({ text: "x" }))),
    "many calls": (n) => geminiWhole(times(n, () => ({ functionCall: { name: "f", args: {} } }))),
    "many grounds of one text": (n) => geminiWhole([{ text: "x".repeat(n + 1) }], grounded(n)),
    "many grounds elsewhere in one text": (n) =>
      geminiWhole([{ text: "y".repeat(10 * n) + "x" }], grounded(n, "z")),
    "many likelihoods": (n) =>
      geminiWhole([{ text: "x" }], {
        logprobsResult: { chosenCandidates: times(n, () => ({ token: "x", logProbability: 0 })) },
      }),
    "many candidates": (n) =>
      json({
        candidates: times(n, (i) => ({
          index: n - 1 - i,
          content: { parts: [{ text: "x" }] },
          finishReason: "STOP",
        })),
      }),
    "many chunks": (n) =>
      json([...times(n, () => said([{ text: "x" }])), said([], { finishReason: "STOP" })]),
    "arguments nested without end": (n) =>
      Buffer.from(
        `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":${"[".repeat(n)}${"]".repeat(n)}}}}]},"finishReason":"STOP"}]}`,
      ),
  },
};

// images

const images: Upstream = {
  streams: {
    "many drafts": (n) => [
      ...times(n, (i) =>
        told("image_generation.partial_image", { partial_image_index: i, b64_json: PIXEL }),
      ),
      told("image_generation.completed", { b64_json: PIXEL }),
    ],
    "many pictures": (n) =>
      times(n, () =>
        told("image_generation.completed", {
          b64_json: PIXEL,
          usage: { input_tokens: 1, output_tokens: 1 },
        }),
      ),
  },
  wholes: {
    "many pictures": (n) => json({ created: 1, data: times(n, () => ({ b64_json: PIXEL })) }),
    "many addresses": (n) =>
      json({ created: 1, data: times(n, (i) => ({ url: `https://e/${i}` })) }),
    "many that failed": (n) => json({ created: 1, data: times(n, () => ({ error: {} })) }),
    "a picture of many segments": (n) =>
      json({
        data: [
          {
            b64_json: Buffer.concat([
              Buffer.from([0xff, 0xd8]),
              ...times(n, () => Buffer.from([0xff, 0xe0, 0, 2])),
            ]).toString("base64"),
          },
        ],
      }),
  },
};

export const upstreamAnswers: { readonly [protocol: string]: Upstream } = {
  "chat-completions": chat,
  messages,
  responses,
  gemini,
  images,
};
