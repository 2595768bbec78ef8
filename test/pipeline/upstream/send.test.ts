// One request to an upstream: its consumer controls the flow of bytes.
import { Pool } from "undici";
import { expect, it } from "vitest";
import { BodyChunks } from "../../../src/pipeline/upstream/outgoing-request.ts";
import { UpstreamHttpResponse } from "../../../src/pipeline/upstream/upstream-http-response.ts";
import { TimerWheel } from "../../../src/pipeline/admission/timer-wheel.ts";
import { waitUntilStable, turnEventLoop } from "../../kit/wait.ts";
import { startBackend, TIMEOUTS } from "../../kit/test-services.ts";

it("a consumer that is full receives no more data", async () => {
  let sent = 0;
  await using up = await startBackend((_req, res) => {
    const piece = Buffer.alloc(32_768);
    const flood = () => {
      while (!res.destroyed && sent++ < 1_000) if (!res.write(piece)) return;
    };
    res.on("drain", flood);
    flood();
  });
  using dog = new TimerWheel();
  const pool = new Pool(up.base);
  const flight = await begun(dog, pool);
  await waitUntilStable(() => sent);
  let pieces = 0;
  flight.pipeTo({
    onData() {
      pieces++;
      flight.pause();
    },
    onEnd() {},
  });
  await turnEventLoop();
  expect(pieces).toBe(1);
  flight.abort(new Error("enough"));
  await pool.destroy();
});

it("receives nothing while paused, and every byte once and in order", async () => {
  const whole = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * 7) % 251));
  await using up = await startBackend((_req, res) => {
    // In HTTP chunks of every size: several arrive in one read.
    for (let at = 0, size = 1; at < whole.length; at += size, size = (size * 3) % 9_001)
      res.write(whole.subarray(at, at + size));
    res.end();
  });
  using dog = new TimerWheel();
  const pool = new Pool(up.base);
  for (const waits of [[0], [1], [0, 1, 2], [3, 0, 0, 1]]) {
    const flight = await begun(dog, pool);
    const came: Buffer[] = [];
    let paused = false;
    let early = 0;
    await new Promise<void>((done) =>
      flight.pipeTo({
        onData(piece) {
          if (paused) early++;
          came.push(piece);
          paused = true;
          flight.pause();
          setTimeout(
            () => {
              paused = false;
              flight.resume();
            },
            waits[came.length % waits.length],
          );
        },
        onEnd: () => done(),
      }),
    );
    expect(Buffer.concat(came).equals(whole)).toBe(true);
    // Data that arrives with its end is delivered with it.
    expect(early).toBeLessThan(2);
  }
  await pool.destroy();
});

it.each([["x-named", "content-length"], ["content-length", String(2 * 262_144)], []])(
  "a body in chunks is sent with its length, once, whatever its headers contain: %s",
  async (...headers) => {
    const asked: (readonly string[])[] = [];
    await using up = await startBackend((req, res) => {
      asked.push(req.rawHeaders.map((word) => word.toLowerCase()));
      res.end();
    });
    using dog = new TimerWheel();
    const pool = new Pool(up.base);
    const body = new BodyChunks([Buffer.alloc(262_144), Buffer.alloc(262_144)]);
    await begun(dog, pool, { method: "POST", headers, body });
    const names = asked[0]!.filter((_, i) => i % 2 === 0);
    expect(names.filter((name) => name === "content-length")).toHaveLength(1);
    expect(asked[0]![asked[0]!.indexOf(String(body.length)) - 1]).toBe("content-length");
    await pool.destroy();
  },
);

/** It has headers. */
const begun = (
  dog: TimerWheel,
  pool: Pool,
  of: { method?: string; headers?: string[]; body?: BodyChunks } = {},
): Promise<UpstreamHttpResponse> =>
  new UpstreamHttpResponse(dog, TIMEOUTS).dispatch(
    { failurePoint: "unsent", usesNewConnection: false },
    { pool } as never,
    {
      method: "GET",
      path: "/",
      headers: [],
      body: null,
      ...of,
    },
  );
