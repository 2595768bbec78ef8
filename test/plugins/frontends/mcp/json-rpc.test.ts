// Bounds on the messages of MCP.
import * as fc from "fast-check";
import { expect, it } from "vitest";
import {
  checkServerMessage,
  isTooDeep,
  parseClientMessage,
} from "../../../../plugins/frontends/mcp/json-rpc.ts";

const problem = (work: () => unknown): unknown => {
  try {
    work();
    return undefined;
  } catch (error) {
    return error;
  }
};

/** A message that counts `values` values: the text, 3 containers, and the commas. */
const message = (values: number, member: string, item = "0") => {
  const more = member === "params" ? '"method":"ping"' : '"extra":0';
  const items = Array.from({ length: values - 6 }, () => item).join(",");
  return `{"jsonrpc":"2.0","id":1,${more},"${member}":{"a":[${items}]}}`;
};

it("a message of a client has up to 100,000 values", () => {
  const parse = (text: string) => problem(() => parseClientMessage(Buffer.from(text), 100_000));
  expect(parse(message(100_000, "params"))).toBeUndefined();
  for (const item of ["0", '"a,b"', "null"])
    expect(parse(message(100_001, "params", item))).toMatchObject({
      code: -32_600,
      status: 400,
      message:
        "The message has more than 100000 JSON values, which is the maximum of the gateway. Send long data as text, or in several requests.",
    });
  // Empty lists and objects count, and commas in strings do not.
  expect(parse(message(50_003, "params", "{}"))).toBeUndefined();
  expect(parse(message(50_004, "params", "[]"))).toMatchObject({ code: -32_600 });
  expect(parse(message(10, "params", `"${',[{\\\\\\"'.repeat(100_000)}"`))).toBeUndefined();
  // The text is rejected before it is parsed.
  expect(parse("[0,".repeat(10) + "0,".repeat(100_000))).toMatchObject({ code: -32_600 });
});

it("a message of a server has up to 1,000,000 values", () => {
  const check = (text: string) => problem(() => checkServerMessage(text));
  expect(check(message(1_000_000, "result"))).toBeUndefined();
  expect(check(message(1_000_001, "result"))).toMatchObject({
    progress: "unknown",
    message: "The response of the server has more than 1000000 JSON values.",
  });
});

/** Depth of a value, and the values that the gateway counts in it besides the text itself. */
function sizeOf(value: unknown): { depth: number; values: number } {
  if (typeof value !== "object" || value === null) return { depth: 0, values: 0 };
  const inner = Object.values(value).map(sizeOf);
  const commas = Math.max(0, inner.length - 1);
  return {
    depth: 1 + Math.max(0, ...inner.map(({ depth }) => depth)),
    values: inner.reduce((sum, { values }) => sum + values, 1 + commas),
  };
}

it("bounds are exact for every message, whatever brackets its strings contain", () => {
  const text = fc.string({ unit: fc.constantFrom("{", "[", "}", "]", ",", '"', "\\", "a") });
  const value = fc.jsonValue({
    maxDepth: 8,
    stringUnit: fc.constantFrom("[", "{", "}", '"', "\\"),
  });
  fc.assert(
    fc.property(
      fc.dictionary(text, value),
      fc.nat(12),
      fc.nat(40),
      (params, maxDepth, maxValues) => {
        const sent = { jsonrpc: "2.0", method: "ping", params };
        const body = JSON.stringify(sent);
        const { depth, values } = sizeOf(sent);
        expect(isTooDeep(body, maxDepth)).toBe(depth > maxDepth);
        const rejected = problem(() => parseClientMessage(Buffer.from(body), maxValues));
        expect(rejected !== undefined).toBe(1 + values > maxValues);
      },
    ),
  );
});
