import { describe, expect, it } from "vitest";
import { gemini } from "tollgate/protocols/gemini";
import { messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";

describe.each([messages(), responses(), gemini()])("$id", ({ client }) => {
  it.each([
    [400, "invalid"],
    [401, "upstream_auth"],
    [402, "upstream_quota"],
    [403, "upstream_auth"],
    [404, "not_found"],
    [408, "timeout"],
    [413, "too_large"],
    [429, "rate_limited"],
    [503, "overloaded"],
    [504, "timeout"],
    [529, "overloaded"],
  ])("a wordless %i is %s", (status, kind) => {
    expect(client!.fault(status, {}, Buffer.from("{}")).kind).toBe(kind);
  });
});
