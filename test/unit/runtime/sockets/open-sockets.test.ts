// The times of open WebSockets, on a clock of the test's own.
import { describe, expect, it } from "vitest";
import {
  OpenSockets,
  SOCKET_TIMES,
  type OpenSocket,
} from "../../../../src/runtime/sockets/open-sockets.ts";
import { BOUNDS } from "../../../../src/lib/bounds.ts";
import { getFault } from "../../../../src/model/error.ts";
import { MemoryBudget } from "../../../../src/pipeline/admission/memory-budget.ts";
import { RequestLanes } from "../../../../src/runtime/sockets/request-lanes.ts";
import { ConversationMemory } from "../../../../plugins/frontends/conversation-memory.ts";

/** A socket without a connection: what is done to it is kept. */
class Pretended {
  readonly did: string[] = [];
  messagesIn = 0;
  bytesIn = 0;
  bytesOut = 0;
  bufferedBytes = 0;
  pauseReasons: readonly string[] = [];
  hasReceivedData = true;
  isPaused = false;
  isClosing = false;
  hasPartialMessage = false;
  partialSince: number | undefined;
  key = "k";
  ping() {
    this.hasReceivedData = false;
    this.did.push("ping");
  }
  terminate() {
    this.isClosing = true;
    this.did.push("terminate");
  }
  close(code: number) {
    this.isClosing = true;
    this.did.push(`close ${code}`);
  }
}
function opened(more: Partial<OpenSocket> = {}) {
  let now = 0;
  const sockets = new OpenSockets(SOCKET_TIMES, () => now);
  const socket = new Pretended();
  const of = {
    socket: socket as never,
    frontend: "responses",
    id: "1",
    account: undefined,
    running: 0,
    isBusy: false,
    describe: () => ({ type: "requests", model: undefined, provider: undefined, privacy: "off" }),
    finish: (notice: string) => void socket.did.push(notice),
    closeWith: (_: unknown, code: number) => socket.close(code),
    checkKey: async () => undefined,
    ...more,
  } as OpenSocket;
  sockets.add(of);
  const pass = (ms: number, each: () => void = () => {}) => {
    for (const end = now + ms; now < end; sockets.sweep(), each()) now += 1_000;
  };
  return { sockets, socket, of, pass };
}

describe("an open WebSocket", () => {
  it("is pinged every 20 s while it answers, and ended when it does not", () => {
    const { socket, pass } = opened();
    pass(60_000, () => (socket.hasReceivedData = true));
    expect(socket.did).toEqual(["ping", "ping", "ping"]);
    pass(41_000);
    expect(socket.did.slice(3)).toEqual(["ping", "terminate"]);
  });
  it("is not ended for a missing answer while it is paused", () => {
    const { socket, pass } = opened();
    socket.isPaused = true;
    pass(100_000);
    expect(socket.did).not.toContain("terminate");
  });
  it("is closed after 5 minutes without a message, but not while a response runs", () => {
    const idle = opened();
    idle.pass(302_000, () => (idle.socket.hasReceivedData = true));
    expect(idle.socket.did.at(-1)).toBe("close 1001");
    const busy = opened({ isBusy: true });
    busy.pass(600_000, () => (busy.socket.hasReceivedData = true));
    expect(busy.socket.isClosing).toBe(false);
    const lively = opened();
    lively.pass(600_000, () => {
      lively.socket.hasReceivedData = true;
      lively.socket.messagesIn++;
    });
    expect(lively.socket.isClosing).toBe(false);
  });
  it("ends after an hour", () => {
    const { socket, pass } = opened({ isBusy: true });
    pass(3_602_000, () => (socket.hasReceivedData = true));
    expect(socket.did.at(-1)).toBe("expired");
  });
  it("may not send a message for ever", () => {
    const { socket, pass } = opened();
    socket.hasPartialMessage = true;
    pass(122_000, () => (socket.hasReceivedData = true));
    expect(socket.did.at(-1)).toBe("close 1008");
  });
  it("ends when its key may no longer use it", async () => {
    const { sockets, socket } = opened({
      checkKey: async () => ({ kind: "unauthenticated", message: "Revoked." }),
    });
    await sockets.checkKeys();
    expect(socket.did).toEqual(["close 1008"]);
  });
  it("drains, and so do those that come later", () => {
    const { sockets, socket, of } = opened();
    sockets.drain();
    sockets.add(of);
    expect(socket.did).toEqual(["draining", "draining"]);
  });
});

