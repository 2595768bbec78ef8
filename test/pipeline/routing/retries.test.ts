// The retry table describes the pipeline: for each failure of a call, in each protocol, streaming
// and non-streaming, in both modes, with another candidate and without one. The upstream's
// requests, the client's response, and the ledger row are compared with it.
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { ERRORS, type ErrorKind } from "tollgate/plugin";
import {
  errorResponse,
  startUpstream,
  type ScriptedReply,
  type ScriptedResponse,
  type TestUpstream,
  type UpstreamRequest,
} from "tollgate/testing";
import { goodAnswer } from "../../rig/faults/good-responses.ts";
import {
  retryModeAfter,
  FAILURE_POINTS,
  type FailurePoint,
} from "../../../src/model/call-retry.ts";
import {
  startBackend,
  startTestServices,
  TIMEOUTS,
  type TestServicesOptions,
} from "../../kit/test-services.ts";
import { CLIENTS, isImage, TARGETS } from "../protocol-pairs.ts";

interface Failure {
  readonly name: string;
  readonly stage: FailurePoint;
  readonly kind: ErrorKind;
  readonly reaction: ScriptedReply;
  /** Its retry time is too long to wait for, or missing. */
  readonly untold?: true;
  /** A provider's error without a retry time: the gateway adds none. */
  readonly timeless?: true;
  readonly only?: "stream" | "whole";
}

const refused = (
  status: number,
  kind: ErrorKind,
  more: { readonly retryAfter?: string; readonly code?: string } = {},
  untold?: true,
): Failure => ({
  name: `${status} ${kind}${untold ? ", and no time to wait for" : ""}`,
  stage: "rejected",
  kind,
  reaction: errorResponse(status, "No.", more),
  ...(untold && { untold }),
  ...(more.retryAfter === undefined && { timeless: true as const }),
});

/** A healthy model's response in any protocol. */
const hello = (asked: UpstreamRequest): ScriptedResponse => {
  const { type, stream, pieces, bytes } = goodAnswer(asked);
  return {
    headers: { "content-type": type },
    body: stream ? pieces.map(String) : bytes.toString(),
  };
};
const broken =
  (cut: "nothing" | "headers" | "content", how: "reset" | "close" | "stall"): ScriptedReply =>
  (asked) => {
    const answer = hello(asked);
    const { body } = answer;
    const pieces = Array.isArray(body) ? body.length : 1;
    const after = cut === "content" ? { pieces: pieces - 1 } : cut;
    return { ...answer, truncation: { after, how } };
  };

const FAILURES: readonly Failure[] = [
  refused(400, "invalid"),
  refused(401, "upstream_auth"),
  refused(402, "upstream_quota"),
  refused(404, "not_found"),
  refused(408, "timeout"),
  refused(409, "conflict"),
  refused(413, "too_large"),
  refused(422, "invalid"),
  refused(429, "rate_limited", { retryAfter: "0" }),
  refused(429, "rate_limited", {}, true),
  refused(429, "rate_limited", { retryAfter: "30" }, true),
  refused(500, "upstream"),
  refused(503, "overloaded"),
  refused(503, "overloaded", { retryAfter: "30" }, true),
  refused(504, "timeout"),
  refused(400, "context_length", { code: "context_length_exceeded" }),
  refused(400, "content_policy", { code: "content_filter" }),
  ...(["reset", "close"] as const).flatMap((how): Failure[] => [
    {
      name: `${how} before the head`,
      stage: "no_response",
      kind: "upstream",
      reaction: broken("nothing", how),
    },
    {
      name: `${how} behind the head`,
      stage: "response_started",
      kind: "upstream",
      reaction: broken("headers", how),
    },
    {
      name: `${how} after content`,
      stage: "content_sent",
      kind: "upstream",
      reaction: broken("content", how),
      only: "stream",
    },
  ]),
  {
    name: "silence before the head",
    stage: "no_response",
    kind: "timeout",
    reaction: broken("nothing", "stall"),
  },
  {
    name: "silence behind the head",
    stage: "response_started",
    kind: "timeout",
    reaction: broken("headers", "stall"),
  },
];
const ROW: { readonly [R in (typeof FAILURE_POINTS)[FailurePoint]["ledgerResult"]]: string } = {
  void: "void",
  estimated: "estimated",
  partial: "estimated",
};
const ON: readonly ErrorKind[] = [
  "overloaded",
  "rate_limited",
  "timeout",
  "upstream",
  "upstream_auth",
  "upstream_quota",
];
const PROTOCOLS = ["chat-completions", "messages", "responses"] as const;
const LANES: readonly (readonly [from: string, into: string])[] = [
  ...PROTOCOLS.flatMap((into, i) =>
    [into, PROTOCOLS[(i + 1) % PROTOCOLS.length]!].map((from) => [from, into] as const),
  ),
  ["chat-completions", "gemini"],
  ["images", "images"],
  ["images", "gemini-image"],
];

