// One vocabulary: the meaning of an upstream failure does not depend on the protocol.
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { ERRORS, getFault, type ErrorKind, type JsonObject, type Protocol } from "tollgate/plugin";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { gemini, geminiImage } from "tollgate/protocols/gemini";
import { images } from "tollgate/protocols/images";
import { messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import { createCallContext } from "../../src/testing/codec-contexts.ts";
import { trialCount } from "../kit/law-effort.ts";

const ALL: readonly Protocol[] = [
  chatCompletions(),
  messages(),
  responses(),
  gemini(),
  images(),
  geminiImage(),
];

const meant = ({ client }: Protocol, status: number, body: unknown): ErrorKind =>
  client!.decodeFault(status, {}, Buffer.from(JSON.stringify(body))).kind;

describe.each(ALL)("$id", (protocol) => {
  it.each([
    [400, "invalid"],
    [401, "upstream_auth"],
    [402, "upstream_quota"],
    [403, "upstream_auth"],
    [404, "not_found"],
    [408, "timeout"],
    [413, "too_large"],
    [429, "rate_limited"],
    [498, "overloaded"],
    [503, "overloaded"],
    [504, "timeout"],
    [524, "timeout"],
    [529, "overloaded"],
  ])("%i without a body is %s", (status, kind) => {
    expect(meant(protocol, status, {})).toBe(kind);
  });
});

/** Machine-readable names: types, codes, and reasons of all vendors, and unknown ones. */
const NAMES = [
  "insufficient_quota",
  "billing_error",
  "invalid_api_key",
  "authentication_error",
  "rate_limit_error",
  "RESOURCE_EXHAUSTED",
  "API_KEY_INVALID",
  "overloaded_error",
  "context_length_exceeded",
  "content_filter",
  "invalid_request_error",
  "something_else",
  "constructor",
  "__proto__",
];

/** The formats of errors in use. */
const SHAPES: readonly ((name: string, message: string) => JsonObject)[] = [
  (code, message) => ({ error: { message, type: "some_error", param: null, code } }),
  (type, message) => ({ type: "error", error: { type, message } }),
  (code, message) => ({ type: "error", error: { message, details: { error_code: code } } }),
  (status, message) => ({ error: { code: 400, status, message } }),
  (reason, message) => ({ error: { message, details: [{ "@type": "ErrorInfo", reason }] } }),
  (code, message) => ({ object: "error", message, type: "some", code }),
  (code, message) => ({ code, error: message }),
  (code, message) => ({ errors: [{ code, message }] }),
];

const status = fc.integer({ min: 400, max: 599 });
const shape = fc.constantFrom(...SHAPES);

test("a code has the same meaning in every protocol, format, and status", () => {
  fc.assert(
    fc.property(status, shape, fc.constantFrom(...NAMES), (code, say, name) => {
      const body = say(name, "No.");
      const kinds = ALL.map((protocol) => meant(protocol, code, body));
      expect(new Set(kinds)).toHaveLength(1);
    }),
    { numRuns: trialCount(2000) },
  );
});

/** Vendors' texts about accounts and targets, which a client may cause them to quote. */
const POISON = [
  "billing",
  "credit balance is too low",
  "insufficient_quota",
  "exceeded your current quota",
  "API key not valid",
  "invalid_api_key",
  "permission denied",
  "overloaded",
  "rate limit reached, too many requests",
  "timed out",
  "user location is not supported",
  "prepaid credits are depleted",
  "arrearage",
  "payment required",
];
const prose = fc
  .array(fc.oneof(fc.constantFrom(...POISON), fc.string({ maxLength: 12 })), { maxLength: 6 })
  .map((words) => `Invalid schema for function '${words.join(" ")}'`);
const rests = (kind: ErrorKind) => ERRORS[kind][2];

test("prose is never interpreted as a statement about an account or a target", () => {
  fc.assert(
    fc.property(status, shape, prose, (code, say, words) => {
      for (const protocol of ALL) {
        const poisoned = meant(protocol, code, say("some_error", words));
        const plain = meant(protocol, code, say("some_error", "No."));
        expect([code, rests(poisoned)]).toEqual([code, rests(plain)]);
        const bare = protocol.client!.decodeFault(code, {}, Buffer.from(words));
        expect(rests(bare.kind)).toBe(rests(plain));
      }
    }),
    { numRuns: trialCount(1000) },
  );
});

test("nor in mid-response, streaming or not", () => {
  const caught = (run: () => void): ErrorKind => {
    try {
      run();
    } catch (error) {
      return getFault(error)!.kind;
    }
    throw new Error("an error was taken for an answer");
  };
  fc.assert(
    fc.property(prose, (words) => {
      const body = Buffer.from(JSON.stringify({ error: { message: words } }));
      for (const { client } of ALL) {
        expect(caught(() => client!.decodeResponse(body, () => {}, createCallContext(), {}))).toBe(
          "upstream",
        );
        expect(
          caught(() => {
            const decoder = client!.createDecoder(() => {}, createCallContext({ stream: true }), {
              "content-type": "text/event-stream",
            });
            decoder.push(Buffer.from(`event: error\ndata: ${body.toString()}\n\n`));
            decoder.end();
          }),
        ).toBe("upstream");
      }
    }),
    { numRuns: trialCount(200) },
  );
});

test.each(Object.keys(ERRORS) as ErrorKind[])(
  "OpenAI's protocols encode %s identically",
  (kind) => {
    const said = [chatCompletions(), responses(), images()]
      .filter(({ id }) => id !== "images" || kind !== "content_policy")
      .map(({ server }) => {
        const body = server!.encodeFault({ kind, message: "no" }, { id: "r" }).body as JsonObject;
        const { type, code } = body["error"] as JsonObject;
        return { type, code };
      });
    for (const one of said) expect(one).toEqual(said[0]);
  },
);
