// The first_byte timeout runs until a response starts: its headers and the comments of its stream
// do not count.
import { expect, it } from "vitest";
import { TimerWheel } from "../../../src/pipeline/admission/timer-wheel.ts";
import { LeadingComments } from "../../../src/pipeline/upstream/upstream-http-response.ts";
import { UpstreamHttpResponse } from "../../../src/pipeline/upstream/upstream-http-response.ts";

const TIMES = { firstByteMs: 1_000, idleMs: 5_000, totalMs: 60_000 };

/** The error if it is checked this many milliseconds after the start. */
function lateAfter(ms: number, chunks: readonly string[], type = "text/event-stream") {
  using dog = new TimerWheel();
  const response = new UpstreamHttpResponse(dog, TIMES);
  let reason: unknown;
  const controller = { abort: (why: unknown) => void (reason = why), pause() {}, resume() {} };
  response.onRequestStart(controller as never);
  response.onResponseStart(controller as never, 200, { "content-type": type });
  for (const chunk of chunks) response.onResponseData(controller as never, Buffer.from(chunk));
  response.onTick(dog.now + ms);
  return (reason as Error | undefined)?.message;
}

it("endless comments do not extend first_byte", () => {
  const comments = Array.from({ length: 100 }, () => ": processing\n\n");
  expect(lateAfter(2_000, comments)).toMatch(/did not respond within 1 s/);
  expect(lateAfter(2_000, [":\r\n", "\r\n", ": a", "b\r", "\n\r\n"])).toMatch(
    /did not respond within/,
  );
  expect(lateAfter(2_000, [])).toMatch(/did not respond within 1 s/);
});

it("after the first event, silence is limited by idle", () => {
  const began = [": processing\n\n", "da", "ta: {}\n\n", ": processing\n\n"];
  expect(lateAfter(2_000, began)).toBeUndefined();
  expect(lateAfter(7_000, began)).toMatch(/sent no data for 5 s/);
});

it("a non-streaming response is limited by idle after its headers", () => {
  expect(lateAfter(2_000, [" "], "application/json")).toBeUndefined();
});

it.each([
  ["data: {}", true],
  ["event: ping\n", true],
  ["{}", true],
  [": data: {}\n", false],
  ["\n\r\n", false],
  [": a\ndata", true],
  [": a\rdata", true],
])("%j starts a response: %s, however it is split", (text, begins) => {
  for (let at = 0; at <= text.length; at++) {
    const comments = new LeadingComments();
    const pieces = [text.slice(0, at), text.slice(at)].map((piece) => Buffer.from(piece));
    expect(pieces.some((piece) => comments.hasPassed(piece))).toBe(begins);
  }
});
