// A reader that keeps checked values returns the same values and errors as a new reader.
import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { ScopeConfig, ScopeSource } from "../../../src/config/gateway-config.ts";
import type { HostExchange } from "../../../src/pipeline/exchange/exchange.ts";
import { ScopeHeaderReader } from "../../../src/pipeline/scopes/scope-headers.ts";
import { readScopeValues } from "../../../src/pipeline/scopes/scope-values.ts";

const NAMES = ["x-one", "x-two", "x-three", "x-four"];
const header = (name: string): ScopeSource => ({ kind: "header", text: `header:${name}`, name });
const body: ScopeSource = { kind: "body", text: "body:/user", path: ["user"] };
const key: ScopeSource = { kind: "key", text: "key" };
const configs = [
  { name: "session", from: [header("x-one"), header("x-two"), body] },
  { name: "agent", from: [header("x-three"), key] },
  { name: "all", from: [] },
  { name: "user", from: [body, header("x-four")] },
] as unknown as readonly ScopeConfig[];

it("reads values that were read before, and values that are invalid", () => {
  const text = fc.constantFrom("a", "b", "", "c,d", "x".repeat(257), "\u00e9", "e");
  const request = fc.record({
    headers: fc.dictionary(fc.constantFrom(...NAMES), text, { noNullPrototype: true }),
    isRepeated: fc.boolean(),
    user: fc.option(fc.constantFrom("u", "v"), { nil: undefined }),
  });
  fc.assert(
    fc.property(fc.array(request, { minLength: 1, maxLength: 12 }), (requests) => {
      const reader = new ScopeHeaderReader(configs);
      for (const { headers, isRepeated, user } of requests) {
        const headersDistinct = Object.fromEntries(
          Object.entries(headers).map(([name, of]) => [name, isRepeated ? of.split(",") : [of]]),
        );
        const x = {
          headers,
          body: { user },
          identity: { id: "alice" },
          state: { connection: { req: { headersDistinct } } },
        } as unknown as HostExchange;
        const read = (by: ScopeHeaderReader) => {
          try {
            const values = by.read(x);
            return [values.texts, [...readScopeValues(x, configs, values)].toSorted()];
          } catch (error) {
            return (error as Error).message;
          }
        };
        expect(read(reader)).toEqual(read(new ScopeHeaderReader(configs)));
      }
    }),
  );
});

it("returns one object for equal values, and none for values that may be repeated", () => {
  const reader = new ScopeHeaderReader(configs);
  const read = (headers: Record<string, string>) =>
    reader.read({ headers, state: { connection: { req: {} } } } as unknown as HostExchange);
  expect(read({ "x-one": "a", "x-three": "b" })).toBe(read({ "x-one": "a", "x-three": "b" }));
  expect(read({ "x-one": "a", "x-three": "b" })).not.toBe(read({ "x-one": "a" }));
  expect(read({ "x-one": "a,b" })).not.toBe(read({ "x-one": "a,b" }));
});
