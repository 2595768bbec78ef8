// The meaning of upstream errors, whichever backend sent them in any form.
import { describe, expect, test } from "vitest";
import { chatCompletions } from "../../../src/protocols/chat-completions/index.ts";
import { ERRORS, type ErrorKind } from "../../../src/plugin/index.ts";
import { readRetryAfterMs } from "../../../src/protocols/failure/retry-delay.ts";

const { client } = chatCompletions();
const fault = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  client!.decodeFault(
    status,
    headers,
    Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
  );

describe("errors", () => {
  test.each<
    [name: string, status: number, body: unknown, kind: ErrorKind, code: string | undefined]
  >([
    [
      "OpenAI's context",
      400,
      {
        error: {
          message: "This model's maximum context length is 8192 tokens.",
          code: "context_length_exceeded",
        },
      },
      "context_length",
      "context_length_exceeded",
    ],
    [
      "Anthropic's words",
      400,
      { error: { message: "prompt is too long: 5 tokens > 4 maximum" } },
      "context_length",
      "context_length_exceeded",
    ],
    [
      "llama.cpp's context",
      400,
      {
        error: {
          code: 400,
          message: "the request exceeds the available context size",
          type: "exceed_context_size_error",
        },
      },
      "context_length",
      "context_length_exceeded",
    ],
    [
      "Azure's filter",
      400,
      { error: { message: "The response was filtered", code: "content_filter" } },
      "content_policy",
      "content_filter",
    ],
    [
      "OpenRouter's moderation",
      403,
      { error: { code: 403, message: "Flagged by moderation", metadata: { reasons: ["x"] } } },
      "content_policy",
      "content_policy_violation",
    ],
    [
      "a bad parameter",
      400,
      {
        error: {
          message: "Unknown parameter: 'x'",
          type: "invalid_request_error",
          param: "x",
          code: "unknown_parameter",
        },
      },
      "invalid",
      "unknown_parameter",
    ],
    [
      "Mistral's list",
      422,
      { detail: [{ loc: ["body", "messages", 0], msg: "Field required" }] },
      "invalid",
      undefined,
    ],
    [
      "a wrong key",
      401,
      { error: { message: "Incorrect API key" } },
      "upstream_auth",
      "upstream_auth",
    ],
    [
      "a country",
      403,
      { error: { message: "Country not supported", code: "unsupported_country_region_territory" } },
      "upstream_auth",
      "unsupported_country_region_territory",
    ],
    [
      "DeepSeek's balance",
      402,
      { error: { message: "Insufficient Balance" } },
      "upstream_quota",
      "upstream_quota",
    ],
    [
      "OpenAI's quota",
      429,
      {
        error: {
          message: "You exceeded your current quota",
          type: "insufficient_quota",
          code: "insufficient_quota",
        },
      },
      "upstream_quota",
      "insufficient_quota",
    ],
    [
      "Z.ai's rate",
      429,
      { error: { code: "1302", message: "High concurrency" } },
      "rate_limited",
      "1302",
    ],
    [
      "no such model",
      404,
      { error: { message: "The model `x` does not exist", code: "model_not_found" } },
      "not_found",
      "model_not_found",
    ],
    ["xAI's string", 400, { code: "invalid", error: "Bad things" }, "invalid", "invalid"],
    [
      "Cloudflare's list",
      400,
      { success: false, errors: [{ code: 5007, message: "No such model" }] },
      "invalid",
      "5007",
    ],
    [
      "Google's list",
      400,
      [{ error: { code: 400, message: "Bad", status: "INVALID_ARGUMENT" } }],
      "invalid",
      undefined,
    ],
    ["a proxy's page", 502, "<html>bad gateway</html>", "upstream", undefined],
    [
      "overloaded",
      503,
      { error: { message: "The engine is currently overloaded" } },
      "overloaded",
      "overloaded",
    ],
    ["Groq's flex", 498, {}, "overloaded", "overloaded"],
    ["too late", 504, "", "timeout", undefined],
    ["too much", 413, { error: { message: "Request too large" } }, "too_large", undefined],
    [
      "a 500 that says what it is",
      500,
      { error: { message: "context window exceeded" } },
      "context_length",
      "context_length_exceeded",
    ],
  ])("%s", (_, status, body, kind, code) => {
    const got = fault(status, body);
    expect({ kind: got.kind, code: got.code }).toEqual({ kind, code });
    expect(got.message).not.toMatch(/<\w|[{}]/);
    expect(ERRORS[got.kind]).toBeDefined();
  });

  test("an HTML page is truncated, and not repeated", () => {
    expect(fault(500, "x".repeat(9000)).message.length).toBe(2000);
    expect(fault(502, "<html>x</html>").message).toBe(
      "The provider returned status 502 without a message.",
    );
    expect(
      fault(422, { detail: [{ loc: ["body", "messages", 0], msg: "Field required" }] }).message,
    ).toBe("messages.0: Field required");
  });
});

describe("retry time", () => {
  const date = "Sat, 21 Nov 2026 10:00:00 GMT";
  test.each<[Record<string, string>, number | undefined]>([
    [{ "retry-after-ms": "1500.5", "retry-after": "9" }, 1501],
    [{ "retry-after": "2" }, 2000],
    [{ "retry-after": "0.5" }, 500],
    [{ "retry-after": "Sat, 21 Nov 2026 10:00:30 GMT", date }, 30_000],
    [{ "retry-after": "Sat, 21 Nov 2026 10:00:30 GMT" }, undefined],
    [
      { "retry-after": "1795255230", date: "Sat, 21 Nov 2026 10:00:00 GMT" },
      1795255230_000 - Date.parse(date),
    ],
    [{ "retry-after": "-1" }, undefined],
    [{ "retry-after": "soon" }, undefined],
    [{ "retry-after": "999999999" }, 24 * 3600_000],
    [
      {
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "1m30s",
        "x-ratelimit-remaining-requests": "5",
        "x-ratelimit-reset-requests": "1h",
      },
      90_000,
    ],
    [
      {
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "20ms",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "6m0s",
      },
      360_000,
    ],
    [
      { "x-ratelimit-remaining-requests-day": "0", "x-ratelimit-reset-requests-day": "33011.38" },
      33_011_380,
    ],
    [{}, undefined],
  ])("%j", (headers, ms) => expect(readRetryAfterMs(headers)).toBe(ms));
});
