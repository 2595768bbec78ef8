// Tests a middleware with a table of cases. Each case runs in a complete gateway, in passthrough
// and translated mode. Each stream runs once for every position at which its text can be split.
import assert from "node:assert/strict";
import { ERRORS, getFault, type ErrorKind } from "../model/error.ts";
import { BUILT_IN_OPERATIONS } from "../model/operations/built-in-operations.ts";
import type { Definition } from "../plugin/define.ts";
import type { Hooks } from "../plugin/middleware.ts";
import { createCheck, type Check } from "./check.ts";
import { deepFreeze } from "./freeze.ts";
import { withDefaults } from "./conformance/definition.ts";
import { createTestContext } from "./context.ts";
import * as fakes from "./fakes.ts";
import { say, scriptedModel, type ModelScript } from "./upstream/model-script.ts";
import { startGateway, type ClientAnswer, type AskOptions } from "./start-gateway.ts";

/** Expected behavior of a middleware, case by case. All lists are optional. */
export interface HookCases {
  /** Plugin options, as under `with:` in gateway.yaml. */
  readonly with?: Readonly<Record<string, unknown>>;
  /** Requests that must be answered by the provider. */
  readonly allowed?: readonly CaseRequest[];
  /**
   * Requests that must be rejected with this code or kind, before a provider is called. The last
   * text of each is also sent as the result of a tool and as a system prompt.
   */
  readonly rejected?: readonly {
    readonly request: CaseRequest;
    readonly code?: string;
    readonly kind?: ErrorKind;
  }[];
  /**
   * Requests that must be changed. The request to the provider must contain `expected` and must not
   * contain `hidden`.
   */
  readonly rewritten?: readonly {
    readonly request: CaseRequest;
    readonly expected?: string;
    readonly hidden?: string;
  }[];
  /** Responses of the model, each with the part that the client must receive for every split. */
  readonly streams?: readonly StreamCase[];
}

/** One response of the model. */
export interface StreamCase {
  readonly request?: CaseRequest;
  readonly modelOutput: string;
  /** Complete output that the client must receive. Default: any. */
  readonly clientOutput?: string;
  /** Text that the output must not contain, in any number of pieces. */
  readonly mustNotContain?: string;
  /** Whether the response must end in an error. */
  readonly endsInError?: boolean;
}

/** Modes: client and provider use the same protocol or different protocols. */
const MODES = ["passthrough", "translated"] as const;
type TestMode = (typeof MODES)[number];

/** Maximum number of splits. If a text has more positions, the splits are distributed evenly. */
const MAX_SPLITS = 80;

/**
 * Returns the cases of a middleware as checks for a runner. A test file calls it while the file
 * loads. The call itself runs no check.
 */
export function hookChecks(definition: Definition, cases: HookCases): Check[] {
  const { allowed = [], rejected = [], rewritten = [], streams = [] } = cases;
  const all: [unknown, string][] = [
    ...allowed.map((one): [unknown, string] => [one, "passes"]),
    ...rejected.map(({ request }): [unknown, string] => [request, "refuses"]),
  ];
  const seen = new Set(all.map(([one, what]) => `${what} ${JSON.stringify(one)}`));
  const both = (name: string, run: (lane: TestMode) => Promise<void>) =>
    MODES.map((lane) => createCheck(`${definition.name}: ${name}, ${lane}`, () => run(lane)));
  return [
    createCheck(`${definition.name}: cases are unique`, () =>
      assert.equal(seen.size, all.length, "remove duplicate cases"),
    ),
    createCheck(`${definition.name}: hooks accept every operation`, () =>
      checkHookKinds(definition, cases),
    ),
    ...allowed.flatMap((one) =>
      both(`passes ${caseTitle(one)}`, (lane) => checkAllowed(definition, cases, one, lane)),
    ),
    ...rejected.flatMap((one) =>
      both(`refuses ${caseTitle(one.request)}`, (lane) =>
        checkRejected(definition, cases, one, lane),
      ),
    ),
    ...rejected
      .slice(0, 1)
      .flatMap(({ request, code, kind }) =>
        Object.entries(otherPlacements(request)).flatMap(([where, moved]) =>
          both(`rejects the same text in ${where}`, (lane) =>
            checkRejected(
              definition,
              cases,
              { request: moved, ...(code && { code }), ...(kind && { kind }) },
              lane,
            ),
          ),
        ),
      ),
    ...rewritten.flatMap((one) =>
      both(`rewrites ${caseTitle(one.request)}`, (lane) =>
        checkRewritten(definition, cases, one, lane),
      ),
    ),
    ...streams.flatMap((one) =>
      both(`streams "${one.modelOutput.slice(0, 40)}"`, (lane) =>
        checkStream(definition, cases, one, lane),
      ),
    ),
  ];
}

