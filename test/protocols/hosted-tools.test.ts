// Hosted tools are counted in each protocol, in both modes, streaming and non-streaming.
import { describe, expect, it } from "vitest";
import type { Json, JsonObject, Protocol, Unit, Usage } from "tollgate/plugin";
import {
  createResponseContext,
  createCallContext,
  decode,
  decodeWhole,
  runRelay,
} from "tollgate/testing";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { gemini } from "tollgate/protocols/gemini";
import { messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import { collectResponse } from "../../src/model/response-collector.ts";
import { toolUnits } from "../../src/model/tool-units.ts";
import { UNITS } from "../../src/model/usage.ts";

type Runs = { readonly [unit in Unit]?: number };
interface Answer {
  readonly what: string;
  readonly runs: Runs;
  readonly whole: JsonObject;
  /** Several ways in which upstreams stream it. */
  readonly streams: readonly string[];
}

const event = (data: JsonObject, name = "") =>
  `${name === "" ? "" : `event: ${name}\n`}data: ${JSON.stringify(data)}\n\n`;

function response(
  what: string,
  items: readonly JsonObject[],
  runs: Runs,
  more: JsonObject = {},
): Answer {
  const message = {
    type: "message",
    id: "msg_1",
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text: "Hi", annotations: [] }],
  };
  const output = [...items, message].map((item, i) => ({ id: `i_${i}`, ...item })) as JsonObject[];
  const usage = {
    input_tokens: 5,
    output_tokens: 7,
    total_tokens: 12,
    ...(more["usage"] as object),
  };
  const whole = {
    id: "r",
    object: "response",
    model: "m",
    status: "completed",
    output,
    ...more,
    usage,
  };
  const stream = (last: readonly JsonObject[]) =>
    [
      {
        type: "response.created",
        response: { id: "r", object: "response", model: "m", output: [] },
      },
      ...output.flatMap((item, output_index) => [
        { type: "response.output_item.added", output_index, item: { ...item, content: [] } },
        { type: "response.output_item.done", output_index, item },
      ]),
      { type: "response.completed", response: { ...whole, output: last } },
    ]
      .map((data, i) => event({ ...data, sequence_number: i } as JsonObject, data.type))
      .join("");
  return { what, runs, whole, streams: [stream(output), stream([])] };
}

function message(
  what: string,
  blocks: readonly JsonObject[],
  runs: Runs,
  told: JsonObject = {},
): Answer {
  const content = [...blocks, { type: "text", text: "Hi" }] as JsonObject[];
  const usage = { input_tokens: 5, output_tokens: 7, ...told };
  const frame = { id: "m", type: "message", role: "assistant", model: "m", stop_sequence: null };
  const whole = { ...frame, content, stop_reason: "end_turn", usage };
  const head = {
    ...frame,
    content: [],
    stop_reason: null,
    usage: { input_tokens: 5, output_tokens: 1 },
  };
  const stream = [
    { type: "message_start", message: head },
    ...content.flatMap((content_block, index) => [
      { type: "content_block_start", index, content_block },
      { type: "content_block_stop", index },
    ]),
    { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage },
    { type: "message_stop" },
  ];
  return {
    what,
    runs,
    whole,
    streams: [stream.map((e) => event(e as JsonObject, e.type)).join("")],
  };
}

function candidate(
  what: string,
  more: JsonObject,
  runs: Runs,
  parts: readonly JsonObject[] = [],
): Answer {
  const usageMetadata = { promptTokenCount: 5, candidatesTokenCount: 7, totalTokenCount: 12 };
  const content = { role: "model", parts: [...parts, { text: "Hi" }] };
  const one = { content, finishReason: "STOP", ...more };
  const whole = { responseId: "g", candidates: [one], usageMetadata } as JsonObject;
  const first = { responseId: "g", candidates: [{ content }], usageMetadata };
  const again = {
    responseId: "g",
    candidates: [{ content: {}, ...more, finishReason: "STOP" }],
    usageMetadata,
  };
  const early = { responseId: "g", candidates: [{ content, ...more }], usageMetadata };
  return {
    what,
    runs,
    whole,
    // In its last chunk, and in each of them.
    streams: [
      [first, again],
      [early, again],
    ].map((chunks) => chunks.map((c) => event(c as JsonObject)).join("")),
  };
}

