// The states of a response. For any events in any order, a call is settled once, and its response
// ends once.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createFault } from "tollgate/plugin";
import { getFault } from "../../../src/model/error.ts";
import { HostCall } from "../../../src/pipeline/exchange/call.ts";
import { HostExchange } from "../../../src/pipeline/exchange/exchange.ts";
import type { HostCandidate } from "../../../src/pipeline/exchange/mounted.ts";
import { createHookRunner } from "../../../src/pipeline/hooks/hook-runner.ts";
import { CallTally } from "../../../src/pipeline/metering/call-tally.ts";
import { settleCall } from "../../../src/pipeline/metering/settle-call.ts";
import { ClientResponse } from "../../../src/pipeline/response/client-response.ts";
import {
  STREAMING,
  type ResponseEvent,
  type ResponseState,
  present,
} from "../../../src/pipeline/stages/present.ts";
import type { TimerEntry } from "../../../src/pipeline/admission/timer-wheel.ts";
import type { ResponseSink } from "../../../src/pipeline/upstream/upstream-http-response.ts";
import { trialCount } from "../../kit/law-effort.ts";
import { createToyProtocol } from "../toy-protocol.ts";

const EVENTS = [
  "finish",
  "row",
  "end",
  "upstream",
  "give_up",
  "fail",
] as const satisfies readonly ResponseEvent[];

/** Every reachable state, with its possible events. */
function reachable(): ReadonlyMap<ResponseState, readonly ResponseState[]> {
  const found = new Map<ResponseState, readonly ResponseState[]>();
  const visit = (state: ResponseState) => {
    if (found.has(state)) return;
    const next = EVENTS.flatMap((event) => {
      try {
        return [state.after(event)];
      } catch {
        return [];
      }
    });
    found.set(state, next);
    next.forEach(visit);
  };
  visit(STREAMING);
  return found;
}

describe("the command table", () => {
  it("has no unreachable state, and a path to the end from each state", () => {
    const states = reachable();
    expect([...states.keys()].map(({ name }) => name).toSorted()).toEqual(
      [
        "complete",
        "end",
        "end+upstream",
        "failed",
        "held",
        "row",
        "row+end",
        "row+end+upstream",
        "row+upstream",
        "streaming",
        "upstream",
      ].toSorted(),
    );
    for (const [state, next] of states)
      expect([state.name, state.isOver]).toEqual([state.name, next.length === 0]);
    const ends = new Set([...states.keys()].filter(({ isOver }) => isOver));
    for (let grew = true; grew;) {
      const before = ends.size;
      for (const [state, next] of states) if (next.some((one) => ends.has(one))) ends.add(state);
      grew = ends.size > before;
    }
    expect(ends.size).toBe(states.size);
  });

  it("completes only what has waited for its row, its end, and its provider, or was abandoned", () => {
    for (const [state, next] of reachable())
      for (const one of next) {
        if (one.name === "complete")
          expect(
            [state.awaitsRow, state.awaitsEnd, state.awaitsUpstream].filter(Boolean).length,
          ).toBeGreaterThan(0);
        // Nothing is awaited twice.
        if (state.isFinishing && !one.isOver) {
          expect(one.isFinishing).toBe(true);
          for (const part of ["awaitsRow", "awaitsEnd", "awaitsUpstream"] as const)
            if (!state[part])
              expect([state.name, one.name, part, one[part]]).toEqual([
                state.name,
                one.name,
                part,
                false,
              ]);
        }
      }
  });

  it("after the finish, each event ends the wait for one thing only", () => {
    const waits = (state: ResponseState) => ({
      row: state.awaitsRow,
      end: state.awaitsEnd,
      upstream: state.awaitsUpstream,
    });
    const finishing = [...reachable().keys()].filter(({ isFinishing }) => isFinishing);
    expect(finishing).toHaveLength(7);
    for (const state of finishing) {
      for (const event of ["row", "end", "upstream"] as const) {
        const before = waits(state);
        // A row or an end that was not awaited cannot occur.
        if (!before[event] && event !== "upstream") continue;
        const expected = { ...before, [event]: false };
        expect([state.name, event, waits(state.after(event))]).toEqual([
          state.name,
          event,
          expected,
        ]);
      }
      const givenUp = waits(state.after("give_up"));
      // Only a row that is being written is still awaited.
      const expected = { row: state.awaitsRow, end: false, upstream: false };
      expect([state.name, "give_up", givenUp]).toEqual([state.name, "give_up", expected]);
    }
  });

  it.each([
    ["row", STREAMING],
    ["end", STREAMING],
    ["give_up", STREAMING],
    ["fail", STREAMING.after("finish")],
    ["finish", STREAMING.after("finish")],
    ["row", STREAMING.after("fail")],
  ] as const)("throws on an impossible %s", (event, state) => {
    expect(() => state.after(event)).toThrow(`${event} in the state ${state.name}`);
  });
});

