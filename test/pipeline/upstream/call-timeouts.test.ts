// Timeouts of a call: by its operation and model, and by its client's headers.
import { expect, it } from "vitest";
import type { HostCall } from "../../../src/pipeline/exchange/call.ts";
import { timeoutClassOf, timeoutsFor } from "../../../src/pipeline/targets/timeouts.ts";

const info = (kind: string, reasoning?: boolean) =>
  ({
    model: "m",
    operation: kind,
    can: reasoning === undefined ? undefined : { reasoning },
  }) as never;

it("a class is the operation, and for chats also whether the call streams", () => {
  expect(timeoutClassOf({ info: info("chat", false), stream: true })).toBe("quick");
  expect(timeoutClassOf({ info: info("chat", false), stream: false })).toBe("reasoning");
  expect(timeoutClassOf({ info: info("chat", true), stream: true })).toBe("reasoning");
  // An unknown model may reason.
  expect(timeoutClassOf({ info: info("chat"), stream: true })).toBe("reasoning");
  expect(timeoutClassOf({ info: info("image"), stream: false })).toBe("image");
  expect(timeoutClassOf({ info: info("chess"), stream: true })).toBe("chess");
});

const times = { firstByteMs: 600_000, idleMs: 300_000, totalMs: 3_600_000 };
const quick = { ...times, firstByteMs: 60_000 };

function call(headers: object, stream: boolean, reasoning = false): HostCall {
  const provider = { timeouts: { connectMs: 1, ...times, classes: new Map([["quick", quick]]) } };
  const inner = { req: { headers }, startedAt: performance.now() };
  return {
    info: info("chat", reasoning),
    stream,
    candidate: { mounted: { provider } },
    exchange: { stream, state: { connection: inner } },
  } as unknown as HostCall;
}

it("a call has the timeouts of its class, and by default those of every call", () => {
  expect(timeoutsFor(call({}, true))).toBe(quick);
  expect(timeoutsFor(call({}, true, true))).toMatchObject(times);
});

it("a client's hint lowers the total, and nothing raises it", () => {
  const total = (headers: object, stream = false) => timeoutsFor(call(headers, stream)).totalMs;
  expect(total({ "x-stainless-timeout": "30" })).toBeLessThanOrEqual(30_000);
  expect(total({ "x-stainless-timeout": "30" })).toBeGreaterThan(20_000);
  expect(total({ "x-stainless-timeout": "7200" })).toBe(3_600_000);
  for (const said of ["", "0", "-3", "soon", "NaN"])
    expect(total({ "x-stainless-timeout": said })).toBe(3_600_000);
  const read = { "x-stainless-read-timeout": "20" };
  expect(total(read)).toBeLessThanOrEqual(20_000);
  expect(total({ ...read, "x-stainless-timeout": "10" })).toBeLessThanOrEqual(10_000);
  // A stream has pings, so no read of its client takes this long.
  expect(total(read, true)).toBe(3_600_000);
  expect(timeoutsFor(call(read, false))).toMatchObject({ isClientLimit: true });
});
