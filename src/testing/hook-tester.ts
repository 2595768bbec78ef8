// What a middleware does to requests and answers, as a table of cases. Each is played in a whole gateway, on both lanes, and
// each stream once for every place where its words can be cut.
import assert from "node:assert/strict";
import { ERRORS, faultOf, type ErrorKind } from "../model/error.ts";
import { OWN_WORKS } from "../model/own-works.ts";
import type { Definition } from "../plugin/define.ts";
import type { Hooks } from "../plugin/middleware.ts";
import { check, type Check } from "./check.ts";
import { filled } from "./conformance/manners.ts";
import { context } from "./context.ts";
import { freeze } from "./freeze.ts";
import * as pretend from "./pretend.ts";
import { say, speaking, type Speech } from "./speech.ts";
import { elsewhere, inChat, inMessages, type CaseRequest } from "./case-request.ts";
import { startGateway, type HeardAnswer } from "./start-gateway.ts";

export type { CaseRequest } from "./case-request.ts";

/** What a middleware is to do, case by case. Each list may be absent. */
export interface HookCases {
  /** Options, as they would stand under `with:`. */
  readonly with?: Readonly<Record<string, unknown>>;
  /** These are answered, and the provider is asked. */
  readonly passes?: readonly CaseRequest[];
  /**
   * These are refused with that code or kind, and no provider is asked. The last text of each is tried as a tool's result and as a
   * system prompt, too.
   */
  readonly refuses?: readonly {
    readonly request: CaseRequest;
    readonly code?: string;
    readonly kind?: ErrorKind;
  }[];
  /** What the provider is asked instead: `becomes` stands in it, `hides` does not. */
  readonly rewrites?: readonly {
    readonly request: CaseRequest;
    readonly becomes?: string;
    readonly hides?: string;
  }[];
  /** What the model says, and what of it the client gets, wherever it was cut. */
  readonly streams?: readonly StreamCase[];
}

/** One answer of the model. */
export interface StreamCase {
  readonly request?: CaseRequest;
  readonly says: string;
  /** All that the client gets. Absent: anything. */
  readonly comes?: string;
  /** What must not stand in it, in however many pieces. */
  readonly leaks?: string;
  /** The answer ends in an error. */
  readonly stops?: boolean;
}

/** The client's protocol is the provider's, or another one. */
const LANES = ["verbatim", "translated"] as const;
type Lane = (typeof LANES)[number];

/** More places than these are spread over the text. */
const CUTS = 80;

/** The cases of a middleware as checks for a runner. A test file calls it while it is loaded; it runs nothing itself. */
export function hookTester(definition: Definition, cases: HookCases): Check[] {
  const { passes = [], refuses = [], rewrites = [], streams = [] } = cases;
  const all: [unknown, string][] = [
    ...passes.map((one): [unknown, string] => [one, "passes"]),
    ...refuses.map(({ request }): [unknown, string] => [request, "refuses"]),
  ];
  const seen = new Set(all.map(([one, what]) => `${what} ${JSON.stringify(one)}`));
  const both = (name: string, run: (lane: Lane) => Promise<void>) =>
    LANES.map((lane) => check(`${definition.name}: ${name}, ${lane}`, () => run(lane)));
  return [
    check(`${definition.name}: no case stands twice`, () =>
      assert.equal(seen.size, all.length, "a case that stands twice proves nothing more"),
    ),
    check(`${definition.name}: its hooks take requests of every kind`, () =>
      kinds(definition, cases),
    ),
    ...passes.flatMap((one) =>
      both(`passes ${title(one)}`, (lane) => passing(definition, cases, one, lane)),
    ),
    ...refuses.flatMap((one) =>
      both(`refuses ${title(one.request)}`, (lane) => refusing(definition, cases, one, lane)),
    ),
    ...refuses
      .slice(0, 1)
      .flatMap(({ request, code, kind }) =>
        Object.entries(elsewhere(request)).flatMap(([where, moved]) =>
          both(`refuses the same in ${where}`, (lane) =>
            refusing(
              definition,
              cases,
              { request: moved, ...(code && { code }), ...(kind && { kind }) },
              lane,
            ),
          ),
        ),
      ),
    ...rewrites.flatMap((one) =>
      both(`rewrites ${title(one.request)}`, (lane) => rewriting(definition, cases, one, lane)),
    ),
    ...streams.flatMap((one) =>
      both(`streams "${one.says.slice(0, 40)}"`, (lane) => streaming(definition, cases, one, lane)),
    ),
  ];
}

const title = (one: CaseRequest): string =>
  `"${(typeof one === "string" ? one : (one.turns.at(-1) ?? "")).slice(0, 40)}"`;

