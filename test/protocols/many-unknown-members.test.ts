// Attacks with unknown members: many of them, and names with a meaning for objects.
import { expect, it } from "vitest";
import type { JsonObject } from "../../src/model/values.ts";
import {
  valueFields,
  restoreUnknownFields,
  findUnknownFields,
  type KnownFields,
} from "../../src/protocols/unknown-fields.ts";
import { ownCpuMs } from "../kit/process/cpu-time.ts";

const KNOWN: KnownFields = { thinking: { ...valueFields("type"), deep: valueFields("type") } };

const again = (fields: JsonObject, body: JsonObject) => {
  const lost: string[] = [];
  const out = restoreUnknownFields(body, findUnknownFields(fields, KNOWN), KNOWN, (field) =>
    lost.push(field),
  );
  return { out, lost };
};

it("a hundred thousand members of one object take linear time", () => {
  const many = Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`k${i}`, 1]));
  const body = { thinking: { type: "on", deep: { type: "x" } } };
  const started = ownCpuMs();
  const { out, lost } = again({ thinking: { ...many, deep: many } }, body);
  expect(ownCpuMs() - started).toBeLessThan(10_000);
  expect(lost).toEqual([]);
  expect(out).toEqual({ thinking: { type: "on", ...many, deep: { type: "x", ...many } } });
  expect(body).toEqual({ thinking: { type: "on", deep: { type: "x" } } });
});

it("a member may have any name", () => {
  const fields = JSON.parse(
    '{"thinking":{"__proto__":{"a":1},"constructor.prototype.b":2,"__proto__.c":3,"deep":{"__proto__":4}}}',
  ) as JsonObject;
  const { out, lost } = again(fields, { thinking: { deep: {} } });
  expect(JSON.stringify(out)).toBe(
    '{"thinking":{"deep":{"__proto__":4},"__proto__":{"a":1,"c":3}}}',
  );
  expect(lost).toEqual(["thinking.constructor.prototype.b"]);
  expect(Object.getPrototypeOf((out as { thinking: object }).thinking)).toBe(Object.prototype);
  expect(({} as { a?: unknown }).a).toBeUndefined();
});
