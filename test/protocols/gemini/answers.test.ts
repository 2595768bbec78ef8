// Undocumented responses of Gemini and compatible servers, and content that must never be taken for
// a response.
import { describe, expect, it } from "vitest";
import { getFault, collectResponse, type ModelEvent, type Price } from "tollgate/plugin";
import { gemini, geminiImage } from "tollgate/protocols/gemini";
import { createCallContext, decode, decodeWhole } from "tollgate/testing";

const part = (...parts: object[]) => ({ content: { role: "model", parts } });
const chunk = (candidate: object, more: object = {}) => ({ candidates: [candidate], ...more });
const end = (finishReason = "STOP", more: object = {}) => ({
  ...part({ text: "" }),
  finishReason,
  ...more,
});
const sse = (...chunks: (object | string)[]) =>
  chunks.map((c) => (typeof c === "string" ? c : `data: ${JSON.stringify(c)}\r\n\r\n`)).join("");

const heard = (text: string, of = {}, headers = {}): ModelEvent[] =>
  decode(
    gemini().client as never,
    [Buffer.from(text)],
    createCallContext({ stream: true, ...of }),
    headers,
  );
const whole = (answer: unknown, of = {}): ModelEvent[] =>
  decodeWhole(gemini().client as never, Buffer.from(JSON.stringify(answer)), createCallContext(of));
const fault = (run: () => unknown) => {
  try {
    run();
  } catch (error) {
    return getFault(error);
  }
  throw new Error("It was taken for an answer.");
};
const text = (events: ModelEvent[]) =>
  collectResponse(events)
    .blocks.map((block) => (block.type === "text" ? block.text : block.type))
    .join("|");
const finish = (events: ModelEvent[]) => collectResponse(events).finish;