function chat(what: string, usage: JsonObject, runs: Runs): Answer {
  const told = { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12, ...usage };
  const frame = { id: "c", model: "m", created: 1 };
  const whole = {
    ...frame,
    object: "chat.completion",
    choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
    usage: told,
  };
  const chunk = (choices: readonly Json[], more: object = {}) =>
    event({ ...frame, object: "chat.completion.chunk", choices, ...more } as JsonObject);
  const stream =
    chunk([{ index: 0, delta: { role: "assistant", content: "Hi" } }]) +
    chunk([{ index: 0, delta: {}, finish_reason: "stop" }]) +
    chunk([], { usage: told }) +
    "data: [DONE]\n\n";
  return { what, runs, whole, streams: [stream] };
}

const search = (action: JsonObject | undefined) =>
  ({ type: "web_search_call", status: "completed", ...(action && { action }) }) as JsonObject;
const code = (container_id?: string) =>
  ({
    type: "code_interpreter_call",
    status: "completed",
    code: "1",
    ...(container_id && { container_id }),
  }) as JsonObject;
const server = (name: string, caller?: string): JsonObject => ({
  type: "server_tool_use",
  id: `srvtoolu_${name}`,
  name,
  input: {},
  ...(caller && { caller: { type: caller, tool_id: "t" } }),
});

const ANSWERS: readonly [Protocol, readonly Answer[]][] = [
  [
    responses() as Protocol,
    [
      response("searches", [search({ type: "search", query: "a" }), search(undefined)], {
        searches: 2,
      }),
      response("several queries", [search({ type: "search", queries: ["a", "b", "c"] })], {
        searches: 3,
      }),
      response(
        "opened pages",
        [search({ type: "open_page", url: "u" }), search({ type: "find_in_page" })],
        {},
      ),
      response(
        "reported searches",
        [],
        { searches: 4 },
        { tool_usage: { web_search: { num_requests: 4 } } },
      ),
      response(
        "items beyond the report",
        [search(undefined), search(undefined)],
        { searches: 2 },
        { tool_usage: { web_search: { num_requests: 1 } } },
      ),
      response(
        "file searches",
        [{ type: "file_search_call", status: "completed", queries: ["a"] }],
        { file_searches: 1 },
      ),
      response(
        "pictures",
        [{ type: "image_generation_call", status: "completed", result: "iVBORw0KGgo=" }],
        { images: 1 },
      ),
      response("code in one container", [code("c1"), code("c1")], { code_sessions: 1 }),
      response("code in several containers", [code("c1"), code("c2"), code()], {
        code_sessions: 3,
      }),
      response(
        "code with more memory",
        [code("c1")],
        { code_sessions: 16 },
        { tools: [{ type: "code_interpreter", container: { type: "auto", memory_limit: "16g" } }] },
      ),
      response(
        "a shell of the provider's",
        [{ type: "shell_call", environment: { type: "container_reference", container_id: "c1" } }],
        { code_sessions: 1 },
      ),
      response(
        "a shell of the client's",
        [{ type: "shell_call", environment: { type: "local" } }],
        {},
      ),
      response("a tool that is newer", [{ type: "telescope_call", status: "completed" }], {
        tool_runs: 1,
      }),
      response(
        "tools that tokens pay for",
        [{ type: "mcp_call", name: "a", arguments: "{}" }, { type: "tool_search_call" }],
        {},
      ),
      response(
        "another vendor's counts",
        [],
        { searches: 5, code_sessions: 1 },
        {
          usage: {
            server_side_tool_usage_details: {
              web_search_calls: 2,
              x_search_calls: 3,
              code_interpreter_calls: 1,
            },
          },
        },
      ),
    ],
  ],
  [
    messages() as Protocol,
    [
      message(
        "reported",
        [server("web_search")],
        { searches: 3, fetches: 2 },
        { server_tool_use: { web_search_requests: 3, web_fetch_requests: 2 } },
      ),
      message("not reported", [server("web_search"), server("web_search"), server("web_fetch")], {
        searches: 2,
        fetches: 1,
      }),
      message("code", [server("code_execution"), server("bash_code_execution")], {
        code_sessions: 1,
      }),
      message(
        "code that filters",
        [server("code_execution"), server("web_search", "code_execution_20260120")],
        { searches: 1 },
      ),
      message("a tool that is newer", [server("telescope")], { tool_runs: 1 }),
      message("tools that tokens pay for", [server("tool_search_tool_bm25")], {}),
    ],
  ],
  [
    gemini() as Protocol,
    [
      candidate(
        "queries",
        {
          groundingMetadata: {
            webSearchQueries: ["a", "b"],
            groundingChunks: [{ web: { uri: "u" } }],
          },
        },
        { searches: 2 },
      ),
      candidate(
        "queries for pictures",
        { groundingMetadata: { webSearchQueries: ["a"], imageSearchQueries: ["a"] } },
        { searches: 2 },
      ),
      candidate(
        "results without a query",
        { groundingMetadata: { groundingChunks: [{ web: { uri: "u" } }] } },
        { searches: 1 },
      ),
      candidate(
        "a map",
        { groundingMetadata: { groundingChunks: [{ maps: { uri: "u" } }] } },
        { map_searches: 1 },
      ),
      candidate(
        "files",
        { groundingMetadata: { groundingChunks: [{ retrievedContext: { uri: "u" } }] } },
        { file_searches: 1 },
      ),
      candidate(
        "pages",
        { urlContextMetadata: { urlMetadata: [{ retrievedUrl: "a" }, { retrievedUrl: "b" }] } },
        { fetches: 2 },
      ),
      candidate("code", {}, { code_sessions: 1 }, [
        { executableCode: { language: "PYTHON", code: "1" } },
      ]),
      candidate("empty metadata", { groundingMetadata: {} }, {}),
    ],
  ],
  [
    chatCompletions() as Protocol,
    [
      chat("queries", { num_search_queries: 2 }, { searches: 2 }),
      chat("server tools", { server_tool_use: { web_search_requests: 3 } }, { searches: 3 }),
      chat(
        "another vendor's counts",
        { server_side_tool_usage_details: { x_search_calls: 1, file_search_calls: 2 } },
        { searches: 1, file_searches: 2 },
      ),
      chat("none", {}, {}),
    ],
  ],
];

