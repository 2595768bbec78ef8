import { expect, it } from "vitest";
import { serializeExchange } from "../../../src/isolation/serialization.ts";
import { exchange } from "../../../src/testing/fakes.ts";

const asked = (more: PropertyDescriptorMap) =>
  serializeExchange(Object.create(exchange({}), more) as never).query;

it("a query is sent as text, and is not created if there is none", () => {
  const query = { value: new URLSearchParams("a=1&b=%20") };
  expect(asked({ query })).toBe("a=1&b=+");
  expect(asked({ query, hasQuery: { value: true } })).toBe("a=1&b=+");
  const get = () => expect.unreachable("a query was made");
  expect(asked({ query: { get }, hasQuery: { value: false } })).toBe("");
});