describe("streams", () => {
  it("the last finish reason counts, wherever there were others before", () => {
    const said = heard(
      sse(
        chunk({ ...part({ text: "a" }), finishReason: "STOP" }),
        chunk({ ...part({ text: "b" }), finishReason: "STOP" }),
        chunk(end("MAX_TOKENS")),
      ),
    );
    expect(text(said)).toBe("ab");
    expect(finish(said)).toEqual({ type: "finish", reason: "length" });
  });

  it("STOP after a call is a call", () => {
    const call = { functionCall: { name: "f", args: {} } };
    expect(
      finish(heard(sse(chunk({ ...part(call), finishReason: "STOP" }), chunk(end())))),
    ).toMatchObject({ reason: "tool_calls" });
    expect(finish(heard(sse(chunk(part(call)), chunk(end("MAX_TOKENS")))))).toMatchObject({
      reason: "length",
    });
  });

  it("a repeated call with the same ID is one call", () => {
    const call = chunk(part({ functionCall: { id: "a", name: "f", args: { x: 1 } } }));
    expect(collectResponse(heard(sse(call, call, chunk(end())))).blocks).toHaveLength(1);
  });

  it("generated IDs are deterministic and unique", () => {
    const calls = chunk(part({ functionCall: { name: "f" } }, { functionCall: { name: "f" } }), {
      responseId: "r1",
    });
    const ids = (text: string) =>
      collectResponse(heard(text)).blocks.map((block) => (block as { id: string }).id);
    const first = ids(sse(calls, chunk(end())));
    expect(first).toEqual(ids(sse(calls, chunk(end()))));
    expect(new Set(first).size).toBe(2);
    expect(first).not.toEqual(ids(sse({ ...calls, responseId: "r2" }, chunk(end()))));
  });

  it.each([
    ["LF", (s: string) => s.replaceAll("\r\n", "\n")],
    ["CR", (s: string) => s.replaceAll("\r\n", "\r")],
    ["a mark before, comments between", (s: string) => `\ufeff: hello\r\n\r\n${s}`],
    ["no blank line at the end", (s: string) => s.trimEnd()],
    ["[DONE]", (s: string) => `${s}data: [DONE]\n\n`],
  ])("%s", (_name, change) => {
    expect(text(heard(change(sse(chunk(part({ text: "Hi" })), chunk(end())))))).toBe("Hi");
  });

  it("that consist of one growing list are decoded", () => {
    const list = JSON.stringify([chunk(part({ text: "Hi" })), chunk(end())], null, 1);
    expect(text(heard(list))).toBe("Hi");
    expect(fault(() => heard(list.slice(0, -30)))).toMatchObject({ code: "truncated" });
  });

  const broken = { error: { code: 503, message: "Gone.", status: "UNAVAILABLE" } };
  const some = sse(chunk(part({ text: "Hi" })));
  it.each([
    ["an event", some + sse(broken)],
    ["bare JSON at the end", some + JSON.stringify(broken, null, 2)],
    ["bare JSON with a blank line", `${some}${JSON.stringify(broken)}\n\n`],
    ["a list of one", some + JSON.stringify([broken])],
    ["an event that is a list", some + sse([broken] as never)],
    ["the only thing there is", JSON.stringify([broken])],
  ])("an error as %s", (_name, stream) => {
    expect(fault(() => heard(stream))).toMatchObject({ kind: "overloaded", message: "Gone." });
  });

  it.each([
    ["nothing", "", "truncated"],
    ["no end", sse(chunk(part({ text: "Hi" }))), "truncated"],
    ["an end that is none", sse(chunk(end("FINISH_REASON_UNSPECIFIED"))), "truncated"],
    [
      "half an event",
      sse(chunk(part({ text: "Hi" }))) + 'data: {"candidates":[{"finishReason":"STOP"',
      "truncated",
    ],
    ["what is not JSON", "data: Hello\n\n", "bad_stream"],
    ["a number", "data: 7\n\n", "bad_stream"],
    ["a call without a name", sse(chunk(part({ functionCall: { args: {} } }))), "bad_stream"],
    ["a call that was none", sse(chunk(end("MALFORMED_FUNCTION_CALL"))), "malformed_function_call"],
    ["an end for no reason, without a word", sse(chunk({ finishReason: "OTHER" })), "empty_answer"],
  ])("%s is not a response", (_name, stream, code) => {
    expect(fault(() => heard(stream))).toMatchObject({ kind: "upstream", code });
  });

  it("an invalid call has its own message", () => {
    const said = fault(() =>
      heard(sse(chunk(end("UNEXPECTED_TOOL_CALL", { finishMessage: "Unexpected tool call: x" })))),
    );
    expect(said).toMatchObject({ message: "Unexpected tool call: x" });
  });

  it("an end without a reason, after text, is an end", () => {
    expect(
      finish(heard(sse(chunk(part({ text: "Hi" })), chunk({ finishReason: "OTHER" })))),
    ).toEqual({ type: "finish", reason: "other", detail: "OTHER" });
    expect(
      finish(heard(sse(chunk(part({ text: "Hi" })), chunk(end("CONTINUATION"))))),
    ).toMatchObject({ reason: "pause" });
  });

  it.each([
    "SAFETY",
    "RECITATION",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "LANGUAGE",
    "IMAGE_SAFETY",
  ])("%s is a content filter", (reason) => {
    expect(finish(heard(sse(chunk({ finishReason: reason }))))).toEqual({
      type: "finish",
      reason: "filtered",
      detail: reason,
    });
  });

  it("a blocked prompt is rejected, with its reason, before the response is committed", () => {
    const events: ModelEvent[] = [];
    const run = () => {
      const decoder = gemini().client!.createDecoder(
        (e) => events.push(e),
        createCallContext({ stream: true }),
        {},
      );
      decoder.push(
        Buffer.from(
          sse({
            promptFeedback: { blockReason: "PROHIBITED_CONTENT" },
            usageMetadata: { promptTokenCount: 3 },
          }),
        ),
      );
    };
    expect(fault(run)).toMatchObject({
      kind: "content_policy",
      code: "content_policy_violation",
      message: expect.stringContaining("PROHIBITED_CONTENT"),
    });
    expect(events).toEqual([]);
  });

  it("other candidates of the response are ignored", () => {
    const both = {
      candidates: [
        { ...part({ text: "no" }), index: 1 },
        { ...part({ text: "yes" }), index: 0, finishReason: "STOP" },
      ],
    };
    expect(text(heard(sse(both)))).toBe("yes");
  });
});