let up: TestUpstream;
beforeAll(async () => {
  up = await startUpstream({ "POST /b/*": hello });
});
afterAll(() => up?.close());

const provider = (
  base: string,
  into: string,
  more: object = {},
): TestServicesOptions["providers"][string] => ({
  endpoints: [{ protocol: TARGETS[into]!, base, auth: "none" }],
  timeouts: { ...TIMEOUTS, ...more },
  ...(isImage(into) && { facts: new Map([[modelOf(into), { operation: "image" }]]) }),
});
/** The name that identifies an image response. */
const modelOf = (into: string) => (into === "gemini-image" ? "m-image" : "m");

const SILENT: { readonly [S in FailurePoint]?: object } = {
  no_response: { firstByteMs: 400 },
  response_started: { idleMs: 60 },
};

interface Case extends Failure {
  /** A provider of its own, so that no cooldown affects another. */
  readonly at: string;
  readonly stream: boolean;
  readonly other: boolean;
}
const CASES: readonly Case[] = FAILURES.flatMap((failure, i) =>
  [false, true]
    .filter((stream) => stream || failure.only !== "stream")
    .flatMap((stream) =>
      [false, true].map((other) => {
        const at = `p${i}${stream ? "s" : "w"}${other ? "o" : "a"}`;
        return { ...failure, at, stream, other };
      }),
    ),
);

/** The table's entry for it. */
function expected({ stage, kind, untold, timeless, other }: Case) {
  const again = untold ? undefined : retryModeAfter(stage, kind);
  const next = other && FAILURE_POINTS[stage].allowsFailover && ON.includes(kind);
  const more = again === "immediate" || next || again !== undefined;
  const calls = again !== undefined && (again === "immediate" || !next) ? 2 : 1;
  const rows = [ROW[FAILURE_POINTS[stage].ledgerResult], ...(more ? ["unpriced"] : [])];
  if (more || stage === "content_sent") return { calls, rows, ok: true, again: null, told: false };
  const worth = ERRORS[kind][1] === "next" && ERRORS[kind][2] !== "credential";
  return { calls, rows, ok: false, again: String(worth), told: worth && !timeless };
}