const caseTitle = (one: CaseRequest): string =>
  `"${(typeof one === "string" ? one : (one.turns.at(-1) ?? "")).slice(0, 40)}"`;

/**
 * Requests of clients that use chat completions are forwarded unchanged. Requests of clients that
 * use messages are translated.
 */
async function startCaseGateway(
  definition: Definition,
  { with: options = {} }: HookCases,
  speech: ModelScript,
) {
  const at = await startGateway({
    plugins: { judged: definition },
    upstream: scriptedModel(speech, ["model"]),
    config: {
      middleware: ["door", { use: "judged", with: options }],
      retries: { per_target: 1, total: 1 },
      providers: { up: { use: "openai-compatible", with: { base_url: "${env:UPSTREAM}/v1" } } },
    },
  });
  return {
    at,
    sent: () =>
      at.upstream.requests.filter(({ method }) => method === "POST").map(({ body }) => `${body}`),
    ask: (one: CaseRequest, lane: TestMode, stream: boolean) =>
      lane === "passthrough"
        ? at.ask("up/model", "", toChatRequest(one, stream))
        : sendMessagesRequest(at.url, one, stream),
    [Symbol.asyncDispose]: () => at[Symbol.asyncDispose](),
  };
}

async function checkHookKinds(
  definition: Definition,
  { with: options = {} }: HookCases,
): Promise<void> {
  for (const work of BUILT_IN_OPERATIONS.values()) {
    await using lent = createTestContext();
    const setup = definition.setup as (options: unknown, ctx: unknown) => Hooks | Promise<Hooks>;
    const { edit, inspect, rewrite } = await setup(
      deepFreeze(withDefaults(definition.options, options)),
      lent.ctx,
    );
    const request = deepFreeze(work.sampleRequest("model"));
    const x = fakes.exchange({ operation: work.name, request, identity: { id: "tester" } });
    for (const [name, hook] of Object.entries({ edit: edit && (() => edit(x)), rewrite, inspect }))
      try {
        await hook?.(request, x);
      } catch (error) {
        assert.ok(getFault(error), `${name} fails for ${work.noun}: ${String(error)}`);
      }
  }
}

async function checkAllowed(
  definition: Definition,
  of: HookCases,
  one: CaseRequest,
  lane: TestMode,
) {
  await using on = await startCaseGateway(definition, of, say("Hello"));
  for (const stream of [false, true]) {
    const { status, body } = await on.ask(one, lane, stream);
    assert.equal(status, 200, `the request was rejected: ${body.slice(0, 300)}`);
  }
  assert.equal(on.sent().length, 2, "the provider was not called");
}

async function checkRejected(
  definition: Definition,
  of: HookCases,
  { request, code, kind }: NonNullable<HookCases["rejected"]>[number],
  lane: TestMode,
) {
  await using on = await startCaseGateway(definition, of, say("Hello"));
  for (const stream of [false, true]) {
    const { status, body } = await on.ask(request, lane, stream);
    assert.ok(status >= 400, `the request was accepted with status ${status}`);
    assert.ok(
      !/plugin_failed|hook_timeout/.test(body),
      `the hook failed instead of rejecting the request: ${body.slice(0, 300)}`,
    );
    // Only chat completions has a field for error codes. The log contains the code in both modes.
    if (code !== undefined && lane === "passthrough")
      assert.ok(
        body.includes(JSON.stringify(code)),
        `the error code must be ${code}: ${body.slice(0, 300)}`,
      );
    if (kind !== undefined) assert.equal(status, ERRORS[kind][0], `${kind} has a different status`);
  }
  assert.deepEqual(on.sent(), [], "the provider was called for a rejected request");
}

async function checkRewritten(
  definition: Definition,
  of: HookCases,
  { request, expected, hidden }: NonNullable<HookCases["rewritten"]>[number],
  lane: TestMode,
) {
  await using on = await startCaseGateway(definition, of, say("Hello"));
  const { status, body } = await on.ask(request, lane, false);
  assert.equal(status, 200, `the request was rejected: ${body.slice(0, 300)}`);
  const sent = on.sent().join("\n");
  if (expected !== undefined)
    assert.ok(
      sent.includes(JSON.stringify(expected).slice(1, -1)),
      `the provider received ${sent}`,
    );
  if (hidden !== undefined)
    assert.ok(
      !sent.includes(JSON.stringify(hidden).slice(1, -1)),
      `the provider received ${hidden}`,
    );
}

/** Yields the text in one piece, one character at a time, and in two pieces for every position. */
function* listSplits(text: string): Generator<readonly string[]> {
  yield [text];
  yield [...text];
  const step = Math.max(1, Math.ceil(text.length / MAX_SPLITS));
  for (let at = 1; at < text.length; at += step) yield [text.slice(0, at), text.slice(at)];
}