describe("random orders of the events after the finish", () => {
  it("complete a response with the last of row, end, and provider, and never before", () => {
    const awaited = ["row", "end", "upstream"] as const;
    fc.assert(
      fc.property(
        fc.record({ isHeld: fc.boolean(), repeats: fc.nat(2) }),
        fc.shuffledSubarray([...awaited], { minLength: awaited.length }),
        ({ isHeld, repeats }, order) => {
          // A hook can hold back the finish until the provider's message has ended.
          const first = isHeld ? (["upstream", "finish"] as const) : (["finish"] as const);
          let state = first.reduce<ResponseState>((at, event) => at.after(event), STREAMING);
          const left = new Set<string>(isHeld ? ["row", "end"] : awaited);
          for (const event of order) {
            // The provider's end can be reported again.
            const times = event === "upstream" ? 1 + repeats : 1;
            for (let i = 0; i < times && left.size > 0; i++) {
              expect([state.name, state.isOver]).toEqual([[...left].join("+"), false]);
              state = state.after(event);
              left.delete(event);
            }
          }
          expect(state.name).toBe("complete");
        },
      ),
    );
  });
});

const nothing = () => {};

/** A provider's response. */
interface UpstreamStub {
  readonly status: number;
  readonly headers: { readonly [name: string]: string };
  isOver: boolean;
  sink: ResponseSink | undefined;
  pipeTo(sink: ResponseSink): void;
  pause(): void;
  resume(): void;
  abort(reason?: Error): void;
  end(reason?: Error): void;
  data(of: object): void;
}
const line = (of: object): Buffer => Buffer.from(`${JSON.stringify(of)}\n`);

/** One call whose provider, client, ledger, and clock are controlled by the test. */
function scene(of: { passthrough: boolean; stream: boolean; drains: boolean }) {
  const entries = new Set<TimerEntry>();
  const rows: (() => void)[] = [];
  const outcomes: string[] = [];
  let ends = 0;
  const protocol = createToyProtocol();
  const gen = {
    number: 1,
    log: { error: nothing, warn: nothing },
    mask: (text: string) => text,
    maskJson: (value: unknown) => value,
    maxResponseBytes: 1e9,
    writeTimeoutMs: 1e9,
    timerWheel: {
      now: 0,
      add: (entry: TimerEntry) => void entries.add(entry),
      remove: (entry: TimerEntry) => void entries.delete(entry),
    },
    targetHealth: { recordSuccess: nothing },
    outputHistory: { record: nothing },
    ledger: {
      progress: nothing,
      settle({ outcome }: { outcome: string }) {
        outcomes.push(outcome);
        return new Promise<void>((resolve) => rows.push(resolve));
      },
    },
  };
  const closed: (() => void)[] = [];
  const res = {
    headersSent: false,
    destroyed: false,
    writableFinished: false,
    writableLength: 0,
    on: (_event: string, listener: () => void) => closed.push(listener),
    once: nothing,
    cork: nothing,
    uncork: nothing,
    flushHeaders: nothing,
    write: () => true,
    end: nothing,
    destroy: nothing,
    writeHead() {
      this.headersSent = true;
    },
  };
  const frontend = {
    name: "toy",
    protocol,
    server: protocol.server,
    hooks: createHookRunner([], "toy"),
  };
  const x = new HostExchange({
    id: "r",
    gen: gen as never,
    route: { frontend, route: { actionType: "generate" }, path: "/toy" } as never,
    req: { headers: {}, url: "/toy", socket: {} } as never,
    res: res as never,
    params: {},
    receive: () => Promise.reject(new Error("The body is here.")),
  });
  const body = { model: "p/m", text: "x", stream: of.stream };
  x.state.body.received = {
    body,
    originalBody: body,
    facts: { features: [], references: [] },
    inputBytes: 10,
    stream: of.stream,
    model: "p/m",
  } as never;
  const call = new HostCall(
    x,
    {
      id: "p/m",
      provider: "p",
      model: "m",
      credential: "c",
      protocol: "toy",
      mode: of.passthrough ? "passthrough" : "translated",
      info: { model: "m", operation: "chat" },
      policy: {},
      mounted: {
        endpoint: { protocol, definition: {} },
        provider: { onDisconnect: of.drains ? "drain" : "cancel" },
      },
    } as unknown as HostCandidate,
    1,
  );
  if (!of.passthrough) call.emulatedStopSequences = ["STOP"];
  const answer = new ClientResponse(x);
  const end = answer.end.bind(answer);
  const failWith = answer.failWith.bind(answer);
  let isFailing = false;
  answer.end = () => {
    if (!isFailing) ends++;
    end();
  };
  answer.failWith = (write) => {
    ends++;
    isFailing = true;
    failWith(write);
  };
  const tally = new CallTally(call);
  tally.isAccepted = true;
  const source: UpstreamStub = {
    status: 200,
    headers: { "content-type": of.stream ? "text/event-stream" : "application/json" },
    isOver: false,
    sink: undefined,
    pipeTo(sink) {
      this.sink = sink;
    },
    pause: nothing,
    resume: nothing,
    abort(reason) {
      this.end(reason);
    },
    end(reason) {
      if (this.isOver) return;
      this.isOver = true;
      this.sink!.onEnd(reason);
    },
    data(of) {
      if (!this.isOver) this.sink!.onData(line(of));
    },
  };
  let done: "complete" | "failed" | undefined;
  void present(call, { type: "http", response: source as never }, answer, tally).then(
    () => (done = "complete"),
    (problem: unknown) => {
      // Like the execution of an attempt.
      done = "failed";
      ends++;
      void settleCall(tally, { fault: getFault(problem) ?? { kind: "internal", message: "" } });
    },
  );
  return {
    gets: {
      content: () => source.data({ say: "word " }),
      stop_text: () => source.data({ say: "STOP" }),
      finish: () => source.data({ say: "", usage: { input: 1, output: 1 }, end: "stop" }),
      garbage: () => source.data({ error: "broken" }),
      end: () => source.end(),
      cut: () => source.end(createFault("upstream", "The connection broke.")),
      disconnect() {
        for (const listener of closed.splice(0)) listener();
      },
      row() {
        for (const resolve of rows.splice(0)) resolve();
      },
      tick() {
        for (const entry of entries) entry.onTick(Number.MAX_VALUE);
      },
      superseded: () => answer.writer?.onError(createFault("canceled", "Another call responded.")),
      forbidden: () => call.exchange && stop(answer),
    },
    result: () => ({ done, outcomes, ends, open: [...entries].filter((one) => one !== answer) }),
  };
}