describe.each(LANES)("from %s into %s", (from, into) => {
  it("each failure has the effect in the table", async () => {
    // The shortest possible backoffs.
    const dice = vi.spyOn(Math, "random").mockReturnValue(0.01);
    onTestFinished(() => void dice.mockRestore());
    const m = modelOf(into);
    // Streaming image models send other events before content.
    const all = CASES.filter(({ stream }) => !stream || !isImage(into));
    await using s = await startTestServices({
      frontend: CLIENTS[from]!.protocol,
      providers: {
        ...Object.fromEntries(
          all.map(({ at, kind, stage }) => [
            at,
            provider(`${up.url}/${at}/v1`, into, kind === "timeout" ? SILENT[stage] : undefined),
          ]),
        ),
        b: provider(`${up.url}/b/v1`, into),
      },
      models: Object.fromEntries(all.map(({ at }) => [`any-${at}`, [`${at}/${m}`, `b/${m}`]])),
      on: ON,
      attempts: { perTarget: 2, total: 3 },
    });
    const ask = async (one: Case) => {
      const { at, other, stream } = one;
      // The retry budget is not part of this table.
      for (let i = 0; i < 50; i++)
        s.house.targetHealth.retryBudget("k1").addRequest(performance.now());
      const before = up.requests.length;
      up.setRoutes({ [`POST /${at}/*`]: [one.reaction, hello] });
      const model = other ? `any-${at}` : `${at}/${m}`;
      const res = await s.ask({ ...CLIENTS[from]!.least, model, stream });
      const text = await res.text().catch(() => "broken off");
      const id = res.headers.get("x-request-id") ?? res.headers.get("request-id")!;
      const settles = s.journal.flatMap((row) => (row.do === "settle" ? [row] : []));
      const mine = up.requests.slice(before).filter(({ path }) => path.startsWith(`/${at}/`));
      const got = {
        calls: mine.length,
        rows: settles.filter((row) => row.attempt.startsWith(`${id}.`)).map(({ state }) => state),
        ok: res.status === 200,
        again: res.headers.get("x-should-retry"),
        told: Number(res.headers.get("retry-after-ms")) > 0,
      };
      if (got.ok) expect(text).toMatch(/Hello|b64_json/);
      expect({ ...got, of: `${one.name} ${at}` }).toEqual({
        ...expected(one),
        of: `${one.name} ${at}`,
      });
    };
    for (let i = 0; i < all.length; i += 12)
      await Promise.all(all.slice(i, i + 12).map((one) => ask(one)));
  });
});

describe("a request that was not sent", () => {
  it.each([false, true])(
    "is tried once more, or elsewhere, and is void (stream: %s)",
    async (stream) => {
      const gone = await startBackend(() => {});
      await gone[Symbol.asyncDispose]();
      await using s = await startTestServices({
        frontend: CLIENTS["messages"]!.protocol,
        providers: {
          a: provider(gone.base, "messages"),
          b: provider(`${up.url}/b/v1`, "messages"),
        },
        models: { any: ["a/m", "b/m"] },
        on: ON,
        attempts: { perTarget: 2, total: 3 },
      });
      const states = () => s.journal.flatMap((row) => (row.do === "settle" ? [row.state] : []));
      const least = CLIENTS["messages"]!.least;
      expect((await s.ask({ ...least, model: "a/m", stream })).status).toBe(502);
      expect(states()).toEqual(["void", "void"]);
      const other = await s.ask({ ...least, model: "any", stream });
      expect([other.status, (await other.text()).includes("Hello")]).toEqual([200, true]);
      expect(states()).toEqual(["void", "void", "void", "unpriced"]);
    },
  );
});

describe("the command table", () => {
  const stages = Object.keys(FAILURE_POINTS) as FailurePoint[];
  const kinds = Object.keys(ERRORS) as ErrorKind[];

  it("repeats nothing after content was sent, and no error of the client", () => {
    for (const kind of kinds) expect(retryModeAfter("content_sent", kind)).toBeUndefined();
    expect(FAILURE_POINTS.content_sent.allowsFailover).toBe(false);
    for (const stage of stages)
      for (const kind of kinds)
        if (ERRORS[kind][1] !== "next" || ERRORS[kind][2] === "credential")
          expect(retryModeAfter(stage, kind)).toBeUndefined();
  });

  it("is exempt from the retry budget only if the request was not sent completely, and bills nothing then", () => {
    for (const stage of stages)
      if (FAILURE_POINTS[stage].isFree)
        expect([stage, FAILURE_POINTS[stage].ledgerResult]).toEqual(["send_interrupted", "void"]);
  });

  it("lists each stage that these failures reach", () => {
    const reached = new Set([...FAILURES.map(({ stage }) => stage), "unsent", "send_interrupted"]);
    expect([...reached].toSorted()).toEqual(stages.toSorted());
  });
});
