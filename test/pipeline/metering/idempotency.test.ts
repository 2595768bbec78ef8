// Requests with one Idempotency-Key are billed once, however many attempts they need: a failed
// attempt is no second request. Requests are counted by the ledger's rows, and not by upstream
// calls.
import fc from "fast-check";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import {
  errorResponse,
  jsonResponse,
  say,
  startUpstream,
  type ScriptedReply,
  type ScriptedResponse,
  type TestUpstream,
} from "tollgate/testing";
import { installTestClock } from "../../kit/clock.ts";
import { startTestServices } from "../../kit/test-services.ts";
import { turnEventLoop } from "../../kit/wait.ts";
import { CLIENTS, TARGETS } from "../protocol-pairs.ts";
import { trialCount } from "../../kit/law-effort.ts";

const hello = say("Hello, how do you do?").usage({ input: 7, output: 2 });
const broken =
  (after: NonNullable<ScriptedResponse["truncation"]>["after"]): ScriptedReply =>
  (asked) => ({ ...hello.toResponse(asked), truncation: { after, how: "reset" } });

/** The upstream's behavior for an attempt, and whether it may cost something. */
const ATTEMPTS = {
  answers: (asked) => hello.toResponse(asked),
  busy: errorResponse(503, "No."),
  refuses: errorResponse(400, "No."),
  "cuts before the head": broken("nothing"),
  "cuts behind the head": broken("headers"),
  "cuts within": broken({ pieces: 2 }),
} as const satisfies Record<string, ScriptedReply>;
type Attempt = keyof typeof ATTEMPTS;

const PROTOCOLS = ["chat-completions", "messages", "responses"] as const;

let up: TestUpstream;
beforeAll(async () => {
  up = await startUpstream({ "POST *": jsonResponse({}, 400) });
  vi.spyOn(Math, "random").mockReturnValue(0.01);
});
afterAll(async () => {
  vi.restoreAllMocks();
  await up?.close();
});

const house = (from: string, into: string, more: object = {}) =>
  startTestServices({
    frontend: CLIENTS[from]!.protocol,
    providers: {
      a: { endpoints: [{ protocol: TARGETS[into]!, base: `${up.url}/v1`, auth: "none" }] },
    },
    attempts: { perTarget: 2, total: 3 },
    ...more,
  });

/** Requests with a reserve row, and those that were billed, each in order. */
function rows({ journal }: Awaited<ReturnType<typeof startTestServices>>) {
  const requestOf = new Map(
    journal.flatMap((row) => (row.do === "reserve" ? [[row.attempt, row.request]] : [])),
  );
  const billed = journal.flatMap((row) =>
    row.do === "settle" && row.state !== "void" ? [requestOf.get(row.attempt)!] : [],
  );
  return { asked: new Set(requestOf.values()), billed: new Set(billed), calls: requestOf.size };
}

const road = fc.record({
  from: fc.constantFrom(...PROTOCOLS),
  into: fc.constantFrom(...PROTOCOLS),
  stream: fc.boolean(),
  script: fc.array(fc.constantFrom(...(Object.keys(ATTEMPTS) as Attempt[])), {
    minLength: 1,
    maxLength: 4,
  }),
  again: fc.integer({ min: 1, max: 4 }),
});

it("however its attempts end, no second request with the same key is billed", async () => {
  let name = 0;
  await fc.assert(
    fc.asyncProperty(road, async ({ from, into, stream, script, again }) => {
      await using s = await house(from, into);
      // After its script the upstream would respond: an excess call is billed.
      up.setRoutes({ "POST *": [...script.map((one) => ATTEMPTS[one]), ATTEMPTS.answers] });
      const headers = { "idempotency-key": `n${name++}` };
      const ask = async () => {
        const res = await s.ask({ ...CLIENTS[from]!.least, model: "a/m", stream }, { headers });
        return { status: res.status, text: await res.text().catch(() => "broken off") };
      };
      for (let i = 0; i <= again; i++) {
        await Promise.all([ask(), ask()]);
        const { billed } = rows(s);
        expect(billed.size).toBeLessThanOrEqual(1);
        if (billed.size === 1) {
          const before = rows(s).asked.size;
          const told = await ask();
          expect([told.status, told.text]).toEqual([409, expect.stringContaining("idempotency_")]);
          expect(rows(s).asked.size).toBe(before);
        }
      }
    }),
    { numRuns: trialCount(40) },
  );
});

it("two attempts of one request count as one request", async () => {
  await using s = await house("responses", "responses");
  up.reset();
  up.setRoutes({ "POST *": [ATTEMPTS["cuts before the head"], ATTEMPTS.answers] });
  const ask = () =>
    s.ask(
      { ...CLIENTS["responses"]!.least, model: "a/m", stream: true },
      { headers: { "idempotency-key": "n" } },
    );
  const res = await ask();
  expect([res.status, await res.text()]).toEqual([200, expect.stringContaining("Hello")]);
  expect((await ask()).status).toBe(409);
  expect(up.requests.length).toBe(2);
  expect(rows(s)).toMatchObject({ calls: 2, asked: { size: 1 } });
});

it("a ledger that is slower than a client's patience does not free the key", async () => {
  const time = installTestClock();
  const settling = async () => {
    await turnEventLoop();
    time.skip(2_200);
    await turnEventLoop();
  };
  await using s = await house("chat-completions", "chat-completions", { settling });
  up.setRoutes({ "POST *": ATTEMPTS.answers });
  const ask = () =>
    s.ask(
      { ...CLIENTS["chat-completions"]!.least, model: "a/m", stream: true },
      { headers: { "idempotency-key": "n" } },
    );
  expect((await (await ask()).text()).includes("Hello")).toBe(true);
  expect((await ask()).status).toBe(409);
  expect(rows(s).asked.size).toBe(1);
});