describe("signatures on text", () => {
  const proofs = (...parts: object[]) =>
    collectResponse(heard(sse(...parts.map((one) => chunk(part(one))), chunk(end())))).blocks.map(
      ({ type, proof }) => `${type} ${proof?.kind} ${proof?.data}`,
    );
  const S = { thoughtSignature: "Uw==" };
  it.each([
    ["on all of them", [{ text: "Hi", ...S }], ["text words Uw=="]],
    ["on the last of them", [{ text: "H" }, { text: "i", ...S }], ["text after Uw=="]],
    ["on the first of them", [{ text: "H", ...S }, { text: "i" }], ["text after Uw=="]],
    ["after them", [{ text: "Hi" }, { text: "", ...S }], ["text after Uw=="]],
    ["where there are none", [{ text: "", ...S }], ["reasoning empty Uw=="]],
    ["on thoughts", [{ text: "Hm", thought: true, ...S }], ["reasoning words Uw=="]],
    [
      "after thoughts, before words",
      [{ text: "Hm", thought: true }, { text: "", thought: true, ...S }, { text: "Hi" }],
      ["reasoning after Uw==", "text undefined undefined"],
    ],
  ])("%s", (_name, parts, expected) => {
    expect(proofs(...parts)).toEqual(expected);
  });
});

describe("errors keep their meaning", () => {
  const said = (status: number, error: object, headers = {}) => {
    const body = Buffer.from(JSON.stringify({ error: { code: status, message: "No.", ...error } }));
    const { kind, retryAfterMs } = gemini().client!.decodeFault(status, headers, body);
    return retryAfterMs === undefined ? kind : `${kind} ${retryAfterMs}`;
  };
  const quota = (quotaId: string) => ({
    status: "RESOURCE_EXHAUSTED",
    details: [{ "@type": "x", violations: [{ quotaId }] }],
  });
  it.each([
    [400, { status: "INVALID_ARGUMENT" }, "invalid"],
    [
      400,
      { status: "INVALID_ARGUMENT", details: [{ reason: "API_KEY_INVALID" }] },
      "upstream_auth",
    ],
    // Prose may quote a request, so it is never evidence about an account.
    [400, { message: "API key expired. Please renew the API key." }, "invalid"],
    [400, { message: "User location is not supported for the API use." }, "invalid"],
    [
      400,
      { status: "FAILED_PRECONDITION", message: "Please enable billing on project 1." },
      "invalid",
    ],
    [
      400,
      { message: "The input token count (9) exceeds the maximum number of tokens allowed (8)." },
      "context_length",
    ],
    [401, { status: "UNAUTHENTICATED" }, "upstream_auth"],
    [403, { status: "PERMISSION_DENIED" }, "upstream_auth"],
    [404, { status: "NOT_FOUND" }, "not_found"],
    [409, { status: "ABORTED" }, "conflict"],
    [429, quota("GenerateRequestsPerMinutePerProject"), "rate_limited"],
    [429, quota("GenerateRequestsPerDayPerProjectPerModel"), "upstream_quota"],
    [429, { message: "Your prepayment credits are depleted." }, "rate_limited"],
    [429, { details: [{ retryDelay: "34.07s" }] }, "rate_limited 34070"],
    [500, { status: "INTERNAL" }, "upstream"],
    [503, { status: "UNAVAILABLE" }, "overloaded"],
    [504, { status: "DEADLINE_EXCEEDED" }, "timeout"],
    // A name is more reliable than a number, which a proxy may have changed.
    [500, { status: "RESOURCE_EXHAUSTED" }, "rate_limited"],
    [418, {}, "invalid"],
  ])("%i %j", (status, error, expected) => {
    expect(said(status, error)).toBe(expected);
  });
  it("a header states the retry time if the body does not", () => {
    expect(said(429, {}, { "retry-after": "3" })).toBe("rate_limited 3000");
  });
});

