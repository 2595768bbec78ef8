// Requests over a provider's WebSocket that are canceled before they are sent, and responses that
// arrive before they are read.
import { expect, it } from "vitest";
import { getFault } from "tollgate/plugin";
import { sendOverSocket } from "../../../src/pipeline/upstream/send-over-socket.ts";
import { SocketResponse } from "../../../src/pipeline/upstream/socket-response.ts";
import { TIMEOUTS } from "../../kit/test-services.ts";

it.each(["the client disconnected", "the call was canceled"])(
  "a session prepares no message if %s",
  async (why) => {
    let prepared = 0;
    const session = { continuable: "r1", prepareMessage: () => (prepared++, true) };
    const credential = {};
    const call = {
      action: "responses",
      stream: true,
      mode: "passthrough",
      usesNewConnection: false,
      cancelReason: why === "the call was canceled" ? new Error("canceled") : undefined,
      candidate: { mounted: { credential } },
      exchange: {
        privacy: "off",
        state: {
          connection: { lane: {}, isDisconnected: why === "the client disconnected" },
          body: { received: { continues: { id: "r1", items: 2 } } },
        },
      },
    };
    const transport = {
      connections: { find: () => ({ session }) },
      definition: {
        sockets: { responses: { path: "/responses" } },
        protocol: { client: { createSession: () => session } },
      },
    };
    const out = { headers: {}, copy: () => out };
    const problem = await sendOverSocket(call as never, transport as never, out as never).catch(
      (error: unknown) => error,
    );
    expect(getFault(problem)?.kind ?? (problem as Error).message).toBe("canceled");
    expect(prepared).toBe(0);
  },
);

const monotonicTime = () => performance.now();

function responding() {
  const startedAt = monotonicTime();
  const wheel = { now: startedAt, add() {}, remove() {} };
  const events: string[] = [];
  const connection = {
    pause: () => void events.push("pause"),
    resume: () => void events.push("resume"),
    terminate: () => void events.push("terminate"),
  };
  const response = new SocketResponse({ failurePoint: "unsent" }, wheel as never, TIMEOUTS);
  response.start(connection);
  const received: Buffer[] = [];
  const sink = { onData: (chunk: Buffer) => void received.push(chunk), onEnd() {} };
  const arrive = (count: number) => {
    for (let i = 0; i < count; i++) response.onMessage({ event: `data: ${"x".repeat(1_016)}\n\n` });
  };
  return { startedAt, wheel, events, response, received, sink, arrive };
}

it("a response that nobody reads yet pauses its connection after 64 KiB", () => {
  const { startedAt, wheel, events, response, received, sink, arrive } = responding();
  arrive(64);
  expect(events).toEqual([]);
  arrive(2);
  expect(events).toEqual(["pause"]);
  // The provider cannot send, so its silence is not a failure.
  wheel.now = startedAt + TIMEOUTS.idleMs + 1_000;
  response.onTick(wheel.now);
  expect(response.isOver).toBe(false);
  response.pipeTo(sink);
  expect(events).toEqual(["pause", "resume"]);
  expect(Buffer.concat(received).length).toBe(66 * 1_024);
});

it("a response that is read later, by a client that does not read, stays paused", () => {
  const { events, response, received, sink, arrive } = responding();
  arrive(70);
  response.pause();
  response.pipeTo(sink);
  expect(received).toEqual([]);
  expect(events).not.toContain("resume");
});