const TOOLS: readonly Unit[] = [
  "searches",
  "fetches",
  "file_searches",
  "map_searches",
  "code_sessions",
  "images",
  "tool_runs",
];
const runsOf = (usage: Usage): Runs =>
  Object.fromEntries(
    TOOLS.flatMap((unit) => ((usage[unit] ?? 0) > 0 ? [[unit, usage[unit]]] : [])),
  );

for (const [protocol, answers] of ANSWERS)
  describe(protocol.id, () => {
    it.each(answers)("counts $what", ({ runs, whole, streams }) => {
      const client = protocol.client!;
      const json = Buffer.from(JSON.stringify(whole));
      const body = protocol.id === "responses" ? { input: "Hi" } : {};
      expect(
        runsOf(collectResponse(decodeWhole(client, json, createCallContext())).usage),
        "whole",
      ).toEqual(runs);
      expect(
        runsOf(runRelay(client, [json], createResponseContext({ body })).usage),
        "whole, relayed",
      ).toEqual(runs);
      for (const stream of streams) {
        const bytes = Buffer.from(stream);
        const headers = { "content-type": "text/event-stream" };
        const of = createCallContext({ stream: true });
        expect(
          runsOf(collectResponse(decode(client, [bytes], of, headers)).usage),
          "streamed",
        ).toEqual(runs);
        const to = createResponseContext({
          stream: true,
          body: { ...body, stream: true, stream_options: { include_usage: true } },
        });
        expect(
          runsOf(runRelay(client, [bytes], to, undefined, headers).usage),
          "streamed, relayed",
        ).toEqual(runs);
      }
    });
  });

it("each hosted tool is billed by a unit, or known to be billed by its tokens", () => {
  expect(toolUnits(["hosted.web_search", "hosted.google_search", "tools"])).toEqual(["searches"]);
  expect(toolUnits(["hosted.mcp", "hosted.web_search_dynamic", "vision"])).toEqual([]);
  expect(toolUnits(["hosted.telescope", "hosted.constructor"])).toEqual(["tool_runs"]);
  for (const unit of TOOLS) expect(UNITS).toContain(unit);
});