describe("counts", () => {
  const usage = (counts: object, of = {}) =>
    collectResponse(whole(chunk(end(), { usageMetadata: counts }), of)).usage;
  it("do not overlap: the input excludes cached tokens, the output includes reasoning, and tool input counts as input", () => {
    expect(
      usage({
        promptTokenCount: 1200,
        cachedContentTokenCount: 900,
        candidatesTokenCount: 40,
        thoughtsTokenCount: 60,
        toolUsePromptTokenCount: 7,
      }),
    ).toEqual({
      input: 307,
      cache_read: 900,
      output: 100,
      reasoning: 60,
    });
  });

  it("that are impossible are ignored", () => {
    expect(
      usage({ promptTokenCount: -5, candidatesTokenCount: 1e12, thoughtsTokenCount: 1.5 }),
    ).toEqual({ cache_read: 0 });
    expect(usage({ promptTokenCount: 5, cachedContentTokenCount: 50 })).toMatchObject({
      input: 0,
      cache_read: 5,
    });
  });

  it("audio and images have units of their own if they have a price of their own", () => {
    const counts = {
      promptTokenCount: 100,
      cachedContentTokenCount: 10,
      candidatesTokenCount: 30,
      promptTokensDetails: [
        { modality: "TEXT", tokenCount: 40 },
        { modality: "AUDIO", tokenCount: 60 },
      ],
      cacheTokensDetails: [{ modality: "AUDIO", tokenCount: 10 }],
      candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: 25 }],
    };
    const price = (...units: string[]): Price => ({
      lines: units.map((unit) => ({ unit, usd: "1", per: 1 }) as never),
    });
    const info = (price: Price) => ({ info: { model: "m", kind: "chat" as const, price } });
    expect(usage(counts)).toEqual({ input: 90, cache_read: 10, output: 30, reasoning: 0 });
    expect(usage(counts, info(price("input", "audio_in")))).toEqual({
      input: 40,
      audio_in: 50,
      cache_read: 10,
      output: 30,
      reasoning: 0,
    });
    expect(usage(counts, info(price("image_out")))).toMatchObject({ output: 5, image_out: 25 });
  });

  it("have the tier that was actually used", () => {
    const events = heard(
      sse(chunk(end(), { usageMetadata: { promptTokenCount: 1 } })),
      {},
      { "x-gemini-service-tier": "flex" },
    );
    expect(events.find((e) => e.type === "usage")).toMatchObject({ tier: "flex" });
  });

  it("an output without counts is not zero", () => {
    const [first] = heard(
      sse(chunk(part({ text: "Hi" }), { usageMetadata: { promptTokenCount: 1 } }), chunk(end())),
    ).filter((e) => e.type === "usage");
    expect(first).toMatchObject({ usage: { input: 1, cache_read: 0 } });
    expect(first).not.toHaveProperty("usage.output");
  });
});

describe("tokens", () => {
  const counted = (body: string) => gemini().client!.decodeCount!(Buffer.from(body));
  it("are counted", () => {
    expect(counted('{"totalTokens":42,"promptTokensDetails":[]}')).toBe(42);
    expect(counted("{}")).toBe(0);
    for (const odd of ["", "[]", '{"totalTokens":"many"}'])
      expect(fault(() => counted(odd))).toMatchObject({ code: "bad_answer" });
  });
});

describe("images", () => {
  const drawn = (answer: object, of = {}) =>
    decodeWhole(
      geminiImage().client as never,
      Buffer.from(JSON.stringify(answer)),
      createCallContext(of),
    );
  const inline = (more: object = {}) => ({
    inlineData: { mimeType: "image/png", data: "AA==" },
    ...more,
  });
  it("are the only forwarded content", () => {
    const answer = collectResponse(
      drawn(
        chunk({
          ...part(
            { text: "Draft", thought: true },
            inline({ thought: true }),
            { text: "Here" },
            inline(),
          ),
          finishReason: "STOP",
        }),
      ),
    );
    expect(answer.blocks).toEqual([
      { type: "image", media: { mime: "image/png", base64: "AA==" } },
    ]);
  });
  it("without details, the output counts as the image", () => {
    const answer = collectResponse(
      drawn(
        chunk(
          { ...part(inline()), finishReason: "STOP" },
          {
            usageMetadata: {
              promptTokenCount: 3,
              candidatesTokenCount: 1290,
              thoughtsTokenCount: 10,
            },
          },
        ),
      ),
    );
    expect(answer.usage).toEqual({
      input: 3,
      cache_read: 0,
      output: 10,
      reasoning: 10,
      image_out: 1290,
    });
  });
  it.each([
    [{ finishReason: "IMAGE_SAFETY" }, "content_policy", "moderation_blocked"],
    [{ finishReason: "NO_IMAGE" }, "upstream", "empty_answer"],
    [{ ...part({ text: "No." }), finishReason: "STOP" }, "upstream", "no_image"],
  ])("%j is not an image", (candidate, kind, code) => {
    expect(fault(() => drawn(chunk(candidate)))).toMatchObject({ kind, code });
  });
});