/** A client that speaks chat completions is passed on as it is; one that speaks messages is translated. */
async function stage(definition: Definition, { with: options = {} }: HookCases, speech: Speech) {
  const at = await startGateway({
    plugins: { judged: definition },
    upstream: speaking(speech, ["model"]),
    config: {
      middleware: ["door", { use: "judged", with: options }],
      attempts: { target: 1, all: 1 },
      providers: { up: { use: "openai-compatible", with: { base_url: "${env:UPSTREAM}/v1" } } },
    },
  });
  return {
    at,
    sent: () =>
      at.up.requests.filter(({ method }) => method === "POST").map(({ body }) => `${body}`),
    ask: (one: CaseRequest, lane: Lane, stream: boolean) =>
      lane === "verbatim"
        ? at.ask("up/model", "", inChat(one, stream))
        : inMessages(at.url, one, stream),
    [Symbol.asyncDispose]: () => at[Symbol.asyncDispose](),
  };
}

async function kinds(definition: Definition, { with: options = {} }: HookCases): Promise<void> {
  for (const work of OWN_WORKS.values()) {
    await using lent = context();
    const setup = definition.setup as (options: unknown, ctx: unknown) => Hooks | Promise<Hooks>;
    const { edit, inspect, rewrite } = await setup(
      freeze(filled(definition.options, options)),
      lent.ctx,
    );
    const request = freeze(work.sample("model"));
    const x = pretend.exchange({ kind: work.kind, request, identity: { id: "tester" } });
    for (const [name, hook] of Object.entries({ edit: edit && (() => edit(x)), rewrite, inspect }))
      try {
        await hook?.(request, x);
      } catch (error) {
        assert.ok(faultOf(error), `${name} fails for ${work.noun}: ${String(error)}`);
      }
  }
}

async function passing(definition: Definition, of: HookCases, one: CaseRequest, lane: Lane) {
  await using on = await stage(definition, of, say("Hello"));
  for (const stream of [false, true]) {
    const { status, body } = await on.ask(one, lane, stream);
    assert.equal(status, 200, `it was refused: ${body.slice(0, 300)}`);
  }
  assert.equal(on.sent().length, 2, "the provider was not asked");
}

async function refusing(
  definition: Definition,
  of: HookCases,
  { request, code, kind }: NonNullable<HookCases["refuses"]>[number],
  lane: Lane,
) {
  await using on = await stage(definition, of, say("Hello"));
  for (const stream of [false, true]) {
    const { status, body } = await on.ask(request, lane, stream);
    assert.ok(status >= 400, `it was let through with ${status}`);
    assert.ok(
      !/plugin_failed|middleware_timeout/.test(body),
      `it failed, which is no refusal: ${body.slice(0, 300)}`,
    );
    // Only chat completions have a place for codes; the log has them on both lanes.
    if (code !== undefined && lane === "verbatim")
      assert.ok(
        body.includes(JSON.stringify(code)),
        `the code is not ${code}: ${body.slice(0, 300)}`,
      );
    if (kind !== undefined) assert.equal(status, ERRORS[kind][0], `${kind} has another status`);
  }
  assert.deepEqual(on.sent(), [], "the provider was asked for what is refused");
}

async function rewriting(
  definition: Definition,
  of: HookCases,
  { request, becomes, hides }: NonNullable<HookCases["rewrites"]>[number],
  lane: Lane,
) {
  await using on = await stage(definition, of, say("Hello"));
  const { status, body } = await on.ask(request, lane, false);
  assert.equal(status, 200, `it was refused: ${body.slice(0, 300)}`);
  const sent = on.sent().join("\n");
  if (becomes !== undefined)
    assert.ok(
      sent.includes(JSON.stringify(becomes).slice(1, -1)),
      `the provider was asked ${sent}`,
    );
  if (hides !== undefined)
    assert.ok(!sent.includes(JSON.stringify(hides).slice(1, -1)), `the provider was told ${hides}`);
}

/** Whole, a character at a time, and in two pieces at every place. */
function* cutsOf(text: string): Generator<readonly string[]> {
  yield [text];
  yield [...text];
  const step = Math.max(1, Math.ceil(text.length / CUTS));
  for (let at = 1; at < text.length; at += step) yield [text.slice(0, at), text.slice(at)];
}

async function streaming(definition: Definition, of: HookCases, one: StreamCase, lane: Lane) {
  await using on = await stage(definition, of, say("Hello"));
  for (const pieces of cutsOf(one.says))
    for (const stream of [true, false]) {
      if (!stream && pieces.length !== 1) continue;
      const speech = pieces.reduce<Speech | undefined>(
        (said, piece) => (said ? said.say(piece) : say(piece)),
        undefined,
      );
      on.at.up.script(speaking(speech ?? say(""), ["model"]));
      const got = await on.ask(one.request ?? "Hello", lane, stream);
      judge(
        one,
        got,
        `${stream ? "streamed" : "whole"}, as ${JSON.stringify(pieces).slice(0, 120)}`,
      );
    }
}

function judge({ comes, leaks, stops }: StreamCase, got: HeardAnswer, how: string): void {
  if (leaks !== undefined)
    assert.ok(!got.text.includes(leaks), `"${leaks}" reached the client, ${how}: ${got.text}`);
  if (stops === true) assert.ok(got.error, `the answer did not end in an error, ${how}`);
  if (comes !== undefined) assert.equal(got.text, comes, `the client got something else, ${how}`);
}