/** Like a watch hook that stops a response. */
function stop(answer: ClientResponse): void {
  const writer = answer.writer as unknown as { stopWith(fault: object): void } | undefined;
  writer?.stopWith({ kind: "content_policy", message: "No." });
}

type Happening = keyof ReturnType<typeof scene>["gets"];
const HAPPENINGS = [
  "content",
  "content",
  "stop_text",
  "finish",
  "finish",
  "garbage",
  "end",
  "cut",
  "disconnect",
  "row",
  "tick",
  "superseded",
  "forbidden",
] as const satisfies readonly Happening[];

/** Runs everything that waits for a promise. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("a response", () => {
  it("is settled once and ends once, in any order of events", async () => {
    const seen = new Map<string, number>();
    await fc.assert(
      fc.asyncProperty(
        fc.record({ passthrough: fc.boolean(), stream: fc.boolean(), drains: fc.boolean() }),
        fc.array(fc.record({ what: fc.constantFrom(...HAPPENINGS), waits: fc.boolean() }), {
          maxLength: 12,
        }),
        async (of, order) => {
          const { gets, result } = scene(of);
          for (const { what, waits } of order) {
            gets[what]();
            if (waits) await turn();
          }
          // The provider's connection ends, a row is written, and time passes.
          for (const what of ["cut", "row", "tick", "row", "tick", "row"] as const) {
            gets[what]();
            await turn();
          }
          const { done, outcomes, ends, open } = result();
          expect({ done: done !== undefined, outcomes: outcomes.length, ends, open }).toEqual({
            done: true,
            outcomes: 1,
            ends: 1,
            open: [],
          });
          const what = `${done} ${outcomes[0]}`;
          seen.set(what, (seen.get(what) ?? 0) + 1);
        },
      ),
      { numRuns: trialCount(2_000) },
    );
    // Each end was tested: complete, failed before content, and failed after it.
    for (const what of ["complete ok", "failed upstream", "complete upstream", "failed canceled"])
      expect([what, seen.get(what) ?? 0]).toEqual([what, expect.any(Number)]);
    expect(
      Math.min(seen.get("complete ok") ?? 0, seen.get("failed upstream") ?? 0),
    ).toBeGreaterThan(20);
    expect(seen.get("complete upstream") ?? 0).toBeGreaterThan(5);
  });
});
