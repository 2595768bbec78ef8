// Errors: the meaning of an upstream's, and the format of ours.
import { describe, expect, test } from "vitest";
import { ERRORS, getFault, type ErrorKind } from "../../../src/model/error.ts";
import type { HeadersIn } from "../../../src/model/values.ts";
import { createCallContext } from "../../../src/testing/codec-contexts.ts";
import { client, server } from "./recorded.ts";

const said = (type: string, message: string, details?: object) =>
  JSON.stringify({ type: "error", error: { type, message, ...(details && { details }) } });

const fault = (status: number, body: string, headers: HeadersIn = {}) =>
  client.decodeFault(status, headers, Buffer.from(body));

test.each<[number, string, ErrorKind]>([
  [400, said("invalid_request_error", "max_tokens: Field required"), "invalid"],
  [
    400,
    said("invalid_request_error", "prompt is too long: 215000 tokens > 200000 maximum"),
    "context_length",
  ],
  [
    400,
    said(
      "invalid_request_error",
      "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    ),
    "context_length",
  ],
  [
    400,
    '{"error":{"message":"This model\'s maximum context length is 8192 tokens.","code":400}}',
    "context_length",
  ],
  [
    400,
    '{"error":{"code":400,"message":"n_ctx","type":"exceed_context_size_error"}}',
    "context_length",
  ],
  [413, said("request_too_large", "Request exceeds the maximum size"), "too_large"],
  [
    400,
    said("invalid_request_error", "Output blocked by content filtering policy"),
    "content_policy",
  ],
  [
    400,
    said("invalid_request_error", "Your credit balance is too low to access the API."),
    "invalid",
  ],
  [401, said("authentication_error", "invalid x-api-key"), "upstream_auth"],
  [402, '{"error":{"message":"Insufficient Balance"}}', "upstream_quota"],
  [403, said("permission_error", "no"), "upstream_auth"],
  [404, said("not_found_error", "model: claude-9"), "not_found"],
  [408, "", "timeout"],
  [409, said("conflict_error", "x"), "conflict"],
  [422, '{"detail":[{"loc":["body"],"msg":"bad"}]}', "invalid"],
  [429, said("rate_limit_error", "Number of requests"), "rate_limited"],
  [
    429,
    said("rate_limit_error", "x", { error_code: "enforced_spend_limit_reached" }),
    "upstream_quota",
  ],
  [429, said("rate_limit_error", "You have reached your spend limit"), "rate_limited"],
  [500, said("api_error", "Internal server error"), "upstream"],
  [500, said("overloaded_error", "Overloaded"), "overloaded"],
  [502, "<html>Bad gateway</html>", "upstream"],
  [503, "no healthy upstream", "overloaded"],
  [504, "", "timeout"],
  [529, said("overloaded_error", "Overloaded"), "overloaded"],
  [418, "{}", "invalid"],
])("%i %s is %s", (status, body, kind) => {
  expect(fault(status, body).kind).toBe(kind);
});

test.each([
  [
    said("invalid_request_error", "messages.1.content.0: Invalid `signature` in `thinking` block"),
    /Invalid `signature`/,
  ],
  ['{"message":"plain"}', /^plain$/],
  ['{"error":"text"}', /^text$/],
  ['{"base_resp":{"status_code":1004,"status_msg":"login fail"}}', /^login fail$/],
  ["<html>secret stack</html>", /status 400 without a message/],
  ["", /status 400/],
  ["[1]", /^\[1\]$/],
])("an upstream's own message is kept: %s", (body, words) => {
  expect(fault(400, body).message).toMatch(words);
});

test("its codes and details are kept", () => {
  expect(
    fault(400, said("invalid_request_error", "x", { error_code: "thread_not_found" })),
  ).toMatchObject({
    code: "thread_not_found",
    details: { error_code: "thread_not_found" },
  });
});

test("retry time", () => {
  expect(fault(429, "", { "retry-after": "7" }).retryAfterMs).toBe(7000);
  expect(fault(429, "", { "retry-after": "7", "retry-after-ms": "250" }).retryAfterMs).toBe(250);
  const date = "Sat, 21 Nov 2026 10:00:00 GMT";
  const later = "Sat, 21 Nov 2026 10:00:09 GMT";
  expect(fault(429, "", { date, "retry-after": later }).retryAfterMs).toBe(9000);
  expect(fault(429, "", { "retry-after": "soon" }).retryAfterMs).toBeUndefined();
});

test.each<[ErrorKind, number, string]>([
  ["invalid", 400, "invalid_request_error"],
  ["unsupported", 400, "invalid_request_error"],
  ["unauthenticated", 401, "authentication_error"],
  ["quota", 402, "billing_error"],
  ["forbidden", 403, "permission_error"],
  ["privacy", 403, "permission_error"],
  ["not_found", 404, "not_found_error"],
  ["conflict", 409, "conflict_error"],
  ["too_large", 413, "request_too_large"],
  ["rate_limited", 429, "rate_limit_error"],
  ["internal", 500, "api_error"],
  ["upstream", 502, "api_error"],
  ["upstream_auth", 502, "api_error"],
  ["upstream_quota", 502, "api_error"],
  ["unavailable", 503, "api_error"],
  ["timeout", 504, "timeout_error"],
  ["overloaded", 529, "overloaded_error"],
])("%s is sent as %i %s", (kind, status, type) => {
  const told = server.encodeFault(
    { kind, message: "Words.", code: "some_code", param: "a.b" },
    { id: "r1" },
  );
  expect(told).toEqual({
    status,
    body: {
      type: "error",
      error: { type, message: "Words.", details: { error_code: "some_code", param: "a.b" } },
      request_id: "r1",
    },
  });
});

test("every kind has a type", () => {
  for (const kind of Object.keys(ERRORS) as ErrorKind[])
    expect(server.encodeFault({ kind, message: "x" }, { id: "r" }).body).toMatchObject({
      error: { type: expect.stringMatching(/_error$|^request_too_large$/) },
    });
});

test("a context that is too long has the message that clients recognize", () => {
  const told = (message: string) =>
    (server.encodeFault({ kind: "context_length", message }, { id: "r" }).body["error"] as any)
      .message;
  expect(told("maximum context length is 8192")).toMatch(/^prompt is too long: maximum/);
  expect(told("prompt is too long: 2 > 1")).toBe("prompt is too long: 2 > 1");
});

test("a rejected thread makes the SDK send its history", () => {
  const out = { get: (f: string) => (f === "thread" ? { type: "create" } : undefined) };
  try {
    client.prepare!(out as never, createCallContext());
    expect.unreachable();
  } catch (error) {
    const { body, status } = server.encodeFault(getFault(error)!, { id: "r" });
    expect(status).toBe(400);
    expect(body).toMatchObject({
      error: { details: { error_code: "thread_unsupported_request" } },
    });
  }
});

describe("the headers", () => {
  const at = Date.UTC(2026, 10, 21, 12, 0, 5, 250);
  const limit = (unit: "requests" | "input" | "nano_usd", left: number, max = 100) => ({
    scope: "key",
    unit,
    max,
    per: "minute" as const,
    remaining: left,
    resetsAt: at,
  });

  test("have the request ID and, for each type, the limit that is nearest to its end", () => {
    expect(
      server.encodeHeaders!({
        id: "r1",
        now: 0,
        limits: [
          limit("requests", 9),
          limit("requests", 4, 5),
          limit("input", -3),
          limit("nano_usd", 1),
        ],
      }),
    ).toEqual({
      "request-id": "r1",
      "x-request-id": "r1",
      "anthropic-ratelimit-requests-limit": "5",
      "anthropic-ratelimit-requests-remaining": "4",
      "anthropic-ratelimit-requests-reset": "2026-11-21T12:00:05Z",
      "anthropic-ratelimit-input-tokens-limit": "100",
      "anthropic-ratelimit-input-tokens-remaining": "0",
      "anthropic-ratelimit-input-tokens-reset": "2026-11-21T12:00:05Z",
    });
  });
});

test("a ping is an event of this protocol", () => {
  expect(server.ping).toBe('event: ping\ndata: {"type":"ping"}\n\n');
});

test("counts", () => {
  expect(server.encodeCount!(12)).toEqual({ input_tokens: 12 });
  expect(client.decodeCount!(Buffer.from('{"input_tokens":2095}'))).toBe(2095);
  for (const odd of ["", "{}", '{"input_tokens":"9"}', "null"])
    expect(() => client.decodeCount!(Buffer.from(odd))).toThrow(/not a number/);
});
