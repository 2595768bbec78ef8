// Trace context by W3C: valid headers are forwarded, and invalid ones are ignored.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  childSpanId,
  newSpanId,
  newTraceId,
  parseTraceparent,
  parseTracestate,
  formatTraceparent,
} from "../../../src/lib/trace-context.ts";

const hex = (digits: number) =>
  fc
    .array(fc.constantFrom(..."0123456789abcdef"), { minLength: digits, maxLength: digits })
    .map((all) => all.join(""));
const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";

describe("traceparent", () => {
  it("is decoded as it was encoded", () => {
    fc.assert(
      fc.property(hex(32), hex(16), fc.boolean(), (traceId, spanId, sampled) => {
        fc.pre(/[^0]/.test(traceId) && /[^0]/.test(spanId));
        const text = formatTraceparent({ traceId, spanId, sampled });
        expect(text).toHaveLength(55);
        expect(parseTraceparent(text)).toEqual({ traceId, spanId, sampled });
      }),
    );
  });

  it.each([
    [`00-${TRACE}-${SPAN}-01`, true],
    [`00-${TRACE}-${SPAN}-00`, false],
    // Flags that this level does not know are ignored.
    [`00-${TRACE}-${SPAN}-03`, true],
    [`cc-${TRACE}-${SPAN}-01`, true],
    [`cc-${TRACE}-${SPAN}-01-what-may-come`, true],
  ])("%s is accepted", (text, sampled) => {
    expect(parseTraceparent(text)).toEqual({ traceId: TRACE, spanId: SPAN, sampled });
  });

  it.each([
    "",
    "00",
    `00-${TRACE}-${SPAN}`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${TRACE}-${SPAN}-01.more`,
    `cc-${TRACE}-${SPAN}-01.more`,
    `ff-${TRACE}-${SPAN}-01`,
    `00-${"0".repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${"0".repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE}0-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-0x`,
    // Twice: Node joins two header lines.
    `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
  ])("%j is invalid", (text) => expect(parseTraceparent(text)).toBeUndefined());

  it("never causes an error", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.stringMatching(/^[\da-f]{2}-[\da-f-]{0,80}$/)),
        (text) => {
          const read = parseTraceparent(text);
          expect(read === undefined || /^[\da-f]{32}$/.test(read.traceId)).toBe(true);
        },
      ),
    );
  });
});

describe("tracestate", () => {
  it("keeps its members in order, without white space", () => {
    expect(parseTracestate("rojo=00f067aa0ba902b7 ,  congo=t61rcWkgMzE,,x@y=1")).toBe(
      "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE,x@y=1",
    );
  });

  it.each(["", " ", "a", "=b", "A=b", "a=b=c", "a=\u{e9}", "a=b\u0001c", `${"a".repeat(257)}=b`])(
    "%j is invalid",
    (text) => expect(parseTracestate(text)).toBeUndefined(),
  );

  it("has up to 32 members, and is forwarded with as many as every reader accepts", () => {
    const members = (n: number, of: string) => Array.from({ length: n }, (_, i) => `k${i}=${of}`);
    expect(parseTracestate(members(32, "v").join(","))).toBe(members(32, "v").join(","));
    expect(parseTracestate(members(33, "v").join(","))).toBeUndefined();
    const long = parseTracestate(members(32, "v".repeat(60)).join(","))!;
    expect(long.length).toBeLessThanOrEqual(512);
    expect(long.length).toBeGreaterThan(440);
    expect(long.split(",")).toEqual(members(32, "v".repeat(60)).slice(0, long.split(",").length));
  });
});

describe("IDs", () => {
  it("are well-formed and differ", () => {
    const made = new Set(Array.from({ length: 20_000 }, () => newTraceId()));
    expect(made.size).toBe(20_000);
    for (const id of made) expect(id).toMatch(/^(?=.*[^0])[\da-f]{32}$/);
    const spans = new Set(Array.from({ length: 20_000 }, () => newSpanId()));
    expect(spans.size).toBe(20_000);
    for (const id of spans) expect(id).toMatch(/^(?=.*[^0])[\da-f]{16}$/);
  });

  it("of attempts are unique, and the same for each call", () => {
    fc.assert(
      fc.property(fc.constant(null).map(newSpanId), (spanId) => {
        const all = Array.from({ length: 50 }, (_, n) => childSpanId(spanId, n + 1));
        expect(new Set([spanId, ...all]).size).toBe(51);
        for (const id of all) expect(id).toMatch(/^(?=.*[^0])[\da-f]{16}$/);
        expect(childSpanId(spanId, 3)).toBe(all[2]);
      }),
    );
  });
});