async function checkStream(definition: Definition, of: HookCases, one: StreamCase, lane: TestMode) {
  await using on = await startCaseGateway(definition, of, say("Hello"));
  for (const pieces of listSplits(one.modelOutput))
    for (const stream of [true, false]) {
      if (!stream && pieces.length !== 1) continue;
      const speech = pieces.reduce<ModelScript | undefined>(
        (script, piece) => (script ? script.say(piece) : say(piece)),
        undefined,
      );
      on.at.upstream.setRoutes(scriptedModel(speech ?? say(""), ["model"]));
      const got = await on.ask(one.request ?? "Hello", lane, stream);
      checkStreamResult(
        one,
        got,
        `${stream ? "streamed" : "whole"}, as ${JSON.stringify(pieces).slice(0, 120)}`,
      );
    }
}

function checkStreamResult(
  { clientOutput, mustNotContain, endsInError }: StreamCase,
  got: ClientAnswer,
  how: string,
): void {
  if (mustNotContain !== undefined)
    assert.ok(
      !got.text.includes(mustNotContain),
      `"${mustNotContain}" reached the client, ${how}: ${got.text}`,
    );
  if (endsInError === true) assert.ok(got.error, `the response did not end in an error, ${how}`);
  if (clientOutput !== undefined)
    assert.equal(got.text, clientOutput, `the client received a different text, ${how}`);
}

// Client requests for the cases of a middleware, in the two protocols that each case runs in.

/**
 * A request of a client: one text, or alternating turns of the user and the model, with an optional
 * system prompt. `result` is the result of a tool call after the last turn.
 */
export type CaseRequest =
  | string
  | { readonly system?: string; readonly turns: readonly string[]; readonly result?: string };

const caseTurns = (one: CaseRequest): readonly string[] =>
  typeof one === "string" ? [one] : one.turns;
const toMessages = (one: CaseRequest) =>
  caseTurns(one).map((content, i) => ({ role: i % 2 === 0 ? "user" : "assistant", content }));
const toolResultOf = (one: CaseRequest) => (typeof one === "string" ? undefined : one.result);
const TOOL_CALL = { id: "call_1", name: "read" };
const systemPromptOf = (one: CaseRequest) => (typeof one === "string" ? undefined : one.system);

/** Returns the request in the chat completions protocol. */
function toChatRequest(one: CaseRequest, stream: boolean): AskOptions {
  const system = systemPromptOf(one);
  const before = system === undefined ? [] : [{ role: "system", content: system }];
  const result = toolResultOf(one);
  const call = {
    id: TOOL_CALL.id,
    type: "function",
    function: { name: TOOL_CALL.name, arguments: "{}" },
  };
  const after =
    result === undefined
      ? []
      : [
          { role: "assistant", content: null, tool_calls: [call] },
          { role: "tool", tool_call_id: TOOL_CALL.id, content: result },
        ];
  return { stream, body: { messages: [...before, ...toMessages(one), ...after] } };
}

/** Sends the request in the messages protocol, and returns the client's response. */
async function sendMessagesRequest(
  url: string,
  one: CaseRequest,
  stream: boolean,
): Promise<ClientAnswer> {
  const result = toolResultOf(one);
  const after =
    result === undefined
      ? []
      : [
          { role: "assistant", content: [{ type: "tool_use", ...TOOL_CALL, input: {} }] },
          {
            role: "user",
            content: [{ type: "tool_result", tool_use_id: TOOL_CALL.id, content: result }],
          },
        ];
  const response = await fetch(`${url}/v1/messages`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "anthropic-version": "2023-06-01",
      "x-api-key": "tester",
    },
    body: JSON.stringify({
      model: "up/model",
      max_tokens: 1_000,
      messages: [...toMessages(one), ...after],
      system: systemPromptOf(one),
      stream,
    }),
  });
  const body = await response.text();
  const lines = stream && response.ok ? body.split("\n") : [`data: ${body}`];
  const parts = lines.flatMap((line) => {
    const text = /^data: (.*)$/s.exec(line)?.[1];
    return text === undefined ? [] : [JSON.parse(text)];
  });
  const error = parts.find((part) => part.type === "error")?.error;
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    text: parts
      .flatMap((part) => [part.delta?.text, ...(part.content ?? []).map((b: any) => b.text)])
      .join(""),
    error,
    body,
  };
}

/**
 * Returns variants of a request with its text in other places. A text that is rejected in a user
 * turn must be rejected in these places too.
 */
const otherPlacements = (one: CaseRequest): Readonly<Record<string, CaseRequest>> => {
  const text = caseTurns(one).find((turn) => turn !== "") ?? "";
  return {
    "a tool's result": { turns: ["What does it say?"], result: text },
    "a system prompt": { system: text, turns: ["Go on."] },
  };
};