describe("lanes", () => {
  const unbounded = { tryReserve: () => true, release() {} };
  it("keep their order, whatever ends first", async () => {
    const ended: string[] = [];
    const gates = new Map<string, () => void>();
    const lanes = new RequestLanes(
      (request) =>
        new Promise((resolve) =>
          gates.set(String(request.body), () => {
            ended.push(String(request.body));
            resolve();
          }),
        ),
      unbounded,
    );
    for (const [lane, body] of [
      ["a", "a1"],
      ["a", "a2"],
      ["b", "b1"],
    ] as const)
      lanes.add({ lane, body });
    expect([...gates.keys()]).toEqual(["a1", "b1"]);
    gates.get("b1")!();
    gates.get("a1")!();
    await new Promise(setImmediate);
    expect([...gates.keys()]).toEqual(["a1", "b1", "a2"]);
    expect(lanes.waitingBytes).toBe(0);
  });

  const never = () => new Promise<void>(() => {});
  const codeOf = (run: () => void): string | undefined => {
    try {
      run();
      return undefined;
    } catch (problem) {
      return getFault(problem)?.code ?? undefined;
    }
  };
  it("are limited in number, in what runs, and in what waits", () => {
    const lanes = new RequestLanes(never, unbounded);
    const add = (lane: string | undefined) => codeOf(() => lanes.add({ lane, body: "{}" }));
    const names = Array.from({ length: BOUNDS.socketLanes.max }, (_, i) => `l${i}`);
    expect(names.map(add).filter(Boolean)).toEqual([]);
    expect(add("one more")).toBe("websocket_stream_limit_reached");
    expect(lanes.running).toBe(BOUNDS.socketRunning.max);
    const waiting = BOUNDS.socketLanes.max - BOUNDS.socketRunning.max;
    for (let i = waiting; i < BOUNDS.socketQueue.max; i++) expect(add("l0")).toBeUndefined();
    expect(add("l0")).toBe("websocket_queue_full");
    expect(add(undefined)).toBe("websocket_queue_full");
  });

  it("hold memory for what waits, and only for that", async () => {
    const budget = new MemoryBudget(1_000_000);
    const ends: (() => void)[] = [];
    const lanes = new RequestLanes(() => new Promise((resolve) => ends.push(resolve)), {
      tryReserve: (bytes, held) => budget.tryReserve("k", bytes, held),
      release: (held, left) => budget.release("k", held, left),
    });
    const add = (size: number) => codeOf(() => lanes.add({ lane: "a", body: "x".repeat(size) }));
    expect(add(900_000)).toBeUndefined();
    expect(budget.usedBytes).toBe(0);
    expect([add(400_000), add(400_000), add(400_000)]).toEqual([
      undefined,
      undefined,
      "gateway_busy",
    ]);
    expect(budget.usedBytes).toBe(800_000);
    // Another connection of the key gets no more than its share.
    expect(budget.tryReserve("k", 150_000, 0)).toBe(false);
    ends[0]!();
    await new Promise(setImmediate);
    expect(budget.usedBytes).toBe(400_000);
    expect(budget.tryReserve("k", 90_000, 0)).toBe(true);
    budget.release("k", 90_000);
    lanes.clear();
    expect(budget.usedBytes).toBe(0);
    expect(budget.tryReserve("k", 990_000, 0)).toBe(true);
  });
});

describe("the memory of conversations", () => {
  const memory = (bytes = 100_000, now: () => number = () => 0) =>
    new ConversationMemory({ bytes, bytesPerKey: bytes / 2, maxAgeMs: 1_000 }, now);
  const turn = (id: string, parent?: string, connection?: object) => ({
    id,
    parent,
    input: [{ in: id }],
    output: [{ out: id }],
    connection,
  });
  it("returns a conversation from its first turn on, for its key alone", () => {
    const m = memory();
    m.add("k", turn("1"));
    m.add("k", turn("2", "1"));
    m.add("k", turn("3", "1"));
    expect(m.find("k", "2")).toEqual([{ in: "1" }, { out: "1" }, { in: "2" }, { out: "2" }]);
    expect(m.find("k", "3")).toEqual([{ in: "1" }, { out: "1" }, { in: "3" }, { out: "3" }]);
    expect(m.find("other", "2")).toBeUndefined();
  });
  it("forgets what belongs to a connection with it", () => {
    const m = memory();
    const here = {};
    m.add("k", turn("1", undefined, here));
    expect(m.find("k", "1")).toBeUndefined();
    expect(m.find("k", "1", here)).toHaveLength(2);
    m.forgetConnection("k", here);
    expect(m.find("k", "1", here)).toBeUndefined();
    expect(m.bytes).toBe(0);
  });
  it("replaces a response whose ID the provider uses again, also in its own continuation", () => {
    let now = 0;
    const m = memory(10_000, () => now);
    m.add("k", turn("1"));
    m.add("k", turn("1"));
    expect(m.find("k", "1")).toHaveLength(2);
    m.add("k", turn("1", "1"));
    expect(m.find("k", "1")).toHaveLength(4);
    now = 2_000;
    m.removeExpired();
    expect([m.find("k", "1"), m.bytes]).toEqual([undefined, 0]);
  });
  it("keeps its bounds, counts shared turns once, and frees all of it in the end", () => {
    let now = 0;
    const m = memory(4_000, () => now);
    m.add("k", turn("0"));
    for (let i = 1; i < 50; i++) m.add("k", turn(String(i), String(i - 1)));
    expect(m.bytes).toBeLessThanOrEqual(4_000);
    now = 2_000;
    m.removeExpired();
    expect(m.bytes).toBe(0);
  });
});
