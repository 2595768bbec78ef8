// Real pieces of calls, and their results.
import { expect, test } from "vitest";
import { chatCompletions } from "../../../src/protocols/chat-completions/index.ts";
import { getFault, collectResponse } from "../../../src/plugin/index.ts";
import { createCallContext, decode } from "../../../src/testing/index.ts";

const minted = expect.stringMatching(/^call_[0-9a-z]{24}$/);

function heard(deltas: readonly object[], finish = "tool_calls") {
  const chunk = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ id: "c1", model: "m", choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  const stream = [...deltas.map((d) => chunk(d)), chunk({}, finish), "data: [DONE]\n\n"].join("");
  const answer = collectResponse(
    decode(chatCompletions().client!, [Buffer.from(stream)], createCallContext({ stream: true })),
  );
  return {
    finish: answer.finish.reason,
    calls: answer.blocks.flatMap((b) => (b.type === "call" ? [[b.id, b.name, b.args]] : [])),
    blocks: answer.blocks,
  };
}
const pieces = (...all: object[]) => all.map((piece) => ({ tool_calls: [piece] }));
const fn = (name?: string, args?: unknown) => ({
  function: { ...(name !== undefined && { name }), ...(args !== undefined && { arguments: args }) },
});

test.each<[name: string, deltas: object[], calls: unknown[][]]>([
  [
    "no index: told apart by id",
    pieces(
      { id: "a", ...fn("f", "{") },
      { id: "a", ...fn(undefined, "}") },
      { id: "b", ...fn("g", "{}") },
    ),
    [
      ["a", "f", "{}"],
      ["b", "g", "{}"],
    ],
  ],
  [
    "no index, no id: a new name is a new call",
    pieces(fn("f", "{"), fn(undefined, "}"), fn("g", "{}")),
    [
      [minted, "f", "{}"],
      [minted, "g", "{}"],
    ],
  ],
  [
    "no index, no id: the same name after a complete call",
    pieces(fn("f", '{"a":1}'), fn("f", '{"a":2}')),
    [
      [minted, "f", '{"a":1}'],
      [minted, "f", '{"a":2}'],
    ],
  ],
  [
    "all at index 0, with their own ids",
    pieces({ index: 0, id: "a", ...fn("f", "{}") }, { index: 0, id: "b", ...fn("f", "{}") }),
    [
      ["a", "f", "{}"],
      ["b", "f", "{}"],
    ],
  ],
  [
    "indexes from 1, with gaps",
    pieces({ index: 1, id: "a", ...fn("f", "{}") }, { index: 7, id: "b", ...fn("g", "{}") }),
    [
      ["a", "f", "{}"],
      ["b", "g", "{}"],
    ],
  ],
  [
    "the id again with every piece, or empty",
    pieces(
      { index: 0, id: "a", ...fn("f", "") },
      { index: 0, id: "a", ...fn(undefined, "{") },
      { index: 0, id: "", ...fn(undefined, "}") },
    ),
    [["a", "f", "{}"]],
  ],
  [
    "the name again with every piece",
    pieces({ index: 0, id: "a", ...fn("f", "{") }, { index: 0, ...fn("f", "}") }),
    [["a", "f", "{}"]],
  ],
  [
    "the name late",
    pieces({ index: 0, id: "a", ...fn(undefined, '{"x"') }, { index: 0, ...fn("f", ":1}") }),
    [["a", "f", '{"x":1}']],
  ],
  [
    "arguments as an object, as null, not at all",
    pieces(
      { index: 0, id: "a", ...fn("f", { x: 1 }) },
      { index: 1, id: "b", ...fn("g", null) },
      { index: 2, id: "c", ...fn("h") },
    ),
    [
      ["a", "f", '{"x":1}'],
      ["b", "g", ""],
      ["c", "h", ""],
    ],
  ],
  [
    "pieces of two calls in turn",
    pieces(
      { index: 0, id: "a", ...fn("f", "{") },
      { index: 1, id: "b", ...fn("g", "{") },
      { index: 0, ...fn(undefined, "}") },
      { index: 1, ...fn(undefined, "}") },
    ),
    [
      ["a", "f", "{}"],
      ["b", "g", "{}"],
    ],
  ],
  [
    "two in one chunk",
    [
      {
        tool_calls: [
          { index: 0, id: "a", ...fn("f", "{}") },
          { index: 1, id: "b", ...fn("g", "{}") },
        ],
      },
    ],
    [
      ["a", "f", "{}"],
      ["b", "g", "{}"],
    ],
  ],
  [
    "type missing or empty",
    pieces({ index: 0, id: "a", type: "", ...fn("f", "{}") }),
    [["a", "f", "{}"]],
  ],
  [
    "freeform",
    pieces(
      { index: 0, id: "a", type: "custom", custom: { name: "sql", input: "sel" } },
      { index: 0, custom: { input: "ect 1" } },
    ),
    [["a", "sql", "select 1"]],
  ],
])("%s", (_, deltas, calls) => {
  expect(heard(deltas)).toMatchObject({ calls, finish: "tool_calls" });
  // Many say stop.
  expect(heard(deltas, "stop").finish).toBe("tool_calls");
  expect(heard(deltas, "length").finish).toBe("length");
});

test("a generated ID is deterministic, and differs between responses", () => {
  const [one, two] = [
    heard(pieces({ index: 0, ...fn("f", "{}") })),
    heard(pieces({ index: 0, ...fn("f", "{}") })),
  ];
  expect(one.calls).toEqual(two.calls);
});

test("a call without a name is an error, and so is one that continues after its end", () => {
  const code = (deltas: object[]) => {
    try {
      heard(deltas);
    } catch (error) {
      return getFault(error)?.code;
    }
    return undefined;
  };
  expect(code(pieces({ index: 0, id: "a", ...fn(undefined, "{}") }))).toBe("malformed_answer");
  expect(
    code(
      pieces(
        { index: 0, id: "a", ...fn("f", "{}") },
        { index: 1, id: "b", ...fn("g", "") },
        { index: 0, ...fn(undefined, "more") },
      ),
    ),
  ).toBe("malformed_answer");
});

test("signed reasoning without text comes before its result", () => {
  const sealed = [
    {
      type: "reasoning.encrypted",
      data: "xyz",
      id: "rs_1",
      format: "openai-responses-v1",
      index: 0,
    },
  ];
  const proof = {
    origin: "chat-completions",
    kind: "reasoning_details",
    data: JSON.stringify(sealed),
  };
  expect(heard([{ reasoning_details: sealed }, { content: "Hi" }], "stop").blocks).toMatchObject([
    { type: "reasoning", text: "", proof },
    { type: "text", text: "Hi" },
  ]);
  expect(
    heard([{ reasoning_details: sealed }, ...pieces({ index: 0, id: "a", ...fn("f", "{}") })])
      .blocks,
  ).toMatchObject([{ type: "reasoning", proof }, { type: "call" }]);
  expect(heard([{ content: "Hi" }, { reasoning_details: sealed }], "stop").blocks).toMatchObject([
    { type: "text", text: "Hi" },
    { type: "reasoning", proof },
  ]);
});
